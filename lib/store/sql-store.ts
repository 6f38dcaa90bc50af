import { type Clock, systemClock } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import { createAcceptance } from './acceptance.js'
import { requireStorable } from './checks.js'
import { createHints } from './hints.js'
import { createEntryCounts } from './journal/counts.js'
import { createHandledTopics } from './journal/handled-topics.js'
import { createJournal } from './journal/journal.js'
import { createJournalPruning } from './journal/prune.js'
import { createRecordCalls } from './journal/record-calls.js'
import { createLaneCalls } from './lanes/lane-calls.js'
import { createLanes } from './lanes/lanes.js'
import { endAbandonedLeases } from './leases/leases.js'
import { createSuspects } from './leases/suspects.js'
import { createLifeCycle, createTransactions } from './life-cycle.js'
import { createObservation } from './operators.js'
import { createOwnership } from './ownership.js'
import type { Store } from './port/store.js'
import type { StoreOwner } from './port/store-owner.js'
import type { Engine } from './sql/engine.js'
import { MIGRATIONS } from './sql/migrations.js'
import { asStoreError } from './sql/store-error.js'
import { createStoreTime } from './sql/store-time.js'
import type { Requested } from './subscriptions/merge-requests.js'
import { createReadCalls } from './subscriptions/read-calls.js'
import { createRefreshRequests } from './subscriptions/requests.js'
import { createSubscriptions } from './subscriptions/subscriptions.js'
import { createRefreshAll, createSubscriptionUpkeep } from './subscriptions/upkeep.js'
import { createWriteHealth, createWriteProbe } from './write-health.js'

/**
 * The store over either engine. This file and the `…-calls.ts` decide for each call which transaction it runs in, whether
 * it waits for the disk, and which hints follow. The SQL is in the files of the tables.
 */
export function createSqlStore(engine: Engine, clock: Clock = systemClock): Store {
  const hints = createHints(engine)
  const { announce } = hints
  const ownership = createOwnership(engine, clock)
  const offsetOf = createStoreTime(engine.clock)
  const subscriptions = createSubscriptions(engine, offsetOf)
  const upkeep = createSubscriptionUpkeep(engine)
  const { request } = createRefreshRequests(engine)
  const lanes = createLanes(engine)
  const topics = createHandledTopics(engine, lanes)
  const journal = createJournal(engine, lanes)
  const pruneJournal = createJournalPruning(engine, lanes)
  const suspects = createSuspects(engine)
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
    end: () => engine.close(),
    endLongCalls: () => closing.abort(new MarketplaceError('closed', 'Cannot back up: the store was closed')),
    isDataError: engine.isDataError,
  })
  const { calls, isClosed, whileOpen } = lifeCycle

  const transactions = createTransactions({ engine, ownership, health, whileOpen })
  const { read, write } = transactions

  return {
    ...calls,

    async accept(events) {
      const requests: Requested[] = []
      for (const event of events) {
        requireStorable(event)
        if (!event.refresh) continue
        requireStorable(event.refresh)
        requests.push({ request: event.refresh, cause: 'event' })
      }
      await whileOpen(() => acceptance.accept({ events, requests }))
    },

    async requestRefresh(request, cause = 'request') {
      requireStorable(request)
      await whileOpen(() => acceptance.accept({ events: [], requests: [{ request, cause }] }))
    },

    subscriptionsOf: (businessUid) => read((db) => subscriptions.ofBusiness(db, businessUid)),
    subscriptionsNamed: (uids) => read((db) => subscriptions.named(db, uids)),

    ...createReadCalls({ engine, transactions, subscriptions, suspects, journal, ownership, hints }),
    ...createLaneCalls({ engine, transactions, isClosed, lanes, topics, suspects, offsetOf, announce }),
    ...createRecordCalls({ engine, subscriptions, lanes, journal, offsetOf, transactions, announce }),

    dueSuspect: (options) => read((db) => suspects.due(db, options)),

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
    subscribe: hints.subscribe,
  }

  async function begin(owner: StoreOwner | undefined) {
    try {
      await engine.open()
      const mark = engine.mark()
      await engine.migrate(MIGRATIONS, (trx) => ownership.requireNoOther(trx, owner))
      if (owner) await ownership.claim(owner)
      if (engine.isLocal) await endAbandonedLeases(engine)
      await engine.durable(mark)
      engine.watch(hints.notify)
    } catch (error) {
      // A lock or a connection that stays open would block the next attempt.
      await engine.close().catch(() => {})
      throw asStoreError(error, 'Cannot open the store')
    }
  }
}
