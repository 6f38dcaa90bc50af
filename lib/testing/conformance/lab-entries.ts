import assert from 'node:assert/strict'
import {
  type ClaimLanes,
  type Entry,
  type EntryEnd,
  EVERY_EVENT,
  type LaneFinish,
  type Store,
  type Topic,
} from '../../store/store.js'

/** A lease that no check outlives, and one that runs out at once. */
export const LONG = 600_000
export const SHORT = 50
/** Far enough ahead for nothing to come due by itself. */
export const LATER = 3_600_000

export const idsOf = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id)

export const EVERY_TOPIC: readonly Topic[] = [EVERY_EVENT, 'unrecognised', 'change']

/** Handlers of these topics are known to all; none of them is retired. */
export function handling(store: Store, topics: readonly Topic[], rescueMs = 0): Promise<void> {
  return store.handleTopics({ topics, rescueMs, retireMs: LATER })
}

/** An entry with the lease of its lane. */
export type HeldEntry = Entry & { leaseToken: string; lapses: number }

/** The heads of due lanes. */
export async function entries(store: Store, options: Partial<ClaimLanes> = {}): Promise<HeldEntry[]> {
  const claims = await store.claimLanes({
    limit: 100,
    entries: 1,
    leaseMs: LONG,
    topics: EVERY_TOPIC,
    exceptKeys: [],
    ...options,
  })
  return claims.flatMap(({ id, leaseToken, lapses, entries: handedOut }) => {
    assert(handedOut.length > 0, `the lane ${id} was leased and nothing of it handed out`)
    return handedOut.map((each) => ({ ...each, leaseToken, lapses }))
  })
}

/** The one entry that is due now. */
export async function entry(store: Store, options: Partial<ClaimLanes> = {}): Promise<HeldEntry> {
  const found = await entries(store, options)
  assert.equal(found.length, 1, `claimLanes handed out ${found.length} entries`)
  return found[0] as HeldEntry
}

export function ending(
  { id, key, leaseToken, attempt }: HeldEntry,
  result: EntryEnd['result'],
  keep = false,
): LaneFinish {
  return { id: key, leaseToken, results: [{ id, attempt, result }], keep }
}

/** Finishes lanes; answers the entries of those whose lease was held. */
export async function finish(store: Store, finishes: readonly LaneFinish[]): Promise<string[]> {
  const held = await store.finishLanes(finishes)
  return finishes.flatMap(({ id, results }) => (held.includes(id) ? idsOf(results) : []))
}

export function renew(store: Store, { key, leaseToken }: HeldEntry, leaseMs: number): Promise<boolean> {
  return store.renewLane({ id: key, leaseToken }, leaseMs)
}

export const DONE: EntryEnd['result'] = { kind: 'done' }
export const DEAD: EntryEnd['result'] = { kind: 'dead', error: 'gave up' }
