import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../../ids.js'
import {
  type NewEvent,
  type ReadClaim,
  type ReadFinish,
  type RefreshRequest,
  type Store,
  type Subscription,
  subscriptionKey,
} from '../../store/store.js'
import { EVERY_TOPIC, handling, LATER, LONG } from './lab-entries.js'
import type { StoreConformanceOptions } from './options.js'
import { STORE_METHODS } from './store-faults.js'

export * from './lab-entries.js'

export interface Check {
  name: string
  /** Left out where the caller does not offer this. */
  needs?: 'reopen' | 'beside'
  check(lab: Lab): Promise<void>
}

/** One check's own stores and time. */
export interface Lab {
  /** Open and empty at the start; every topic has a handler. */
  store: Store
  /** One more over another empty database; not opened, and without handlers. */
  create(): Promise<Store>
  /** Closes `store`, and answers a new one over its data, open. */
  reopen(): Promise<Store>
  /** One more over the data of `store`, open. */
  beside(): Promise<Store>
  /** Lets this much of the store's time pass. */
  pass(ms: number): Promise<void>
  /** Asks again and again until the answer is neither undefined nor false. */
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T>
  close(): Promise<void>
}

const DEADLINE_MS = 10_000

export async function createLab(options: StoreConformanceOptions): Promise<Lab> {
  const { createStore, reopen, beside, advance } = options
  const stores: Store[] = []

  async function kept(store: Store | Promise<Store> | undefined): Promise<Store> {
    assert(store, 'the caller answered no store')
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
    store: await kept(createStore()),
    create: () => kept(createStore()),
    async reopen() {
      await lab.store.close()
      lab.store = await opened(await kept(reopen?.(lab.store)))
      return lab.store
    },
    beside: async () => opened(await kept(beside?.(lab.store))),
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

/** An event that names a subscription, unless told otherwise. */
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
    wanted: named(subscriptionUid, businessUid),
    ...more,
  }
}

/** The business of a subscription whose event names no other. */
export const businessOf = (subscriptionUid: string): string => `business of ${subscriptionUid}`

export function named(subscriptionUid: string, businessUid = businessOf(subscriptionUid)): RefreshRequest {
  return { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: 'item' }
}

/** A good read that found this state; the next one is far away. */
export function shows(claim: ReadClaim, state: string, more: Partial<ReadFinish> = {}): ReadFinish {
  const { subscriptionUid: uid, businessUid: business_uid } = claim.subscription
  const record = { uid, business_uid, purchasable_uid: 'item', purchase_state: state }
  return {
    found: { record, state, gone: null, confirmed: true },
    settled: true,
    failure: null,
    progress: null,
    nextInMs: LATER,
    ...more,
  }
}

/** A read that showed nothing. */
export function fails(failure: string, nextInMs: number | null = LATER): ReadFinish {
  return { settled: false, failure, progress: null, nextInMs }
}

/** The lease of whatever is due for a read now. */
export async function claimed(
  store: Store,
  options: { lane?: 'known' | 'new'; leaseMs?: number; except?: string[] } = {},
): Promise<ReadClaim> {
  const { lane = 'new', leaseMs = LONG, except = [] } = options
  const claim = await store.claimRead({ lane, leaseMs, except })
  assert(claim, `claimRead found nothing due in the lane ${lane}`)
  return claim
}

/** Every subscription that is due in both lanes, each leased. */
export async function claimedAll(store: Store): Promise<ReadClaim[]> {
  const claims: ReadClaim[] = []
  for (const lane of ['new', 'known'] as const) {
    for (;;) {
      const claim = await store.claimRead({ lane, leaseMs: LONG, except: [] })
      if (!claim) break
      claims.push(claim)
      assert(claims.length < 10_000, 'claimRead never comes to an end')
    }
  }
  return claims
}

/** Learns of a subscription and reads it once: known, and not due. */
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

/** That two values are alike in structure. Rows of another realm (jest gives each file one) have other prototypes. */
export function same(actual: unknown, expected: unknown, message?: string): void {
  assert.deepStrictEqual(ownRealm(actual), ownRealm(expected), message)
}

function ownRealm(value: unknown): unknown {
  if (Array.isArray(value)) return Array.from(value, ownRealm)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, ownRealm(each)]))
}

/** That `actual` has these fields with these values, whatever else it has. */
export function has<T extends object>(actual: T | undefined, expected: Partial<T>): void {
  assert(actual, 'there is nothing')
  const named = Object.keys(expected) as (keyof T)[]
  same(Object.fromEntries(named.map((key) => [key, actual[key]])), expected)
}

/** A time or a count as the port has it: a number, never a bigint or the text of one. */
export function isNumber(value: unknown, what: string): asserts value is number {
  assert(Number.isSafeInteger(value), `${what} is ${typeof value} ${String(value)}`)
}
