import { sql } from 'kysely'
import { MarketplaceError } from '../errors.js'
import { createGroupCommit } from './group-commit.js'
import { createHandledTopics } from './handled-topics.js'
import { createJournal } from './journal.js'
import { createJournalQueries } from './journal-queries.js'
import { createLanes } from './lanes.js'
import { isAbandoned } from './lease-token.js'
import { MIGRATIONS } from './migrations.js'
import { createRefreshRequests } from './request-refresh.js'
import type { Engine } from './schema.js'
import { type Hint, isTopicAmong, type NewEvent, type RefreshRequest, type Store } from './store.js'
import { createStoreTime } from './store-time.js'
import { createSubscriptions } from './subscriptions.js'

/** The store over either engine: what is durable, what shares a commit, and who is told. The SQL is in its two tables' files. */
export function createSqlStore(engine: Engine): Store {
  const listeners = new Set<(hint: Hint) => void>()
  const subscriptions = createSubscriptions(engine)
  const { want } = createRefreshRequests(engine)
  const offsetOf = createStoreTime(engine.clock)
  const lanes = createLanes(engine, offsetOf)
  const topics = createHandledTopics(engine, lanes)
  const journal = createJournal(engine, lanes, topics)
  const journalQueries = createJournalQueries(engine, offsetOf)
  let opening: Promise<void> | undefined
  let closed = false

  const submit = createGroupCommit<{ events: readonly NewEvent[]; wanted: readonly RefreshRequest[] }>({
    isDataError: engine.isDataError,
    async commit(batch) {
      const wanted = batch.flatMap((item) => item.wanted)
      await engine.write(async (trx) => {
        // In the order of a read's finish, so that neither waits for the other: subscriptions, then lanes.
        await want(trx, wanted)
        await journal.insert(
          trx,
          batch.flatMap((item) => item.events),
        )
      })
      // What is committed is visible to others before it is durable; only the reply must wait.
      await engine.durable()
    },
  })

  const read: Engine['read'] = (work) => whileOpen(() => engine.read(work))
  const write: Engine['write'] = (work) => whileOpen(() => engine.write(work))
  const underWay = new Set<Promise<unknown>>()

  function tell(hint: Hint) {
    for (const listener of listeners) listener(hint)
  }

  function announce(hint: Hint) {
    tell(hint)
    engine.announce(hint)
  }

  return {
    async open() {
      if (closed) throw new MarketplaceError('closed', 'Cannot open the store: it was closed')
      opening ??= engine.open().then(async () => {
        await engine.migrate(MIGRATIONS)
        if (engine.isLocal) await endAbandonedLeases(engine)
        await engine.durable()
        engine.watch(tell)
      })
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
      await whileOpen(() => submit({ events, wanted }))
      for (const each of wanted) announce({ kind: 'requested', businessUid: each.businessUid })
      announce({ kind: 'journal' })
    },

    async requestRefresh(wanted) {
      refuseUnfit(wanted)
      await whileOpen(() => submit({ events: [], wanted: [wanted] }))
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
        if (finish.change) {
          const { businessUid, subscriptionUid } = claim.subscription
          const siblings = await subscriptions.ofBusiness(trx, businessUid)
          const { rows } = await sql<{ now: number }>`select ${engine.now()} as now`.execute(trx)
          const { id, key } = finish.change
          const payload = finish.change.payload(siblings, Number(rows[0]?.now))
          await journal.insertChange(trx, { id, key, businessUid, subscriptionUid, payload })
        }
        return true
      })
      if (finished) {
        announce({ kind: 'decided', businessUid: claim.subscription.businessUid })
        if (finish.change) announce({ kind: 'journal' })
      }
      return finished
    },

    async claimLanes(options) {
      const named = new Set(options.topics)
      // Nothing is written while nothing is due.
      const due = (await read((db) => lanes.dueTopics(db))).filter((topic) => isTopicAmong(named, topic))
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

    listEntries: (filter) => whileOpen(() => journalQueries.list(filter)),

    async replayEntry(id) {
      const found = await write((trx) => journal.replay(trx, id))
      if (found) announce({ kind: 'journal' })
      return found
    },

    prune: (keep) =>
      write(async (trx) => {
        const { rows, dead } = await journal.prune(trx, keep)
        return { rows: rows + (await subscriptions.prune(trx, keep)), dead }
      }),

    counts: () =>
      read(async (db) => ({ ...(await subscriptions.counts(db)), ...(await journalQueries.counts(db)) })),

    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
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
      if (error instanceof MarketplaceError) throw error
      const why = error instanceof Error ? error.message : 'unknown error'
      throw new MarketplaceError('store_unavailable', `Cannot use the store: ${why}`, { cause: error })
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
      union select lease_token from lanes where lease_token is not null`.execute(trx)
    for (const { token } of rows.filter((row) => isAbandoned(row.token))) {
      await sql`update subscriptions set refresh_at = ${now()} where lease_token = ${token}`.execute(trx)
      await sql`update lanes set due_at = ${now()} where lease_token = ${token}`.execute(trx)
    }
  })
}
