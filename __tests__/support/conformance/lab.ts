import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type {
  Cause,
  ClaimLanes,
  EntryEnd,
  EntryFilter,
  ReadClaim,
  ReadFinish,
  Store,
  Subscription,
  SubscriptionFilter,
  Topic,
} from '../../../lib/store/port/store.js'
import { idsOf } from './assertions.js'
import * as lanes from './lanes/lane-calls.js'
import * as reads from './reads/read-calls.js'

export { has, idsOf, isNumber, same } from './assertions.js'
export * from './lanes/lane-calls.js'
export * from './lease-times.js'
export * from './reads/read-calls.js'

/** Promises of the store, and for each the calls that show it. */
export type Checks = Record<string, (lab: Lab) => Promise<void>>

/** How the suite gets the stores it checks. It opens and closes every one of them. */
export interface StoreConformanceOptions {
  /** Returns a store over a new, empty database, not opened. */
  createStore(): Store | Promise<Store>
  /** Returns a new store over the data of a closed one, not opened. Without this option, its checks are left out. */
  reopen?: ((closed: Store) => Store | Promise<Store>) | undefined
  /**
   * Returns another store over the data of an open one, as another process would have, not opened. Leave the option out
   * if the engine allows only one process. Then the checks of two stores are left out.
   */
  beside?: ((open: Store) => Store | Promise<Store>) | undefined
  /** Advances the clock of the stores, if it is the caller's. Without this option the suite waits, 250 ms at most. */
  advance?: ((ms: number) => unknown) | undefined
}

/** A store, with what the checks do with it again and again. The first one is open and empty; every topic has a handler. */
export interface Lab extends Store {
  /** Another empty database, not opened, without handlers. */
  create(): Promise<Lab>
  /** Another empty database, open, without handlers. */
  withoutHandlers(): Promise<Lab>
  /** Closes the store, and opens a new one over its data. */
  reopened(): Promise<Lab>
  /** Another open store over the same data. */
  beside(): Promise<Lab>

  /** Lets the store's time advance. */
  pass(ms: number): Promise<void>
  /** Calls `ask` repeatedly until it returns neither undefined nor false. */
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T>

  /** Requests a read of a subscription. */
  request(uid: string, businessUid?: string, cause?: Extract<Cause, 'request' | 'import'>): Promise<void>
  /** Leases one read that is due now. */
  claim(options?: Parameters<typeof reads.claimed>[1]): Promise<ReadClaim>
  /** Leases every read that is due now. */
  claimAll(): Promise<ReadClaim[]>
  /** Leases the next read as soon as it is due: of this subscription, or of any. */
  next(uid?: string): Promise<ReadClaim>
  /** Finishes a read that found this state. */
  succeed(claim: ReadClaim, state: string, more?: Partial<ReadFinish>): Promise<boolean>
  /** Finishes a read that found nothing. */
  fail(claim: ReadClaim, failure: string, nextInMs?: number | null): Promise<boolean>
  /** Does the next read as soon as it is due, and returns its lease. */
  read(state: string, more?: Partial<ReadFinish>): Promise<ReadClaim>
  /** Requests a read of a stored subscription, which the platform refuses. */
  refuse(uid: string, nextInMs?: number): Promise<ReadClaim>
  /** Stores a subscription and reads it once, so that it is known and not due. */
  known(uid: string, state?: string, businessUid?: string): Promise<void>
  /** The only subscription of a business. */
  only(businessUid: string): Promise<Subscription>
  /** The uids of the stored subscriptions, in the order of their bytes. */
  uids(filter?: Partial<SubscriptionFilter>): Promise<string[]>

