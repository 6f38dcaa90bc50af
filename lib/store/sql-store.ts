import { type Clock, systemClock } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import { createListeners } from '../base/listeners.js'
import { requireStorable } from '../base/record.js'
import { createAcceptance } from './accepting/acceptance.js'
import type { Allowance } from './accepting/allowance.js'
import { createEntryCounts } from './journal/counts.js'
import { createErasing } from './journal/erase.js'
import { createHandledTopics } from './journal/handled-topics.js'
import { createJournal } from './journal/journal.js'
import { createEntryList } from './journal/listing.js'
import { createJournalPruning } from './journal/prune.js'
import { createTimeline } from './journal/timeline.js'
import { createToldDead } from './journal/told-dead.js'
import { createLaneClaims } from './lanes/claims.js'
import { createLaneFinishes } from './lanes/finishes.js'
import { createLanes } from './lanes/lanes.js'
import { createGivenClaims } from './leases/given-claims.js'
import { endAbandonedLeases, renewLease } from './leases/leases.js'
import { createSuspects } from './leases/suspects.js'
import { asStoreError, createLifeCycle, createStoreTransactions } from './life-cycle.js'
import { createObservation } from './operators.js'
import { createOwnership } from './ownership.js'
import type { Hint, Store, StoreOwner } from './port/store.js'
import { createClockOffset } from './sql/clock-offset.js'
import type { Engine } from './sql/engine.js'
import { MIGRATIONS } from './sql/migrations.js'
import { run } from './sql/writes.js'
import { createReadClaims } from './subscriptions/claims.js'
import { createSubscriptionCounts } from './subscriptions/counts.js'
import { createReadFinishes } from './subscriptions/finishes.js'
import type { Requested } from './subscriptions/merge-requests.js'
import { createOtherBusinesses } from './subscriptions/other-businesses.js'
import { createRefreshRequests } from './subscriptions/requests.js'
import { createSearches } from './subscriptions/searches.js'
import { createSubscriptions } from './subscriptions/subscriptions.js'
import { createRefreshAll, createSubscriptionPruning } from './subscriptions/upkeep.js'
import { createWriteHealth, createWriteProbe } from './write-health.js'

/**
 * The store over either engine. This file decides for each call which transaction it runs in, whether it waits for the
 * disk, and which hints follow. The SQL is in the files of the tables.
 */
