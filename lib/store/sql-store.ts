import { type Clock, systemClock } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { endAbandonedLeases } from './abandoned-leases.js'
import { createAcceptance } from './acceptance.js'
import type { Engine } from './engine.js'
import { createEntryCalls } from './entry-calls.js'
import { createEntryCounts } from './entry-counts.js'
import { createHandledTopics } from './handled-topics.js'
import { createHints } from './hints.js'
import { createJournal } from './journal.js'
import { createLanes } from './lanes.js'
import { createLifeCycle } from './life-cycle.js'
import type { Requested } from './merge-requests.js'
import { MIGRATIONS } from './migrations.js'
import { createObservation } from './observation.js'
import { createOwnership } from './ownership.js'
import { createWriteProbe } from './probe-write.js'
import { createJournalPruning } from './prune-journal.js'
import { createReadCalls } from './read-calls.js'
import { createRecordCalls } from './record-calls.js'
import { createRefreshAll } from './refresh-all.js'
import { createRefreshRequests } from './request-refresh.js'
import { requireStorable } from './storable-identifiers.js'
import type { Store } from './store.js'
import { asStoreError } from './store-error.js'
import type { StoreOwner } from './store-owner.js'
import { createStoreTime } from './store-time.js'
import { createSubscriptionUpkeep } from './subscription-upkeep.js'
import { createSubscriptions } from './subscriptions.js'
import { createSuspectCalls } from './suspect-calls.js'
import { createTransactions } from './transactions.js'
import { createWriteHealth } from './write-health.js'

/**
 * The store over either engine. This file and the `…-calls.ts` decide for each call which transaction it runs in, whether
 * it waits for the disk, and which hints follow. The SQL is in the files of the tables.
 */
export function createSqlStore(engine: Engine, clock: Clock = systemClock): Store {
  const { subscribe, notify, announce } = createHints(engine)
  const ownership = createOwnership(engine, clock)
  const offsetOf = createStoreTime(engine.clock)
  const subscriptions = createSubscriptions(engine, offsetOf)
  const upkeep = createSubscriptionUpkeep(engine)
  const { request } = createRefreshRequests(engine)
  const lanes = createLanes(engine)
  const topics = createHandledTopics(engine, lanes)
  const journal = createJournal(engine, lanes)
  const pruneJournal = createJournalPruning(engine, lanes)
  const entryCounts = createEntryCounts(engine)
  const probe = createWriteProbe({ engine, ownership, request, lanes, journal })
  const health = createWriteHealth({
    probe: () => whileOpen(probe),
    fault: () => engine.fault?.(),
    isDataError: engine.isDataError,
    clock,
  })
  const acceptance = createAcceptance({ engine, ownership, request, journal, health, announce })
  const closing = new AbortController()
  const lifeCycle = createLifeCycle({
    begin,
    accepted: acceptance.settled,
    end: () => engine.close(),
    endLongCalls: () => closing.abort(new MarketplaceError('closed', 'Cannot back up: the store was closed')),
  })
  const { calls, onceOpen, whileOpen } = lifeCycle

  const transactions = createTransactions({ engine, ownership, health, whileOpen })
  const { read, write } = transactions

  return {
    ...calls,

    accept(events) {
      try {
        const requests: Requested[] = []
        for (const event of events) {
          requireStorable(event)
          if (!event.refresh) continue
          requireStorable(event.refresh)
          requests.push({ request: event.refresh, cause: 'event' })
        }
        return onceOpen(() => acceptance.accept({ events, requests }))
      } catch (error) {
        return Promise.reject(error)
      }
    },

    async requestRefresh(request, cause = 'request') {
      requireStorable(request)
      await onceOpen(() => acceptance.accept({ events: [], requests: [{ request, cause }] }))
    },

    subscriptionsOf: (businessUid) => read((db) => subscriptions.ofBusiness(db, businessUid)),
    subscriptionsNamed: (uids) => read((db) => subscriptions.named(db, uids)),

    ...createReadCalls({
      engine,
      transactions,
      whileOpen,
      subscriptions,
      insertChanges: journal.insertChanges,
      recordRead: ownership.recordRead,
      notify,
      announce,
    }),
    ...createEntryCalls({ engine, transactions, lifeCycle, lanes, topics, offsetOf, announce }),
    ...createSuspectCalls({ engine, transactions, whileOpen, lanes, offsetOf }),
    ...createRecordCalls({
      engine,
      subscriptions,
      lanes,
      journal,
      offsetOf,
      whileOpen,
      transactions,
      announce,
    }),

    prune: (retention) =>
      write(async (trx) => {
        const { rows, dead } = await pruneJournal(trx, retention)
        return { rows: rows + (await upkeep.prune(trx, retention)), dead }
      }),

    counts: (maxStaleMs) =>
      read(async (db) => ({ ...(await upkeep.counts(db, maxStaleMs)), ...(await entryCounts.counts(db)) })),

    ...createObservation(engine, { read }, offsetOf),
    refreshAll: createRefreshAll(engine, transactions),
    backup: (path) =>
      whileOpen(async () => {
        await ownership.check()
        await engine.backup(path, closing.signal)
      }),
    problem: async (inTimeMs) => health.problem(inTimeMs),
    subscribe,
  }

  async function begin(owner: StoreOwner | undefined) {
    try {
      await engine.open()
      const mark = engine.mark()
      await engine.migrate(MIGRATIONS, (trx) => ownership.requireNoOther(trx, owner))
      if (owner) await ownership.claim(owner)
      if (engine.isLocal) await endAbandonedLeases(engine)
      await engine.durable(mark)
      engine.watch(notify)
    } catch (error) {
      // A lock or a connection that stays open would block the next attempt.
      await engine.close().catch(() => {})
      throw asStoreError(error, 'Cannot open the store')
    }
  }
}
