import { sql } from 'kysely'
import { type Clock, systemClock } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { createGroupCommit } from './group-commit.js'
import { asStoreError } from './guarded-store.js'
import { createJournal } from './journal.js'
import { journalQueries } from './journal-queries.js'
import { isAbandoned } from './lease-token.js'
import { MIGRATIONS } from './migrations.js'
import { createOwnership } from './ownership.js'
import { createRefreshRequests } from './request-refresh.js'
import type { Engine } from './schema.js'
import type { Hint, NewEvent, RefreshRequest, Store } from './store.js'
import type { StoreOwner } from './store-owner.js'
import { createSubscriptions } from './subscriptions.js'
import { createWriteHealth } from './write-health.js'

/** The store over either engine: what is durable, what shares a commit, and who is told. The SQL is in its two tables' files. */
export function createSqlStore(engine: Engine, clock: Clock = systemClock): Store {
  const listeners = new Set<(hint: Hint) => void>()
  const subscriptions = createSubscriptions(engine)
  const { want } = createRefreshRequests(engine)
  const journal = createJournal(engine)
  const ownership = createOwnership(engine, clock)
  const health = createWriteHealth({ probe, isDataError: engine.isDataError, clock })
  let opening: Promise<void> | undefined
  let closed = false

  const submit = createGroupCommit<{ events: readonly NewEvent[]; wanted: readonly RefreshRequest[] }>({
    isDataError: engine.isDataError,
    async commit(batch) {
      const wanted = batch.flatMap((item) => item.wanted)
      await owned(async (trx) => {
        await journal.insert(
          trx,
          batch.flatMap((item) => item.events),
        )
        await want(trx, wanted)
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
      await engine.write((trx) =>
        sql`insert into store_owner (id, settled, probed_at) values (1, 0, ${engine.now()})
          on conflict (id) do update set probed_at = excluded.probed_at`.execute(trx),
      )
      await engine.durable()
    })
  }

  /** What is committed stays so, whatever a listener throws. */
  function tell(hint: Hint) {
    for (const listener of listeners) {
      try {
        listener(hint)
      } catch {
        // The listener's own; the others are still told.
      }
    }
  }

  function announce(hint: Hint) {
    tell(hint)
    engine.announce(hint)
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
      await keep({ events, wanted })
      for (const each of wanted) announce({ kind: 'requested', businessUid: each.businessUid })
      announce({ kind: 'journal' })
    },

    async requestRefresh(wanted) {
      refuseUnfit(wanted)
      await keep({ events: [], wanted: [wanted] })
      announce({ kind: 'requested', businessUid: wanted.businessUid })
    },

    subscriptionsOf: (businessUid) => read((db) => subscriptions.ofBusiness(db, businessUid)),
    claimRead: (options) => write((trx) => subscriptions.claim(trx, options)),
    renewRead: (claim, leaseMs) => write((trx) => subscriptions.renew(trx, claim, leaseMs)),

    async finishRead(claim, finish) {
      const finished = await write(async (trx) => {
        // Two reads of one business's subscriptions must not each decide by the other's old state.
        if (finish.change) await subscriptions.lockBusiness(trx, claim.subscription.businessUid)
        if (!(await subscriptions.finish(trx, claim, finish))) return false
        if (finish.found) await ownership.settle(trx)
        if (finish.change) {
          const siblings = await subscriptions.ofBusiness(trx, claim.subscription.businessUid)
          await journal.insertChange(trx, claim.subscription, finish.change, siblings)
        }
        return true
      })
      if (finished) {
        announce({ kind: 'decided', businessUid: claim.subscription.businessUid })
        if (finish.change) announce({ kind: 'journal' })
      }
      return finished
    },

    claimEntries: (options) => write((trx) => journal.claim(trx, options)),
    skipEntries: (options) => write((trx) => journal.skip(trx, options)),
    renewEntry: (entry, leaseMs) => write((trx) => journal.renew(trx, entry, leaseMs)),
    finishEntries: (finishes) => write((trx) => journal.finish(trx, finishes)),
    listEntries: (filter) => read((db) => journalQueries.list(db, filter)),

    async replayEntry(id) {
      const found = await write((trx) => journal.replay(trx, id))
      if (found) announce({ kind: 'journal' })
      return found
    },

    prune: (keep) =>
      write(async (trx) => (await journal.prune(trx, keep)) + (await subscriptions.prune(trx, keep))),

    counts: () =>
      read(async (db) => ({ ...(await subscriptions.counts(db)), ...(await journalQueries.counts(db)) })),

    problem: health.problem,

    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
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

/** Two identifiers must not be kept as one: some libraries cut at NUL, and half of a surrogate pair is no UTF-8. */
function refuseUnfit(row: object) {
  for (const [name, value] of Object.entries(row)) {
    if (NAMES_OF_IDENTIFIERS.has(name) && typeof value === 'string' && /[\0\p{Cs}]/u.test(value)) {
      throw new MarketplaceError(
        'argument_invalid',
        `Cannot keep ${name}: it has NUL or half of a surrogate pair`,
      )
    }
  }
}

const NAMES_OF_IDENTIFIERS = new Set(['id', 'key', 'businessUid', 'subscriptionUid', 'purchasableUid'])

/** What a process of this machine left behind when it died is due at once, not when its leases run out. */
async function endAbandonedLeases({ write, now }: Engine) {
  await write(async (trx) => {
    const { rows } = await sql<{ token: string }>`
      select lease_token as token from subscriptions where lease_token is not null
      union select lease_token from journal where status = 'pending' and lease_token is not null`.execute(trx)
    for (const { token } of rows.filter((row) => isAbandoned(row.token))) {
      await sql`update subscriptions set refresh_at = ${now()} where lease_token = ${token}`.execute(trx)
      await sql`update journal set due_at = ${now()} where status = 'pending' and lease_token = ${token}`.execute(
        trx,
      )
    }
  })
}
