import { sql, type Transaction } from 'kysely'
import { MarketplaceError } from '../errors.js'
import { createGroupCommit } from './group-commit.js'
import { createJournal } from './journal.js'
import { isAbandoned } from './lease-token.js'
import { MIGRATIONS } from './migrations.js'
import type { Engine, Tables } from './schema.js'
import type { Hint, NewEvent, Store, Wanted } from './store.js'
import { createSubscriptions } from './subscriptions.js'

/** The store over either engine: what is durable, what shares a commit, and who is told. The SQL is in its two tables' files. */
export function createSqlStore(engine: Engine): Store {
  const listeners = new Set<(hint: Hint) => void>()
  const subscriptions = createSubscriptions(engine)
  const journal = createJournal(engine)
  let opening: Promise<void> | undefined
  let closed = false

  const submit = createGroupCommit<{ events: readonly NewEvent[]; wanted: readonly Wanted[] }>({
    isDataError: engine.isDataError,
    async commit(batch) {
      const wanted = batch.flatMap((item) => item.wanted)
      await write(async (trx) => {
        await journal.insert(
          trx,
          batch.flatMap((item) => item.events),
        )
        await subscriptions.want(trx, wanted)
      })
      // What is committed is visible to others before it is durable; only the reply must wait.
      await engine.durable()
    },
  })

  async function write<T>(work: (trx: Transaction<Tables>) => Promise<T>): Promise<T> {
    return read(() => engine.db.transaction().execute(work))
  }

  function tell(hint: Hint) {
    for (const listener of listeners) listener(hint)
  }

  return {
    async open() {
      if (closed) throw new MarketplaceError('closed', 'Cannot open the store: it was closed')
      opening ??= engine.open().then(async () => {
        await engine.migrate(MIGRATIONS)
        if (engine.isLocal) await endAbandonedLeases(engine)
        await engine.durable()
        engine.watch(() => {
          tell({ type: 'decided', businessUid: null })
          tell({ type: 'wanted', businessUid: null })
          tell({ type: 'journal' })
        })
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
      if (opening) await engine.close()
    },

    async accept(events) {
      const wanted = events.flatMap((event) => event.wanted ?? [])
      await submit({ events, wanted })
      for (const each of wanted) tell({ type: 'wanted', businessUid: each.businessUid })
      tell({ type: 'journal' })
    },

    async want(wanted) {
      await submit({ events: [], wanted: [wanted] })
      tell({ type: 'wanted', businessUid: wanted.businessUid })
    },

    subscriptionsOf: (businessUid) => read(() => subscriptions.ofBusiness(engine.db, businessUid)),
    claimRead: (options) => write((trx) => subscriptions.claim(trx, options)),
    renewRead: (claim, leaseMs) => write((trx) => subscriptions.renew(trx, claim, leaseMs)),

    async finishRead(claim, finish) {
      const finished = await write(async (trx) => {
        if (!(await subscriptions.finish(trx, claim, finish))) return false
        if (finish.change) {
          const siblings = await subscriptions.ofBusiness(trx, claim.subscription.businessUid)
          await journal.insertChange(trx, claim.subscription, finish.change, siblings)
        }
        return true
      })
      if (finished) {
        tell({ type: 'decided', businessUid: claim.subscription.businessUid })
        if (finish.change) tell({ type: 'journal' })
      }
      return finished
    },

    claimEntries: (options) => write((trx) => journal.claim(trx, options)),
    skipEntries: (options) => write((trx) => journal.skip(trx, options)),
    renewEntry: (entry, leaseMs) => write((trx) => journal.renew(trx, entry, leaseMs)),
    finishEntries: (finishes) => write((trx) => journal.finish(trx, finishes)),
    listEntries: (filter) => read(() => journal.list(filter)),

    async replayEntry(id) {
      const found = await write((trx) => journal.replay(trx, id))
      if (found) tell({ type: 'journal' })
      return found
    },

    prune: (keep) =>
      write(async (trx) => (await journal.prune(trx, keep)) + (await subscriptions.prune(trx, keep))),

    counts: () => read(async () => ({ ...(await subscriptions.counts()), ...(await journal.counts()) })),

    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }

  async function read<T>(work: () => Promise<T>): Promise<T> {
    if (closed || !opening)
      throw new MarketplaceError('store_unavailable', 'Cannot use the store: it is not open')
    await opening
    try {
      return await work()
    } catch (error) {
      throw asStoreError(error, engine)
    }
  }
}

// Data errors pass as they are: the group commit asks the engine about them.
function asStoreError(error: unknown, engine: Engine): unknown {
  if (error instanceof MarketplaceError || engine.isDataError(error)) return error
  const why = error instanceof Error ? error.message : 'unknown error'
  return new MarketplaceError('store_unavailable', `Cannot use the store: ${why}`, { cause: error })
}

/** What a process of this machine left behind when it died is due at once, not when its leases run out. */
async function endAbandonedLeases({ db, now }: Engine) {
  await db.transaction().execute(async (trx) => {
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
