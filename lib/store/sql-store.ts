import { type Clock, systemClock } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { nextTurn } from '../waiting.js'
import { endAbandonedLeases } from './abandoned-leases.js'
import { type Asked, createAcceptance } from './acceptance.js'
import { createReadClaims } from './claim-reads.js'
import { createEntryCounts } from './entry-counts.js'
import { createReadFinishes } from './finish-reads.js'
import { asStoreError } from './guarded-store.js'
import { createHandledTopics } from './handled-topics.js'
import { createHints } from './hints.js'
import { createInstances } from './instances.js'
import { createJournal } from './journal.js'
import { createLaneClaims } from './lane-claims.js'
import { createLanes } from './lanes.js'
import { MIGRATIONS } from './migrations.js'
import { createObservation } from './observation.js'
import { createOwnership } from './ownership.js'
import { businessesOf, isNews } from './read-finish.js'
import { createRecordCalls } from './record-calls.js'
import { createRefreshRequests, type Requested } from './request-refresh.js'
import type { Engine } from './schema.js'
import { perform } from './script.js'
import type { Store } from './store.js'
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
  const reads = createReadClaims(engine, subscriptions)
  const { request, adopt } = createRefreshRequests(engine)
  const offsetOf = createStoreTime(engine.clock)
  const lanes = createLanes(engine)
  const laneClaims = createLaneClaims(engine, lanes, offsetOf)
  const topics = createHandledTopics(engine, lanes)
  const journal = createJournal(engine, lanes, topics)
  const entryCounts = createEntryCounts(engine)
  const ownership = createOwnership(engine, clock)
  const health = createWriteHealth({ probe, isDataError: engine.isDataError, clock })
  let opening: Promise<void> | undefined
  let isOpen = false
  let closed = false

  const acceptance = createAcceptance({ engine, ownership, request, journal, health, announce })

  const owned: Engine['write'] = (work) =>
    engine.write(async (trx) => {
      await perform(engine, trx, ownership.check(true))
      return work(trx)
    })
  const finishRead = createReadFinishes({
    engine,
    write: owned,
    subscriptions,
    insertChanges: journal.insertChanges,
    settle: ownership.settle,
  })
  const read: Engine['read'] = (work) =>
    whileOpen(() =>
      engine.read(async (db) => {
        await perform(engine, db, ownership.check(false))
        return work(db)
      }),
    )
  const write: Engine['write'] = (work) => whileOpen(() => health.watch(() => owned(work), false))
  let underWay = 0
  let onIdle = () => {}

  /** One row, written and synced: what a delivery needs at least. */
  function probe() {
    return whileOpen(() => engine.write((trx) => ownership.touch(trx)).then(() => engine.durable()))
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
      await acceptance.settled()
      if (underWay > 0)
        await new Promise<void>((resolve) => {
          onIdle = resolve
        })
      if (opening) await engine.close()
    },

    accept(events) {
      try {
        const requests: Requested[] = []
        for (const event of events) {
          refuseUnfit(event)
          if (!event.refresh) continue
          refuseUnfit(event.refresh)
          requests.push({ request: event.refresh, byEvent: true })
        }
        return keep({ events, requests })
      } catch (error) {
        return Promise.reject(error)
      }
    },

    async requestRefresh(asked) {
      refuseUnfit(asked)
      await keep({ events: [], requests: [{ request: asked, byEvent: false }] })
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
    subscriptionsNamed: (uids) => read((db) => subscriptions.named(db, uids)),

    claimReads: (options) => reads.claim({ read, write }, options),

    renewRead: (claim, leaseMs) => write((trx) => subscriptions.renew(trx, claim, leaseMs)),

    async finishRead(claim, finish) {
      const finished = await whileOpen(() => health.watch(() => finishRead(claim, finish), false))
      if (finished === false) return false
      if (finished === 'too late') {
        announce({ kind: 'requested', businessUid: claim.subscription.businessUid })
        return false
      }
      const superseded = isNews(claim, finish)
      for (const businessUid of businessesOf(claim, finish))
        announce({ kind: 'decided', businessUid, superseded })
      if (finish.changes?.length) announce({ kind: 'journal' })
      return true
    },

    async claimLanes(options) {
      const claims = await laneClaims.claim({ read, write }, options)
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

    ...createObservation(engine, { read, write }, lanes, offsetOf),
    ...createInstances(engine, { read, write }, offsetOf),
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
      isOpen = true
    } catch (error) {
      // A lock or a connection left behind would stand in the way of the next try.
      await engine.close().catch(() => {})
      throw asStoreError(error, 'Cannot open the store')
    }
  }

  function mustBeOpen(): Promise<void> {
    if (closed || !opening)
      throw new MarketplaceError('store_unavailable', 'Cannot use the store: it is not open')
    return opening
  }

  /** Without a promise of its own once the store is open: every delivery comes here. */
  function keep(asked: Asked): Promise<void> {
    const opened = mustBeOpen()
    return isOpen ? acceptance.keep(asked) : opened.then(() => acceptance.keep(asked))
  }

  /** What has begun before `close()` is let finish. */
  async function whileOpen<T>(work: () => Promise<T>): Promise<T> {
    const opened = mustBeOpen()
    underWay++
    try {
      await opened
      return await work()
    } catch (error) {
      throw asStoreError(error, 'Cannot use the store')
    } finally {
      if (--underWay === 0) onIdle()
    }
  }
}
