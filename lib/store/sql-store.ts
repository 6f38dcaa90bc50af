import { type Clock, systemClock } from '../clock.js'
import { nextTurn } from '../waiting.js'
import { endAbandonedLeases } from './abandoned-leases.js'
import { createAcceptance } from './acceptance.js'
import { createReadClaims } from './claim-reads.js'
import type { Engine } from './engine.js'
import { createEntryCounts } from './entry-counts.js'
import { finishLanes } from './finish-lanes.js'
import { createReadFinishes } from './finish-reads.js'
import { asStoreError } from './guarded-store.js'
import { createHandledTopics } from './handled-topics.js'
import { createHints } from './hints.js'
import { createInstances } from './instances.js'
import { createJournal } from './journal.js'
import { createLaneClaims } from './lane-claims.js'
import { createLanes } from './lanes.js'
import { createLifeCycle } from './life-cycle.js'
import type { Requested } from './merge-requests.js'
import { MIGRATIONS } from './migrations.js'
import { createObservation } from './observation.js'
import { createOwnership } from './ownership.js'
import { createJournalPruning } from './prune-journal.js'
import { businessesOf, isNews } from './read-finish.js'
import { createRecordCalls } from './record-calls.js'
import { createRefreshRequests } from './request-refresh.js'
import { perform } from './script.js'
import { requireStorable } from './storable-identifiers.js'
import type { Store } from './store.js'
import type { StoreOwner } from './store-owner.js'
import { createStoreTime } from './store-time.js'
import { createSubscriptionUpkeep } from './subscription-upkeep.js'
import { createSubscriptions } from './subscriptions.js'
import { createWriteHealth } from './write-health.js'

/**
 * The store over either engine. This file decides for each call which transaction it runs in, whether it waits for the
 * disk, and which hints follow. The SQL is in the files of the tables.
 */
export function createSqlStore(engine: Engine, clock: Clock = systemClock): Store {
  const { subscribe, notify, announce } = createHints(engine)
  const ownership = createOwnership(engine, clock)
  const offsetOf = createStoreTime(engine.clock)
  const subscriptions = createSubscriptions(engine)
  const upkeep = createSubscriptionUpkeep(engine)
  const readClaims = createReadClaims(engine, subscriptions)
  const { request, adopt } = createRefreshRequests(engine)
  const lanes = createLanes(engine)
  const laneClaims = createLaneClaims(engine, lanes, offsetOf)
  const topics = createHandledTopics(engine, lanes)
  const journal = createJournal(engine, lanes, topics)
  const pruneJournal = createJournalPruning(engine)
  const entryCounts = createEntryCounts(engine)
  const health = createWriteHealth({ probe, isDataError: engine.isDataError, clock })
  const acceptance = createAcceptance({ engine, ownership, request, journal, health, announce })
  const { calls, isClosed, onceOpen, whileOpen } = createLifeCycle({
    begin,
    accepted: acceptance.settled,
    end: () => engine.close(),
  })

  const writeAsOwner: Engine['write'] = (work) =>
    engine.write(async (trx) => {
      await perform(engine, trx, ownership.check(true))
      return work(trx)
    })
  const read: Engine['read'] = (work) =>
    whileOpen(() =>
      engine.read(async (db) => {
        await perform(engine, db, ownership.check(false))
        return work(db)
      }),
    )
  const write: Engine['write'] = (work) => whileOpen(() => health.watch(() => writeAsOwner(work), false))
  const finishRead = createReadFinishes({
    engine,
    write: writeAsOwner,
    subscriptions,
    insertChanges: journal.insertChanges,
    recordRead: ownership.recordRead,
  })

  return {
    ...calls,

    accept(events) {
      try {
        const requests: Requested[] = []
        for (const event of events) {
          requireStorable(event)
          if (!event.refresh) continue
          requireStorable(event.refresh)
          requests.push({ request: event.refresh, byEvent: true })
        }
        return onceOpen(() => acceptance.accept({ events, requests }))
      } catch (error) {
        return Promise.reject(error)
      }
    },

    async requestRefresh(request) {
      requireStorable(request)
      await onceOpen(() => acceptance.accept({ events: [], requests: [{ request, byEvent: false }] }))
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

    claimReads: (options) => readClaims.claim({ read, write }, options),
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
    finishLanes: (finishes) => write((trx) => finishLanes({ engine, lanes }, trx, finishes)),

    async handleTopics(options) {
      const moved = await whileOpen(() => topics.handle(options, engine.write, isClosed))
      if (moved) announce({ kind: 'journal' })
    },

    ...createRecordCalls({ engine, subscriptions, lanes, journal, offsetOf, whileOpen, write, announce }),

    prune: (retention) =>
      write(async (trx) => {
        const { rows, dead } = await pruneJournal(trx, retention)
        return { rows: rows + (await upkeep.prune(trx, retention)), dead }
      }),

    counts: () => read(async (db) => ({ ...(await upkeep.counts(db)), ...(await entryCounts.counts(db)) })),

    ...createObservation(engine, { read, write }, offsetOf),
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
      engine.watch(notify)
    } catch (error) {
      // A lock or a connection that stays open would block the next attempt.
      await engine.close().catch(() => {})
      throw asStoreError(error, 'Cannot open the store')
    }
  }

  /** Writes and syncs one row: the least that a delivery needs. */
  function probe() {
    return whileOpen(() => engine.write((trx) => ownership.touch(trx)).then(() => engine.durable()))
  }
}
