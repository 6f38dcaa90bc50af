import { URGENCY } from '../../dist/lib/store/port/store.js'
import { medianOf } from '../harness/statistics.mjs'

const CLAIM = { limit: 8, leaseMs: 1_000 }
/** Earlier deliveries may still cause reads, but not of this class. */
const READS = { ...CLAIM, urgencies: [URGENCY.track], except: [] }

/**
 * The median of the milliseconds of a worker's look for a due read and a due lane. `events` are those that the process has
 * handlers for: entries of others may be pending for another process. Throws if a look finds work: what it claims is
 * never handled, so it would be suspected, and all later looks would find it again.
 */
export async function lookMs(store, events, count) {
  const topics = ['change', ...events.map((name) => `event:${name}`)]
  const lanesOf = { ...CLAIM, entryLimit: 128, topics, exceptKeys: [] }
  const times = []
  for (let i = 0; i < count; i++) {
    const beganAt = performance.now()
    const reads = await store.claimReads(READS)
    const lanes = await store.claimLanes(lanesOf)
    times.push(performance.now() - beganAt)
    if (reads.length + lanes.length > 0)
      throw new Error('there is work, so a look that finds none cannot be measured')
  }
  return medianOf(times)
}

export async function medianMs(count, work) {
  const times = []
  for (let i = 0; i < count; i++) times.push(await timed(work))
  return medianOf(times)
}

export async function timed(work) {
  const beganAt = performance.now()
  await work()
  return performance.now() - beganAt
}
