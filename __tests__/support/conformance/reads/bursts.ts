import assert from 'node:assert/strict'
import { MAX_READ_INTERVAL_MS, MIN_READ_INTERVAL_MS } from '../../../../lib/store/port/store.js'
import {
  type Check,
  claimed,
  claimedAll,
  eventOf,
  has,
  isNumber,
  known,
  type Lab,
  only,
  shows,
} from '../lab.js'

/** Times of one transaction may be taken one after the other. */
const APART_MS = 20

export const BURSTS: readonly Check[] = [
  {
    name: 'accept: a burst of events after a read causes one read, due when the burst ends, at the latest after the longest interval',
    async check(lab) {
      // If the machine pauses for longer than this time, the check proves nothing.
      for (let n = 1; n <= 20; n++) if ((await burst(lab, `s${n}`)) > 1) return
      assert.fail('no event followed another within the pause')
    },
  },
  {
    name: 'accept: an event long after the last read is due at once',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      await lab.pass(MIN_READ_INTERVAL_MS + APART_MS)
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const claim = await claimed(store)
      await store.finishRead(claim, shows(claim, 'purchased'))
      assert.equal((await claimedAll(store)).length, 0)
    },
  },
  {
    name: 'accept: owedSince is the time of the first request without an answer, whatever follows it',
    async check(lab) {
      const { store } = lab
      await known(store, 's1', 'purchased', 'b1')
      has(await only(store, 'b1'), { owedSince: null, generation: 1, settledGeneration: 1 })
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const first = timeOf((await only(store, 'b1')).owedSince, 'owedSince')
      await lab.pass(3 * APART_MS)
      await store.accept([eventOf('s1', { businessUid: 'b1' })])
      const second = await only(store, 'b1')
      assert(Math.abs(timeOf(second.owedSince, 'owedSince') - first) <= APART_MS, 'it is renewed')
      has(second, { generation: 3, settledGeneration: 1 })
      const claim = await lab.until('it is due', async () => (await claimedAll(store))[0])
      await store.finishRead(claim, shows(claim, 'purchased'))
      has(await only(store, 'b1'), { owedSince: null, generation: 3, settledGeneration: 3 })
    },
  },
  {
    name: 'requestRefresh: a burst of events does not put off the read',
    async check({ store, pass }) {
      // If the machine pauses for as long as the pause between two reads, the check proves nothing.
      for (let n = 1; n <= 20; n++) {
        const businessUid = `business of s${n}`
        await known(store, `s${n}`, 'purchased', businessUid)
        await store.accept([eventOf(`s${n}`, { businessUid })])
        await pass(MIN_READ_INTERVAL_MS / 2)
        await store.accept([eventOf(`s${n}`, { businessUid })])
        const putOffTo = timeOf((await only(store, businessUid)).refreshAt, 'refreshAt')
        await store.requestRefresh({ kind: 'business', businessUid, install: null })
        const { readAt, requestedAt, refreshAt } = await only(store, businessUid)
        const soonest = Math.max(
          timeOf(readAt, 'readAt') + MIN_READ_INTERVAL_MS,
          timeOf(requestedAt, 'requestedAt'),
        )
        if (putOffTo <= soonest + APART_MS) continue
        assert(timeOf(refreshAt, 'refreshAt') <= soonest + APART_MS, 'it is put off')
        return
      }
      assert.fail('no event followed another within the pause')
    },
  },
]

/** Events of a subscription until it is due; answers how many of them found it not due yet. */
async function burst({ store, pass }: Lab, subscriptionUid: string): Promise<number> {
  const businessUid = `business of ${subscriptionUid}`
  await known(store, subscriptionUid, 'purchased', businessUid)
  const readAt = timeOf((await only(store, businessUid)).readAt, 'readAt')
  const last = readAt + MAX_READ_INTERVAL_MS
  for (let early = 0; ; early++) {
    await store.accept([eventOf(subscriptionUid, { businessUid })])
    const row = await only(store, businessUid)
    const refreshAt = timeOf(row.refreshAt, 'refreshAt')
    const requestedAt = timeOf(row.requestedAt, 'requestedAt')
    // Due already: the events were further apart than the pause, or the longest interval is over.
    if (refreshAt <= requestedAt) {
      const claim = await claimed(store)
      has(claim, { id: subscriptionUid, generation: early + 2, settledGeneration: 1 })
      await store.finishRead(claim, shows(claim, 'purchased'))
      return early
    }
    const due =
      early === 0 ? readAt + MIN_READ_INTERVAL_MS : Math.min(requestedAt + MIN_READ_INTERVAL_MS, last)
    assert(Math.abs(refreshAt - due) <= APART_MS, `due ${refreshAt - due} ms later than expected`)
    assert(early < 1_000, 'never due')
    await pass(50)
  }
}

function timeOf(time: number | null, what: string): number {
  isNumber(time, what)
  return time as number
}
