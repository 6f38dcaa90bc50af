import { type Clock, systemClock } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { nextTurn } from '../waiting.js'
import { endAbandonedLeases } from './abandoned-leases.js'
import { createReadClaims } from './claim-read.js'
import { createEntryCounts } from './entry-counts.js'
import { createGroupCommit } from './group-commit.js'
import { asStoreError } from './guarded-store.js'
import { createHandledTopics } from './handled-topics.js'
import { createHints } from './hints.js'
import { createJournal } from './journal.js'
import { createLanes } from './lanes.js'
import { MIGRATIONS } from './migrations.js'
import { createOwnership } from './ownership.js'
import { businessesOf, isNews } from './read-finish.js'
import { createRecordCalls } from './record-calls.js'
import { createRefreshRequests, type Requested } from './request-refresh.js'
import type { Engine } from './schema.js'
import { isTopicAmong, type NewEvent, type Store } from './store.js'
import type { StoreOwner } from './store-owner.js'
import { createStoreTime } from './store-time.js'
import { createSubscriptionUpkeep } from './subscription-upkeep.js'
import { createSubscriptions } from './subscriptions.js'
import { refuseUnfit } from './unfit-identifiers.js'
import { createWriteHealth } from './write-health.js'

/** The store over either engine: what is durable, what shares a commit, and who is told. The SQL is in its two tables' files. */
export function createSqlStore(engine: Engine, clock: Clock = systemClock): Store {
  const { subscribe, tell, announce } = createHints(engine)
  const subscriptions = createSubscriptions(engine)
  const upkeep = createSubscriptionUpkeep(engine)
  const reads = createReadClaims(engine)
  const { request, adopt } = createRefreshRequests(engine)
  const offsetOf = createStoreTime(engine.clock)
  const lanes = createLanes(engine, offsetOf)
  const topics = createHandledTopics(engine, lanes)
  const journal = createJournal(engine, lanes, topics)
  const entryCounts = createEntryCounts(engine)
  const ownership = createOwnership(engine, clock)
  const health = createWriteHealth({ probe, isDataError: engine.isDataError, clock })
  let opening: Promise<void> | undefined
  let closed = false

  const submit = createGroupCommit<{ events: readonly NewEvent[]; requests: readonly Requested[] }>({
    isDataError: engine.isDataError,
    sizeOf: ({ events }) => ({
      rows: Math.max(1, events.length),
      bytes: events.reduce((bytes, { payload }) => bytes + Buffer.byteLength(payload), 0),
    }),
    async commit(batch) {
      const requests = batch.flatMap((item) => item.requests)
      await owned(async (trx) => {
        // In the order of a read's finish, so that neither waits for the other: subscriptions, then lanes.
        await request(trx, requests)
        await journal.insert(
          trx,
          batch.flatMap((item) => item.events),
        )
      })
      // What is committed is visible to others before it is durable; only the reply must wait.
      await engine.durable()
    },
  })

  const owned: Engine['write'] = (work) =>
    engine.write(async (trx) => {
      await ownership.check(trx, true)
      return work(trx)
    })
  const read: Engine['read'] = (work) =>
    whileOpen(() =>
      engine.read(async (db) => {
        await ownership.check(db, false)
        return work(db)
      }),
    )
  const write: Engine['write'] = (work) => whileOpen(() => health.watch(() => owned(work), false))
  const keep: typeof submit = (item) => whileOpen(() => health.watch(() => submit(item), true))
  const underWay = new Set<Promise<unknown>>()

  /** One row, written and synced: what a delivery needs at least. */
  function probe() {
    return whileOpen(async () => {
      await engine.write((trx) => ownership.touch(trx))
      await engine.durable()
    })
  }

  return {
    async open(owner) {
      if (closed) throw new MarketplaceError('closed', 'Cannot open the store: it was closed')
      opening ??= begin(owner)
      // A failed opening may be tried again.
      await opening.catch((error) => {
        opening = undefined
        throw error
      })
    },

    async close() {
      if (closed) return
      closed = true
      await opening?.catch(() => {})
      await Promise.allSettled(underWay)
      if (opening) await engine.close()
    },

    async accept(events) {
      const wanted = events.flatMap((event) => event.wanted ?? [])
      for (const event of events) refuseUnfit(event)
      for (const each of wanted) refuseUnfit(each)
      await keep({ events, requests: wanted.map((request) => ({ request, byEvent: true })) })
      for (const each of wanted) announce({ kind: 'requested', businessUid: each.businessUid })
      announce({ kind: 'journal' })
    },

    async requestRefresh(asked) {
      refuseUnfit(asked)
      await keep({ events: [], requests: [{ request: asked, byEvent: false }] })
      announce({ kind: 'requested', businessUid: asked.businessUid })
    },

    async adoptItems(purchasableUids) {
      let adopted = 0
      for (let batch = 1; batch > 0; adopted += batch) {
        batch = await write((trx) => adopt(trx, purchasableUids))
        await nextTurn()
      }
      if (adopted > 0) announce({ kind: 'requested', businessUid: null })
    },

    subscriptionsOf: (businessUid) => read((db) => subscriptions.ofBusiness(db, businessUid)),

    async claimRead(options) {
      for (let looks = 0; looks < MOST_LOOKS; looks++) {
        const claimed = await write(async (trx) => {
          const next = await reads.next(trx, options)
          return typeof next === 'object' ? subscriptions.lease(trx, next.uid, options) : next
        })
        if (claimed !== 'put off') return claimed
        await nextTurn()
      }
      return undefined
    },

    renewRead: (claim, leaseMs) => write((trx) => subscriptions.renew(trx, claim, leaseMs)),

    async finishRead(claim, finish) {
      const changes = finish.changes ?? []
      const businesses = businessesOf(claim, finish)
      const finished = await write(async (trx) => {
        // Two reads of one business's subscriptions must not each decide by the other's old state, nor a read go on while
        // the business that it found out about is erased.
        if (changes.length > 0 || businesses.length > 1) await engine.holdNames?.(trx, businesses)
        const written = await subscriptions.finish(trx, claim, finish)
        if (written !== 'written') return written
        if (finish.found) await ownership.settle(trx)
        for (const { id, key, businessUid, payload } of changes) {
          const siblings = await subscriptions.ofBusiness(trx, businessUid)
          const { subscriptionUid } = claim.subscription
          const change = { id, key, businessUid, subscriptionUid }
          await journal.insertChange(trx, { ...change, payload: payload(siblings, engine.clock.now()) })
        }
        return written
      })
      if (finished === false) return false
      if (finished === 'too late') {
        announce({ kind: 'requested', businessUid: claim.subscription.businessUid })
        return false
      }
      const superseded = isNews(claim, finish)
      for (const businessUid of businesses) announce({ kind: 'decided', businessUid, superseded })
      if (changes.length > 0) announce({ kind: 'journal' })
      return true
    },

    async claimLanes(options) {
      const named = new Set(options.topics)
      // Nothing is written while nothing is due.
      const topicsNow = await read((db) => lanes.topicsOf(db, 'due'))
      const due = topicsNow.filter((topic) => isTopicAmong(named, topic))
      if (due.length === 0) return []
      const claims = await write((trx) => lanes.claim(trx, { ...options, due }))
      // A handler must not see what a power cut could still undo.
      if (claims.length > 0) await whileOpen(() => engine.durable())
      return claims
    },
    renewLane: (lane, leaseMs) => write((trx) => lanes.renew(trx, lane, leaseMs)),
    finishLanes: (finishes) => write((trx) => lanes.finish(trx, finishes)),

    async handleTopics(options) {
      const moved = await whileOpen(() => topics.handle(options, engine.write, () => closed))
      if (moved) announce({ kind: 'journal' })
    },

    ...createRecordCalls({ engine, subscriptions, lanes, journal, offsetOf, whileOpen, write, announce }),

    prune: (retention) =>
      write(async (trx) => {
        const { rows, dead } = await journal.prune(trx, retention)
        return { rows: rows + (await upkeep.prune(trx, retention)), dead }
      }),

    counts: () => read(async (db) => ({ ...(await upkeep.counts(db)), ...(await entryCounts.counts(db)) })),

    backup: (path) => whileOpen(() => engine.backup(path)),

    problem: health.problem,

    subscribe,
  }

  async function begin(owner: StoreOwner | undefined) {
    try {
      await engine.open()
      await engine.migrate(MIGRATIONS)
      if (owner) await ownership.claim(owner)
      if (engine.isLocal) await endAbandonedLeases(engine)
      await engine.durable()
      engine.watch(tell)
    } catch (error) {
      // A lock or a connection left behind would stand in the way of the next try.
      await engine.close().catch(() => {})
      throw asStoreError(error, 'Cannot open the store')
    }
  }

  /** What has begun before `close()` is let finish. */
  async function whileOpen<T>(work: () => Promise<T>): Promise<T> {
    if (closed || !opening)
      throw new MarketplaceError('store_unavailable', 'Cannot use the store: it is not open')
    const call = opening.then(work)
    underWay.add(call)
    try {
      return await call
    } catch (error) {
      throw asStoreError(error, 'Cannot use the store')
    } finally {
      underWay.delete(call)
    }
  }
}

/** Transactions of one claim, each of which puts off a batch of what cannot be read now. */
const MOST_LOOKS = 200