  /** Names these topics. */
  handle(topics: readonly Topic[], rescueMs?: number): Promise<void>
  /** Leases due lanes and returns their entries, by default the heads. If none is due, it leases suspect lanes. */
  lease(options?: Partial<ClaimLanes>): Promise<lanes.HeldEntry[]>
  /** Leases the only due entry. */
  leaseOne(options?: Partial<ClaimLanes>): Promise<lanes.HeldEntry>
  /** Leases the next entry as soon as it is due. */
  nextEntry(): Promise<lanes.HeldEntry>
  /** Renews the lease of an entry's lane. */
  renew(entry: lanes.HeldEntry, leaseMs: number): Promise<boolean>
  /** Finishes entries, each with its result, the last of which is that of all others. Returns the ids of those still held. */
  end(entries: readonly lanes.HeldEntry[], ...results: EntryEnd['result'][]): Promise<string[]>
  /** The ids of the listed entries, newest first. */
  ids(filter?: EntryFilter): Promise<string[]>
}

const DEADLINE_MS = 10_000

/** Runs a check on stores of its own. */
export async function runInLab(options: StoreConformanceOptions, check: Checks[string]): Promise<void> {
  const opened: Store[] = []
  try {
    const lab = labOver(await options.createStore(), options, opened)
    await lab.open()
    await lab.handle(lanes.EVERY_TOPIC)
    await check(lab)
  } finally {
    for (const store of opened.reverse()) await store.close()
  }
}

function labOver(store: Store, options: StoreConformanceOptions, opened: Store[]): Lab {
  opened.push(store)
  const { createStore, reopen, beside, advance = sleep } = options

  async function openedLab(made: Store | Promise<Store> | undefined): Promise<Lab> {
    assert(made, 'the option returned no store')
    const lab = labOver(await made, options, opened)
    await lab.open()
    return lab
  }

  const pass: Lab['pass'] = async (ms) => void (await advance(ms))

  const until: Lab['until'] = async (what, ask) => {
    const deadline = Date.now() + DEADLINE_MS
    for (;;) {
      const answer = await ask()
      if (answer !== undefined && answer !== false) return answer
      if (Date.now() > deadline) assert.fail(`not within ${DEADLINE_MS} ms: ${what}`)
      await pass(10)
    }
  }

  const lab: Lab = {
    ...store,
    create: async () => labOver(await createStore(), options, opened),
    withoutHandlers: () => openedLab(createStore()),
    async reopened() {
      await store.close()
      return openedLab(reopen?.(store))
    },
    beside: () => openedLab(beside?.(store)),
    pass,
    until,

    request: (uid, businessUid, cause) => store.requestRefresh(reads.named(uid, businessUid), cause),
    claim: (ask) => reads.claimed(store, ask),
    claimAll: () => reads.claimedAll(store),
    next: (uid) =>
      until('a read is due', async () =>
        (await lab.claimAll()).find(({ id }) => uid === undefined || uid === id),
      ),
    succeed: (claim, state, more) => store.finishRead(claim, reads.shows(claim, state, more)),
    fail: (claim, failure, nextInMs) => store.finishRead(claim, reads.fails(failure, nextInMs)),
    async read(state, more) {
      const claim = await lab.next()
      assert.equal(await lab.succeed(claim, state, more), true)
      return claim
    },
    async refuse(uid, nextInMs) {
      const [row] = await store.subscriptionsNamed([uid])
      await lab.request(uid, row?.businessUid)
      const claim = await lab.next()
      assert.equal(claim.id, uid)
      await lab.fail(claim, 'token_refused', nextInMs)
      return claim
    },
    known: (uid, state, businessUid) => reads.known(store, uid, state, businessUid),
    only: (businessUid) => reads.only(store, businessUid),
    uids: async (filter) => reads.uidsOf(await store.listSubscriptions({ limit: 100, ...filter })),

    handle: (topics, rescueMs) => lanes.handling(store, topics, rescueMs),
    lease: (ask) => lanes.leasedEntries(store, ask),
    leaseOne: (ask) => lanes.leasedEntry(store, ask),
    nextEntry: () => until('an entry is due', async () => (await lab.lease())[0]),
    renew: ({ key, leaseToken }, leaseMs) => store.renewLane({ id: key, leaseToken }, leaseMs),
    end: (entries, ...results) =>
      lanes.finish(
        store,
        entries.map((entry, i) => lanes.ending(entry, results[i] ?? results.at(-1) ?? lanes.DONE)),
      ),
    ids: async (filter = {}) => idsOf(await store.listEntries(filter)),
  }
  return lab
}
