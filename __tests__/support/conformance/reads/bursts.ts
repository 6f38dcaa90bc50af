import assert from 'node:assert/strict'
import { MAX_READ_INTERVAL_MS, MIN_READ_INTERVAL_MS } from '../../../../lib/store/port/store.js'
import { business, type Checks, eventOf, has, isNumber, type Lab, same } from '../lab.js'

/** Times of one transaction may be taken one after the other. */
const APART_MS = 20

export const BURSTS: Checks = {
  async 'D1 accept: a burst of events after a read causes one read, due when the burst ends, at the latest after the longest interval'(
    lab,
  ) {
    await onSomeTry(lab, async (uid) => {
      const { readAt } = await timesOf(lab, uid)
      const last = readAt + MAX_READ_INTERVAL_MS
      for (let early = 0; ; early++) {
        await lab.accept([eventOf(uid)])
        const { refreshAt, requestedAt } = await timesOf(lab, uid)
        // Due already: the events were further apart than the pause, or the longest interval is over.
        if (refreshAt <= requestedAt) {
          const claim = await lab.claim()
          has(claim, { id: uid, generation: early + 2, settledGeneration: 1 })
          await lab.succeed(claim, 'purchased')
          return early > 1
        }
        const due =
          early === 0 ? readAt + MIN_READ_INTERVAL_MS : Math.min(requestedAt + MIN_READ_INTERVAL_MS, last)
        assert(Math.abs(refreshAt - due) <= APART_MS, `due ${refreshAt - due} ms later than expected`)
        assert(early < 1_000, 'never due')
        await lab.pass(50)
      }
    })
  },

  async 'requestRefresh: a burst of events does not put off the read'(lab) {
    await onSomeTry(lab, async (uid) => {
      await lab.accept([eventOf(uid)])
      await lab.pass(MIN_READ_INTERVAL_MS / 2)
      await lab.accept([eventOf(uid)])
      const { refreshAt: putOffTo } = await timesOf(lab, uid)
      await lab.requestRefresh(business(`business of ${uid}`))
      const { readAt, requestedAt, refreshAt } = await timesOf(lab, uid)
      const soonest = Math.max(readAt + MIN_READ_INTERVAL_MS, requestedAt)
      if (putOffTo <= soonest + APART_MS) {
        // It is due now or soon, and the next try would read it.
        await lab.pass(MIN_READ_INTERVAL_MS + APART_MS)
        await lab.succeed(await lab.claim(), 'purchased')
        return false
      }
      assert(refreshAt <= soonest + APART_MS, 'it is put off')
      return true
    })
  },

  async 'accept: an event long after the last read is due at once'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    await lab.pass(MIN_READ_INTERVAL_MS + APART_MS)
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    await lab.succeed(await lab.claim(), 'purchased')
    same(await lab.claimAll(), [])
  },

  async 'accept: owedSince is the time of the first request without an answer, whatever follows it'(lab) {
    await lab.known('s1', 'purchased', 'b1')
    has(await lab.only('b1'), { owedSince: null, generation: 1, settledGeneration: 1 })
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    const { owedSince: first } = await lab.only('b1')
    isNumber(first, 'owedSince')
    await lab.pass(3 * APART_MS)
    await lab.accept([eventOf('s1', { businessUid: 'b1' })])
    const second = await lab.only('b1')
    assert(Math.abs(Number(second.owedSince) - first) <= APART_MS, 'it is renewed')
    has(second, { generation: 3, settledGeneration: 1 })
    await lab.read('purchased')
    has(await lab.only('b1'), { owedSince: null, generation: 3, settledGeneration: 3 })
  },
}

/** If the machine pauses for as long as the pause between two reads, a try proves nothing, and another one follows. */
async function onSomeTry(lab: Lab, proves: (uid: string) => Promise<boolean>) {
  for (let n = 1; n <= 20; n++) {
    await lab.known(`s${n}`)
    if (await proves(`s${n}`)) return
  }
  assert.fail('no event followed another within the pause')
}

async function timesOf(lab: Lab, uid: string) {
  const { readAt, requestedAt, refreshAt } = await lab.only(`business of ${uid}`)
  isNumber(readAt, 'readAt')
  isNumber(requestedAt, 'requestedAt')
  isNumber(refreshAt, 'refreshAt')
  return { readAt, requestedAt, refreshAt }
}
