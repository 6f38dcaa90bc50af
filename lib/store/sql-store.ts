import { sql } from 'kysely'
import { MarketplaceError } from '../errors.js'
import { createReadClaims } from './claim-read.js'
import { createGroupCommit } from './group-commit.js'
import { createJournal } from './journal.js'
import { journalQueries } from './journal-queries.js'
import { isAbandoned } from './lease-token.js'
import { MIGRATIONS } from './migrations.js'
import { createRefreshRequests, type Requested } from './request-refresh.js'
import type { Engine } from './schema.js'
import type { Hint, NewEvent, ReadClaim, ReadFinish, Store } from './store.js'
import { createSubscriptionUpkeep } from './subscription-upkeep.js'
import { createSubscriptions } from './subscriptions.js'

/** The store over either engine: what is durable, what shares a commit, and who is told. The SQL is in its two tables' files. */
export function createSqlStore(engine: Engine): Store {
  const listeners = new Set<(hint: Hint) => void>()
  const subscriptions = createSubscriptions(engine)
  const upkeep = createSubscriptionUpkeep(engine)
  const reads = createReadClaims(engine)
  const { request, adopt } = createRefreshRequests(engine)
  const journal = createJournal(engine)
  let opening: Promise<void> | undefined
  let closed = false

  const submit = createGroupCommit<{ events: readonly NewEvent[]; requests: readonly Requested[] }>({
    isDataError: engine.isDataError,
    async commit(batch) {
      const requests = batch.flatMap((item) => item.requests)
      await engine.write(async (trx) => {
        await journal.insert(
          trx,
          batch.flatMap((item) => item.events),
        )
        await request(trx, requests)
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
      const requests = wanted.map((each) => ({ request: each, byEvent: true }))
      await whileOpen(() => submit({ events, requests }))
      for (const each of wanted) announce({ kind: 'requested', businessUid: each.businessUid })
      announce({ kind: 'journal' })
    },

    async requestRefresh(asked) {
      refuseUnfit(asked)
      await whileOpen(() => submit({ events: [], requests: [{ request: asked, byEvent: false }] }))
      announce({ kind: 'requested', businessUid: asked.businessUid })
    },

    async adoptItems(purchasableUids) {
      let adopted = 0
      for (;;) {
        const batch = await write((trx) => adopt(trx, purchasableUids))
        adopted += batch
        if (batch === 0) break
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
        // Two reads of one business's subscriptions must not each decide by the other's old state.
        if (changes.length > 0) await engine.holdNames?.(trx, businesses)
        const written = await subscriptions.finish(trx, claim, finish)
        if (written !== 'written') return written
        for (const change of changes) {
          const siblings = await subscriptions.ofBusiness(trx, change.businessUid)
          const whose = { ...claim.subscription, businessUid: change.businessUid }
          const payload: typeof change.payload = (rows) => change.payload(rows, engine.clock.now())
          await journal.insertChange(trx, whose, { ...change, payload }, siblings)
        }
        return written
      })
      if (finished === false) return false
      if (finished === 'not revoked') {
        announce({ kind: 'requested', businessUid: claim.subscription.businessUid })
        return false
      }
      const superseded = isNews(claim, finish)
      for (const businessUid of businesses) announce({ kind: 'decided', businessUid, superseded })
      if (changes.length > 0) announce({ kind: 'journal' })
      return true
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

    prune: (keep) => write(async (trx) => (await journal.prune(trx, keep)) + (await upkeep.prune(trx, keep))),

    counts: () =>
      read(async (db) => ({ ...(await upkeep.counts(db)), ...(await journalQueries.counts(db)) })),

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

/** Transactions of one claim, each of which puts off a batch of what cannot be read now. */
const MOST_LOOKS = 200

/** Between two slices of work the app's event loop has its turn. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** The businesses that a finish is about, by bytes: all who hold several names take them in one order. */
function businessesOf({ subscription }: ReadClaim, { found, changes = [] }: ReadFinish): string[] {
  const uids = [subscription.businessUid, ...changes.map(({ businessUid }) => businessUid)]
  if (found?.record) uids.push(found.record.business_uid)
  return [...new Set(uids)].sort()
}

/** Whether what was known of the subscription before must not be relied on any more. */
function isNews({ subscription }: ReadClaim, { found }: ReadFinish): boolean {
  if (!found) return false
  return (
    found.gone !== subscription.gone || JSON.stringify(found.record) !== JSON.stringify(subscription.record)
  )
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
