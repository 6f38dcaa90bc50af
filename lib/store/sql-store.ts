import { type Clock, systemClock } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import { createAcceptance } from './acceptance.js'
import { requireStorable } from './checks.js'
import { createHints } from './hints.js'
import { createEntryCounts } from './journal/counts.js'
import { createHandledTopics, type HandledTopics } from './journal/handled-topics.js'
import { createJournal } from './journal/journal.js'
import { createJournalPruning } from './journal/prune.js'
import { createRecordCalls } from './journal/record-calls.js'
import { createLaneClaims } from './lanes/claims.js'
import { finishLanes } from './lanes/finishes.js'
import { createLanes, type Lanes } from './lanes/lanes.js'
import { endAbandonedLeases } from './lanes/leases.js'
import { createLifeCycle, createTransactions, type LifeCycle, type Transactions } from './life-cycle.js'
import { createObservation } from './operators.js'
import { createOwnership } from './ownership.js'
import type { Store } from './port/store.js'
import type { StoreOwner } from './port/store-owner.js'
import type { Engine } from './sql/engine.js'
import { MIGRATIONS } from './sql/migrations.js'
import { asStoreError } from './sql/store-error.js'
import { createStoreTime, type StoreTime } from './sql/store-time.js'
import type { Requested } from './subscriptions/merge-requests.js'
import { createReadCalls } from './subscriptions/read-calls.js'
import { createRefreshRequests } from './subscriptions/requests.js'
import { createSubscriptions } from './subscriptions/subscriptions.js'
import { createRefreshAll, createSubscriptionUpkeep } from './subscriptions/upkeep.js'
import { createClaimsOnDisk, createSuspectCalls } from './suspect-calls.js'
import { createWriteHealth, createWriteProbe } from './write-health.js'

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

/** The calls of the port for handlers: they lease lanes, write the results of their entries, and name the topics. */
export function createEntryCalls(options: {
  engine: Engine
  transactions: Transactions
  lifeCycle: Pick<LifeCycle, 'isClosed' | 'whileOpen'>
  lanes: Lanes
  topics: HandledTopics
  offsetOf: StoreTime
  announce: ReturnType<typeof createHints>['announce']
}): Pick<Store, 'claimLanes' | 'renewLane' | 'finishLanes' | 'handleTopics'> {
  const { engine, transactions, lanes, topics, offsetOf, announce } = options
  const { isClosed, whileOpen } = options.lifeCycle
  const { write } = transactions
  const laneClaims = createLaneClaims(engine, lanes, offsetOf)
  const claimOnDisk = createClaimsOnDisk({ engine, transactions, whileOpen, lanes })

  return {
    // A handler must not see what a power cut could still undo.
    claimLanes: (options) => claimOnDisk(() => laneClaims.claim(transactions, options)),
    renewLane: (lane, leaseMs) => write((trx) => lanes.renew(trx, lane, leaseMs)),
    finishLanes: (finishes) => write((trx) => finishLanes({ engine, lanes }, trx, finishes)),

    async handleTopics(options) {
      const moved = await whileOpen(() => topics.handle(options, transactions, isClosed))
      if (moved) announce({ kind: 'journal' })
    },
  }
}
