import assert from 'node:assert/strict'
import {
  type ClaimLanes,
  type Entry,
  type EntryEnd,
  EVERY_EVENT,
  type LaneFinish,
  type Store,
  type Topic,
} from '../../../../lib/store/port/store.js'
import { idsOf } from '../assertions.js'
import { LATER, LONG } from '../lease-times.js'

export const EVERY_TOPIC: readonly Topic[] = [EVERY_EVENT, 'unrecognised', 'change']

/** Names these topics. No event is set aside. */
export function handling(store: Store, topics: readonly Topic[], rescueMs = 0): Promise<void> {
  return store.handleTopics({ topics, rescueMs, retireMs: LATER })
}

/** An entry with the lease of its lane. */
export type HeldEntry = Entry & { leaseToken: string; lapses: number }

/** Leases due lanes and returns their entries, by default the heads. If none is due, it leases suspect lanes. */
export async function leasedEntries(store: Store, options: Partial<ClaimLanes> = {}): Promise<HeldEntry[]> {
  const all = { limit: 100, entryLimit: 1, leaseMs: LONG, topics: EVERY_TOPIC, exceptKeys: [], ...options }
  const claims = await store.claimLanes(all)
  while (claims.every(({ lapses }) => lapses > 0) && claims.length < all.limit) {
    const suspect = await store.claimSuspectLane(all)
    if (!suspect) break
    claims.push(suspect)
  }
  return claims.flatMap(({ id, leaseToken, lapses, entries: handedOut }) => {
    assert(handedOut.length > 0, `the lane ${id} was leased without an entry`)
    return handedOut.map((each) => ({ ...each, leaseToken, lapses }))
  })
}

/** Leases the only due entry. */
export async function leasedEntry(store: Store, options: Partial<ClaimLanes> = {}): Promise<HeldEntry> {
  const found = await leasedEntries(store, options)
  assert.equal(found.length, 1, `claimLanes returned ${found.length} entries`)
  return found[0] as HeldEntry
}

export function ending(
  { id, key, leaseToken, attempt }: HeldEntry,
  result: EntryEnd['result'],
  keepLease = false,
): LaneFinish {
  return { id: key, leaseToken, results: [{ id, attempt, result }], keepLease }
}

/** Finishes lanes, and returns the entries of those whose lease was held. */
export async function finish(store: Store, finishes: readonly LaneFinish[]): Promise<string[]> {
  const held = await store.finishLanes(finishes)
  return finishes.flatMap(({ id, results }) => (held.includes(id) ? idsOf(results) : []))
}

export const DONE: EntryEnd['result'] = { kind: 'done' }
export const DEAD: EntryEnd['result'] = { kind: 'dead', error: 'gave up' }
/** The result of a try that is repeated. */
export const retry = (inMs: number): EntryEnd['result'] => ({ kind: 'retry', inMs, error: 'not yet' })

/** The topic of the events that `eventOf` makes. */
export const UPDATE = 'event:purchasable_subscription/update'
