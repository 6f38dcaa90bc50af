import assert from 'node:assert/strict'
import type { Announcement, ReadClaim } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimedAll,
  eventOf,
  fails,
  has,
  isNumber,
  known,
  type Lab,
  named,
  shows,
} from '../lab.js'
import { failing, next } from './failing-reads.js'

export const ENDS: readonly Check[] = [
  {
    name: 'finishRead: a streak of refused or missing reads begins with the first and ends with a found record',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      const claim = await due(lab)
      assert.equal(claim.failingSince, null)
      await store.finishRead(claim, fails('token_refused', 0))
      const second = await next(lab)
      isNumber(second.failingSince, 'failingSince')
      await lab.pass(20)
      await store.finishRead(second, fails('platform_record_missing', 0))
      const third = await next(lab)
      assert.equal(third.failingSince, second.failingSince)
      // An outage neither begins nor ends a streak.
      await store.finishRead(third, fails('platform_timeout', 0))
      const fourth = await next(lab)
      assert.equal(fourth.failingSince, second.failingSince)
      await store.finishRead(fourth, shows(fourth, 'canceled', { nextInMs: 0 }))
      const canceled = await next(lab)
      assert.equal(canceled.failingSince, null)
      // A canceled subscription has nothing to lose.
      await store.finishRead(canceled, fails('token_refused', 0))
      assert.equal((await next(lab)).failingSince, null)
    },
  },
  {
    name: 'accept: an announcement is stored for a known subscription of that business, until a read clears it',
    async check(lab) {
      const { store } = lab
      const announce = (announces: Announcement, businessUid = 'b1') =>
        store.accept([
          eventOf('s1', { businessUid, refresh: { ...asNamed(named('s1', businessUid)), announces } }),
        ])
      await known(store, 's1', 'purchased', 'b1')
      await announce('end', 'b2')
      has(await next(lab, 0), { updateAt: null, endAt: null })
      await announce('update')
      const updated = await next(lab, 0)
      isNumber(updated.updateAt, 'updateAt')
      assert.equal(updated.endAt, null)
      await announce('end')
      const ended = await next(lab, 0)
      isNumber(ended.endAt, 'endAt')
      // The first update counts.
      assert.equal(ended.updateAt, updated.updateAt)
      await announce('access')
      has(await next(lab, 0), { endAt: null })
      await announce('end')
      const claim = await lab.until('it is due', async () => (await claimedAll(store))[0])
      await announce('end')
      await store.finishRead(
        claim,
        shows(claim, 'purchased', { clearUpdate: true, clearEnd: true, nextInMs: 0 }),
      )
      // Announced during the read, so the next read decides.
      const again = await next(lab)
      isNumber(again.endAt, 'endAt')
      await store.finishRead(
        again,
        shows(again, 'purchased', { clearUpdate: true, clearEnd: true, nextInMs: 0 }),
      )
      has(await next(lab), { updateAt: null, endAt: null })
    },
  },
  {
    name: 'claimReads: a failing subscription has the last update of its business, until it was shown again',
    async check(lab) {
      const { store } = lab
      for (const uid of ['s1', 's2']) await known(store, uid, 'purchased', 'b1')
      await store.accept([
        eventOf('s1', { businessUid: 'b1', refresh: { ...asNamed(named('s1', 'b1')), announces: 'update' } }),
      ])
      await store.finishRead(await next(lab), fails('token_refused'))
      const first = await failing(lab, 's2')
      assert.equal(first.businessUpdateAt, null)
      const again = await failing(lab, 's2', 0)
      isNumber(again.businessUpdateAt, 'businessUpdateAt')
      assert.equal(again.updateAt, null)
      await lab.pass(20)
      const served = await next(lab)
      await store.finishRead(served, shows(served, 'purchased'))
      await failing(lab, 's2')
      const later = await failing(lab, 's2')
      isNumber(later.failingSince, 'failingSince')
      assert.equal(later.businessUpdateAt, null)
    },
  },
]

const asNamed = (request: ReturnType<typeof named>) =>
  request as Extract<typeof request, { kind: 'subscription' }>

/** Requests a read of the first subscription, and leases it. */
async function due(lab: Lab): Promise<ReadClaim> {
  await lab.store.requestRefresh(named('s1', 'b1'))
  return next(lab)
}
