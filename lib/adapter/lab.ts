import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../ids.js'
import {
  type ClaimLanes,
  type Entry,
  type EntryEnd,
  EVERY_EVENT,
  type LaneFinish,
  type NewEvent,
  type ReadClaim,
  type ReadFinish,
  type RefreshRequest,
  type Store,
  type Subscription,
  subscriptionKey,
  type Topic,
  URGENCY,
  type Urgency,
} from '../store/store.js'
import { idsOf } from './assertions.js'
import { claimOne } from './claim-one.js'
import type { StoreConformanceOptions } from './options.js'
import { STORE_METHODS } from './store-faults.js'

export { has, idsOf, isNumber, same } from './assertions.js'
export { claimOne } from './claim-one.js'

export interface Check {
  name: string
  /** The check is left out if the caller does not offer this. */
  needs?: 'reopen' | 'beside'
  check(lab: Lab): Promise<void>
}

/** The stores and the time of one check. */
export interface Lab {
  /** Open and empty at the start. Every topic has a handler. */
  store: Store
  /** Creates a store over another empty database, not opened, without handlers. */
  create(): Promise<Store>
  /** Closes `store`, and returns a new open one over its data. */
  reopen(): Promise<Store>
  /** Returns another open store over the data of `store`. */
  beside(): Promise<Store>
  /** Lets the store's time advance. */
  pass(ms: number): Promise<void>
  /** Calls `ask` repeatedly until it returns neither undefined nor false. */
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T>
  close(): Promise<void>
}

/** A lease longer than any check, and one that expires soon. */
export const LONG = 600_000
export const SHORT = 50
/** Later than the end of any check. */
export const LATER = 3_600_000

const DEADLINE_MS = 10_000

export async function createLab(options: StoreConformanceOptions): Promise<Lab> {
  const { createStore, reopen, beside, advance } = options
  const stores: Store[] = []

  async function registered(store: Store | Promise<Store> | undefined): Promise<Store> {
    assert(store, 'the option returned no store')
    const made = await store
    for (const method of ['open', 'subscribe', ...STORE_METHODS] as const)
      assert.equal(typeof made[method], 'function', `the store has no method ${method}`)
    stores.push(made)
    return made
  }

  async function opened(store: Store): Promise<Store> {
    await store.open()
    return store
  }

  const lab: Lab = {
    store: await registered(createStore()),
    create: () => registered(createStore()),
    async reopen() {
      await lab.store.close()
      lab.store = await opened(await registered(reopen?.(lab.store)))
      return lab.store
    },
    beside: async () => opened(await registered(beside?.(lab.store))),
    async pass(ms) {
      await (advance ? advance(ms) : sleep(ms))
    },
    async until(what, ask) {
      const deadline = Date.now() + DEADLINE_MS
      for (;;) {
        const answer = await ask()
        if (answer !== undefined && answer !== false) return answer
        if (Date.now() > deadline) assert.fail(`not within ${DEADLINE_MS} ms: ${what}`)
        await lab.pass(10)
      }
    },
    async close() {
      for (const store of stores.reverse()) await store.close()
    },
  }
  try {
    await lab.store.open()
    await handling(lab.store, EVERY_TOPIC)
  } catch (error) {
    await lab.close()
    throw error
  }
  return lab
}

/** An event that names a subscription, unless `more` changes that. */
export function eventOf(subscriptionUid: string, more: Partial<NewEvent> = {}): NewEvent {
  const businessUid = more.businessUid ?? businessOf(subscriptionUid)
  return {
    id: newId(Date.now()),
    kind: 'event',
    name: 'purchasable_subscription/update',
    key: subscriptionKey(subscriptionUid),
    businessUid,
    subscriptionUid,
    payload: '{}',
    issues: null,
    refresh: named(subscriptionUid, businessUid),
    ...more,
  }
}

/** The business of a subscription whose event names no other. */
export const businessOf = (subscriptionUid: string): string => `business of ${subscriptionUid}`

export function named(subscriptionUid: string, businessUid = businessOf(subscriptionUid)): RefreshRequest {
  return { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: 'item' }
}

/** The finish of a successful read that found this state. The next read is due later. */
export function shows(claim: ReadClaim, state: string, more: Partial<ReadFinish> = {}): ReadFinish {
  const { subscriptionUid: uid, businessUid: business_uid } = claim.subscription
  const record = { uid, business_uid, purchasable_uid: 'item', purchase_state: state }
  return {
    found: { record, state, gone: null },
    settled: true,
    failure: null,
    progress: null,
    nextInMs: LATER,
    ...more,
  }
}

/** The finish of a failed read. */
export function fails(failure: string, nextInMs: number | null = LATER): ReadFinish {
  return { settled: false, failure, progress: null, nextInMs }
}

/** Leases one due subscription. */
export async function claimed(
  store: Store,
  options: { urgencies?: readonly Urgency[]; leaseMs?: number; except?: string[] } = {},
): Promise<ReadClaim> {
  const { urgencies = ALL_URGENCIES, leaseMs = LONG, except = [] } = options
  const claim = await claimOne(store, { urgencies, leaseMs, except })
  return claim ?? assert.fail(`claimReads found nothing due of the urgencies ${urgencies.join()}`)
}

export const ALL_URGENCIES: readonly Urgency[] = Object.values(URGENCY)

/** Leases every due subscription. */
export async function claimedAll(store: Store): Promise<ReadClaim[]> {
  const claims: ReadClaim[] = []
  for (;;) {
    const claim = await claimOne(store, { urgencies: ALL_URGENCIES, leaseMs: LONG, except: [] })
    if (!claim) return claims
    claims.push(claim)
    assert(claims.length < 10_000, 'claimReads never returns nothing')
  }
}

/** Stores a subscription and reads it once, so that it is known and not due. */
export async function known(
  store: Store,
  subscriptionUid: string,
  state = 'purchased',
  businessUid?: string,
) {
  await store.requestRefresh(named(subscriptionUid, businessUid))
  const claim = await claimed(store)
  assert.equal(claim.id, subscriptionUid)
  assert.equal(await store.finishRead(claim, shows(claim, state)), true)
}

export async function only(store: Store, businessUid: string): Promise<Subscription> {
  const subscriptions = await store.subscriptionsOf(businessUid)
  assert.equal(subscriptions.length, 1, `${subscriptions.length} subscriptions of ${businessUid}`)
  return subscriptions[0] as Subscription
}

export const EVERY_TOPIC: readonly Topic[] = [EVERY_EVENT, 'unrecognised', 'change']

/** Registers handlers of these topics. None of them is retired. */
export function handling(store: Store, topics: readonly Topic[], rescueMs = 0): Promise<void> {
  return store.handleTopics({ topics, rescueMs, retireMs: LATER })
}

/** An entry with the lease of its lane. */
export type HeldEntry = Entry & { leaseToken: string; lapses: number }

/** Leases due lanes and returns their entries, by default the heads. */
export async function leasedEntries(store: Store, options: Partial<ClaimLanes> = {}): Promise<HeldEntry[]> {
  const claims = await store.claimLanes({
    limit: 100,
    entryLimit: 1,
    leaseMs: LONG,
    topics: EVERY_TOPIC,
    exceptKeys: [],
    ...options,
  })
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

export function renew(store: Store, { key, leaseToken }: HeldEntry, leaseMs: number): Promise<boolean> {
  return store.renewLane({ id: key, leaseToken }, leaseMs)
}

export const DONE: EntryEnd['result'] = { kind: 'done' }
export const DEAD: EntryEnd['result'] = { kind: 'dead', error: 'gave up' }
