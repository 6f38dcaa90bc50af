import assert from 'node:assert/strict'
import type { Announcement } from '../../../../lib/store/port/store.js'
import { type Checks, eventOf, has, isNumber, type Lab, named } from '../lab.js'

export const ENDS: Checks = {
  async 'finishRead: a streak of refused or missing reads begins with the first and ends with a found record'(
    lab,
  ) {
    await lab.request('s1', 'b1')
    // One that was never read fails for as long as nobody has shown it.
    await failNext(lab, 'token_refused')
    has(await lab.read('purchased'), { failingSince: null })
    await lab.request('s1', 'b1')
    has(await failNext(lab, 'token_refused'), { failingSince: null })
    await lab.pass(20)
    const { failingSince } = await failNext(lab, 'platform_record_missing')
    isNumber(failingSince, 'failingSince')
    await lab.pass(20)
    // An outage neither begins nor ends a streak.
    has(await failNext(lab, 'platform_timeout'), { failingSince })
    has(await lab.read('canceled', { nextInMs: 0 }), { failingSince })
    // A canceled subscription has nothing to lose.
    has(await failNext(lab, 'token_refused'), { failingSince: null })
    has(await lab.next(), { failingSince: null })
  },

  async 'accept: an announcement is stored for a known subscription of that business, until a read clears it'(
    lab,
  ) {
    const clear = { clearUpdate: true, clearEnd: true, nextInMs: 0 }
    await announce(lab, 'end')
    has(await lab.read('purchased', { nextInMs: 0 }), { endAt: null })
    await lab.read('purchased', clear)
    await lab.read('purchased')
    for (const announced of ['end', 'update'] as const) {
      await announce(lab, announced, 'b2')
      has(await readInVain(lab), { updateAt: null, endAt: null })
    }
    await announce(lab, 'update')
    const { updateAt, endAt } = await readInVain(lab)
    isNumber(updateAt, 'updateAt')
    assert.equal(endAt, null)
    await announce(lab, 'end')
    const ended = await readInVain(lab)
    isNumber(ended.endAt, 'endAt')
    // The first update counts.
    assert.equal(ended.updateAt, updateAt)
    await announce(lab, 'access')
    has(await readInVain(lab), { endAt: null })
    await announce(lab, 'end')
    const claim = await lab.next()
    await announce(lab, 'end')
    await lab.succeed(claim, 'purchased', clear)
    // Announced during the read, so the next read decides.
    const second = await lab.read('purchased', clear)
    isNumber(second.endAt, 'endAt')
    isNumber(second.updateAt, 'updateAt')
    has(await lab.next(), { updateAt: null, endAt: null })
  },

  async 'claimReads: a failing subscription has the last update of its business, until it was shown again'(
    lab,
  ) {
    for (const uid of ['s1', 's2']) await lab.known(uid, 'purchased', 'b1')
    await announce(lab, 'update')
    await lab.fail(await lab.next(), 'token_refused')
    has(await lab.refuse('s2'), { businessUpdateAt: null })
    const again = await lab.refuse('s2', 0)
    isNumber(again.businessUpdateAt, 'businessUpdateAt')
    assert.equal(again.updateAt, null)
    await lab.pass(20)
    await lab.read('purchased')
    await lab.refuse('s2')
    const later = await lab.refuse('s2')
    isNumber(later.failingSince, 'failingSince')
    assert.equal(later.businessUpdateAt, null)
  },
}

function announce(lab: Lab, announces: Announcement, businessUid = 'b1') {
  return lab.accept([eventOf('s1', { businessUid, refresh: { ...named('s1', businessUid), announces } })])
}

async function failNext(lab: Lab, failure: string) {
  const claim = await lab.next()
  await lab.fail(claim, failure, 0)
  return claim
}

/** A read without an answer, after which nothing is due. */
async function readInVain(lab: Lab) {
  const claim = await lab.next()
  await lab.fail(claim, 'platform_timeout')
  return claim
}