export function createSqlStore(
  engine: Engine,
  clock: Clock = systemClock,
  bounds: { most?: Allowance; mostSearches?: number } = {},
): Store {
  // The commit stands, whatever a listener throws.
  const listeners = createListeners<Hint>(() => {})
  const notify = listeners.call
  /** Gives a hint to the listeners of this process, and to the other processes. */
  function announce(hint: Hint) {
    notify(hint)
    engine.announce(hint)
  }

  const ownership = createOwnership(engine, clock)
  const offsetOf = createClockOffset(engine.clock)
  const subscriptions = createSubscriptions(engine, offsetOf)
  const { request } = createRefreshRequests(engine)
  let items: readonly string[] = []
  const searches = createSearches(engine, offsetOf, request, () => items, bounds.mostSearches)
  const lanes = createLanes(engine)
  const topics = createHandledTopics(engine, lanes)
  const journal = createJournal(engine, lanes)
  const suspects = createSuspects(engine)
  const pruneJournal = createJournalPruning(engine, lanes, suspects)
  const prune = createToldDead(engine)
  const pruneSubscriptions = createSubscriptionPruning(engine)
  const entryCounts = createEntryCounts(engine)
  const subscriptionCounts = createSubscriptionCounts(engine)
  const probe = createWriteProbe({ engine, ownership, request, lanes, journal })
  const health = createWriteHealth({
    probe: () => whileOpen(probe),
    fault: () => engine.fault?.(),
    isDataError: (error) => engine.isDataError(error),
    clock,
  })
  const acceptance = createAcceptance({
    ...{ engine, ownership, request, searches, journal, subscriptions, health, clock, announce },
    whileOpen: (work) => whileOpen(work),
    isClosed: () => isClosed(),
    ...bounds,
  })
  const closing = new AbortController()
  const lifeCycle = createLifeCycle({
    begin,
    end: () => engine.close(),
    endLongCalls: () => closing.abort(new MarketplaceError('closed', 'Cannot back up: the store was closed')),
    isDataError: (error) => engine.isDataError(error),
  })
  const { calls, isClosed, whileOpen } = lifeCycle
  const transactions = createStoreTransactions({ engine, ownership, health, whileOpen })
  const { inside, read, write, onDisk } = transactions

  // One for ordinary and for suspect reads: each claim returns the lost leases of both.
  const givenReads = createGivenClaims(engine, 'read')
  const readClaims = createReadClaims(engine, subscriptions, givenReads)
  const others = createOtherBusinesses(engine)
  const finishRead = createReadFinishes({
    engine,
    write: inside.write,
    insertOfReads: journal.insertOfReads,
    async promote(trx, read) {
      await lanes.promote(trx, read)
      await journal.promote(trx, read)
    },
    recordRead: ownership.recordRead,
    notify,
    announce,
  })
  const finishLanes = createLaneFinishes(engine, lanes)
  const laneClaims = createLaneClaims({ engine, ...inside, lanes, suspects, finishLanes, offsetOf })
  const entries = createEntryList(engine, inside.read, offsetOf)
  const timelineOf = createTimeline(engine, inside.read, offsetOf)
  const erase = createErasing({
    ...{ engine, read, write, lanes, searches, journal, offsetOf, notify, announce },
  })

  return {
    ...calls,

    async accept(events, waitedMs) {
      const requests: Requested[] = []
      for (const event of events) {
        requireStorable(event)
        if (!event.refresh) continue
        requireStorable(event.refresh)
        requests.push({ request: event.refresh, cause: 'event' })
      }
      return acceptance.accept({ events, requests }, waitedMs)
    },

    async requestRefresh(request, cause = 'request') {
      requireStorable(request)
      await acceptance.accept({ events: [], requests: [{ request, cause }] })
    },

    subscriptionsOf: (businessUid) => read((db) => subscriptions.ofBusiness(db, businessUid)),
    subscriptionsNamed: (uids) => read((db) => subscriptions.named(db, uids)),

    claimReads: (options) => readClaims.claim(transactions, options),
    claimSuspectRead: ({ leaseMs }) =>
      givenReads.claim(
        write,
        async (trx) => {
          await suspects.putOffReads(trx)
          const begun = await suspects.begin(trx, 'read', leaseMs)
          return begun && { ...(await subscriptions.leased(trx, begun)), lapses: begun.lapses }
        },
        (claim) => (claim ? [claim] : []),
      ),
    readFirst: (businessUid) => write((trx) => readClaims.readFirst(trx, businessUid)),
    renewRead: (claim, leaseMs) => write((trx) => renewLease(engine, trx, 'read', claim, leaseMs)),
    finishRead: (claim, finish) => whileOpen(() => finishRead(claim, finish)),
    otherBusinesses: (claim, failingMs) => read((db) => others.compare(db, claim, failingMs)),
    async readOthers(claim, options) {
      const count = await write((trx) => others.makeDue(trx, claim, options))
      if (count > 0) announce({ kind: 'requested', businessUid: null })
      return count
    },

    searchOf: (businessUid) => read((db) => searches.of(db, businessUid)),
    async requestSearch(businessUid, by) {
      requireStorable({ businessUid })
      if (!(await whileOpen(() => searches.hasRoom(businessUid)))) return false
      await write((trx) => run(engine, trx, searches.request(businessUid, by)))
      announce({ kind: 'requested', businessUid })
      return true
    },
    // Every delivery wakes those who claim: a read first, so that most of the claims write nothing. As for `claimReads`, it
    // would cost PostgreSQL as much as the claim.
    claimSearches: async (options) =>
      engine.isLocal && !(await read((db) => searches.areDue(db, options)))
        ? []
        : write((trx) => searches.claim(trx, options)),
    renewSearch: (claim, leaseMs) => write((trx) => renewLease(engine, trx, 'search', claim, leaseMs)),
    async finishSearch(claim, finish) {
      const found = finish.kind === 'answered' ? finish.found : []
      for (const subscriptionUid of found) requireStorable({ subscriptionUid })
      if (!(await write((trx) => searches.finish(trx, claim, finish)))) return false
      if (found.length > 0) announce({ kind: 'requested', businessUid: claim.id })
      if (finish.kind !== 'untried') announce({ kind: 'decided', businessUid: claim.id, superseded: false })
      return true
    },

    claimLanes: (options) => whileOpen(() => laneClaims.claimLanes(options)),
    claimSuspectLane: (options) => whileOpen(() => laneClaims.claimSuspectLane(options)),
    renewLane: (lane, leaseMs) => write((trx) => renewLease(engine, trx, 'lane', lane, leaseMs)),
    finishLanes: (finishes) => write((trx) => finishLanes(trx, finishes)),
    async handleTopics(options) {
      const moved = await whileOpen(() => topics.handle(options, inside, isClosed))
      if (moved) announce({ kind: 'journal' })
    },
    dueSuspect: (options) => read((db) => suspects.due(db, options)),

    listEntries: (filter) => whileOpen(() => entries.list(filter)),
    getEntry: (id) => whileOpen(() => entries.get(id)),
    entitlementsFrom: (id) => whileOpen(() => entries.entitlementsFrom(id)),
    listSubscriptions: (filter) => read((db) => subscriptions.list(db, filter)),
    listBusinesses: (page) => read((db) => subscriptions.listBusinesses(db, page)),
    timelineOf: (businessUid, timeline) => whileOpen(() => timelineOf(businessUid, timeline)),
    async recordAction(action) {
      requireStorable(action)
      await onDisk(() => inside.write((trx) => journal.insertAction(trx, action)))
    },
    async erase(businessUid, record) {
      requireStorable(record)
      return onDisk(() => erase(businessUid, record))
    },
    async replayEntry(id, status) {
      const isReplayed = await write((trx) => journal.replay(trx, id, status))
      if (isReplayed) announce({ kind: 'journal' })
      return isReplayed
    },

    prune: (retention) =>
      prune(write, async (trx) => {
        const subscriptions = await pruneSubscriptions(trx, retention)
        const unwanted = await searches.prune(trx)
        const { rows, dead } = await pruneJournal(trx, retention)
        return { rows: rows + subscriptions + unwanted, dead }
      }),

    counts: (maxStaleMs) =>
      read(async (db) => ({
        ...(await subscriptionCounts(db, maxStaleMs)),
        ...(await entryCounts(db)),
        ...(await searches.counts(db)),
      })),

    ...createObservation(engine, { read, write }, offsetOf),
    refreshAll: createRefreshAll(engine, transactions),
    backup: (path) =>
      whileOpen(async () => {
        await ownership.check()
        await engine.backup(path, closing.signal)
      }),
    problem: async (inTimeMs) => health.problem(inTimeMs),
    turnedAway: async () => acceptance.turnedAway(),
    subscribe: listeners.add,
  }

  async function begin(owner: StoreOwner | undefined) {
    items = owner?.purchasableUids ?? []
    try {
      await engine.open()
      const mark = engine.mark()
      await engine.migrate(MIGRATIONS, (trx) => ownership.requireNoOther(trx, owner))
      if (owner) await ownership.take(owner)
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
