import { nextTurn } from '../../base/waiting.js'
import type { GivenClaims } from '../leases/given-claims.js'
import { createLookBack, type LookBack } from '../leases/look-back.js'
import { type ClaimReads, type ReadClaim, type Subscription, URGENCY, type Urgency } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import type { Transaction } from '../sql/transaction.js'
import { prepare, run } from '../sql/writes.js'
import { IS_FREE, type LeasedReads, type Subscriptions } from './subscriptions.js'
import { unreadOfBusiness } from './unread.js'

/** The due rows of a class that a claim reads, beyond one for each lease and each busy business. */
const WINDOW = 16
/** How many times as many of the newest rows are read as of the oldest: among them is a known business that buys again. */
const NEWEST = 4
/** The most transactions of a claim that leases nothing, each of which puts off a batch of rows that cannot be read now. */
const MAX_ROUNDS = 200

/**
 * Leases the subscriptions to read next. A claim reads a bounded number of due rows. A business that is being read is
 * busy, so none of its rows is leased; while only rows that were never read are being read of it, it is busy for such rows
 * only. When rows of busy businesses fill that number, the claim puts each of them off once, so that the rows behind them
 * come first, until it has leased something or there are no more.
 *
 * Of the subscriptions that were never read, those of a business that was read before, the longest due and the newest take
 * turns. So a flood of forged ones delays neither a purchase that follows them nor one that came before them, and a known
 * business that buys again waits for neither. Only the newest are looked through for it.
 */
export function createReadClaims(
  engine: Engine,
  subscriptions: Pick<Subscriptions, 'lease'>,
  given: GivenClaims,
) {
  const putOff = createPutOff(engine)
  const lookBack = createLookBack(engine)
  let turn = 0
  /** Whether the last claim leased a row. */
  let wasDue = false

  /** `isPutOff`: rows were put off, so a repeated claim may find the rows behind them. */
  async function claimOnce(
    trx: Transaction,
    options: ClaimReads,
  ): Promise<LeasedReads & { isPutOff: boolean }> {
    const { limit, except, exceptUnread = [], urgencies } = options
    const size = WINDOW + limit + except.length + exceptUnread.length
    const look = lookBack.look()
    const rows = await look.during(dueRowsOf(engine, trx, urgencies, size, look))
    if (rows.length === 0) return { leases: [], claims: Promise.resolve([]), isPutOff: false }
    const busy = createBusy(except, exceptUnread)
    const stacks = urgencies.map((urgency) => ({ urgency, rows: stackOf(rows, urgency) }))
    const picked = pickRows(stacks, busy, options)
    const leased = subscriptions.lease(
      trx,
      picked.map(({ uid }) => uid),
      options.leaseMs,
    )
    let isPutOff = false
    if (picked.length < limit) {
      for (const stack of stacks) {
        // Fewer rows than `size` are all that are due.
        const seen = rows.filter((row) => row.urgency === stack.urgency && row.is_newest === 0).length
        if (
          stack.rows.length === 0 &&
          seen === size &&
          (await putOff(trx, stack.urgency, busy.of(stack.urgency), look))
        )
          isPutOff = true
      }
    }
    return { ...leased, isPutOff }
  }

  /** The rows of a class as a stack: the next one is last. */
  function stackOf(rows: readonly DueRow[], urgency: Urgency): DueRow[] {
    const ofClass = rows.filter((row) => row.urgency === urgency)
    if (urgency !== URGENCY.eventOfUnread) return ofClass.reverse()
    const parts = [
      ofClass.filter((row) => row.is_of_known === 1),
      ofClass.filter((row) => row.is_newest === 0),
      ofClass.filter((row) => row.is_newest === 1),
    ].filter(({ length }) => length > 0)
    const first = turn++ % Math.max(1, parts.length)
    const inTurns = [...parts.slice(first), ...parts.slice(0, first)]
    const longest = Math.max(...parts.map(({ length }) => length))
    // A row may be of several parts. The second time its business is busy, so it is skipped.
    return Array.from({ length: longest }, (_, i) => inTurns.flatMap((part) => part.slice(i, i + 1)))
      .flat()
      .reverse()
  }

  async function claim(
    { read, write }: Pick<Engine, 'read' | 'write'>,
    options: ClaimReads,
  ): Promise<ReadClaim[]> {
    const { urgencies } = options
    // Deliveries cause many claims that find nothing: a read first, so that those write nothing. After a claim that
    // leased a row, more are most likely due. On PostgreSQL a transaction that only reads takes as long.
    if (engine.isLocal && !wasDue && !(await read((db) => isDue(engine, db, urgencies)))) return []
    wasDue = false
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const leased = await given.claim(
        write,
        (trx) => claimOnce(trx, options),
        ({ leases }) => leases,
      )
      const { isPutOff } = leased
      const claims = await leased.claims
      // What was leased must not wait until all rows before others are put off: a sender may add them as fast.
      if (claims.length > 0) {
        wasDue = true
        if (isPutOff) options.onPutOff?.()
        return claims
      }
      if (!isPutOff) break
      await nextTurn()
    }
    return []
  }

  /** See the port. Only the app names businesses here, so a sender who forges events cannot. */
  async function readFirst(trx: Connection, businessUid: string): Promise<void> {
    const look = lookBack.look()
    const earliest = Object.values(URGENCY).map(
      (urgency) => sql`
        select ${sql.lit(urgency)} as urgency, min(refresh_at) as due, ${engine.now()} as now from subscriptions
        where ${isDueOf(engine, urgency, look)}`,
    )
    const rows = await look.during(
      sql<{
        urgency: Urgency
        due: number | null
        now: number
      }>`${sql.join(earliest, ' union all ')}`.execute(trx),
    )
    for (const { urgency, due, now } of rows) look.found(urgency, now - (due ?? now))
    // A millisecond before the first of the class: health and people see how long the reads have been due.
    const firsts = rows.map(
      ({ urgency, due, now }) => sql`when ${sql.lit(urgency)} then ${Math.min(due ?? now, now) - 1}`,
    )
    await sql`
      update subscriptions set refresh_at = cast(case urgency ${sql.join(firsts, ' ')} end as bigint)
      where subscription_uid in (
        select subscription_uid from subscriptions
        where business_uid = ${businessUid} and generation > settled_generation and ${IS_FREE}
          and refresh_at <= ${engine.now()}
        order by unread, created_at desc limit ${sql.lit(MAX_AT_ONCE)} ${engine.skipLocked}
      )`.execute(trx)
  }

  return { claim, readFirst }
}

/** The due rows of one class; the next one is last. */
interface Stack {
  urgency: Urgency
  rows: DueRow[]
}

const isUnread = ({ urgency }: { urgency: Urgency }) => urgency === URGENCY.eventOfUnread

/** The busy businesses of each class. */
function createBusy(except: readonly string[], exceptUnread: readonly string[]) {
  const all = new Set([...except, ...exceptUnread])
  const known = new Set(except)
  return {
    of: (urgency: Urgency): ReadonlySet<string> => (isUnread({ urgency }) ? all : known),
    add({ business, urgency }: DueRow) {
      all.add(business)
      if (!isUnread({ urgency })) known.add(business)
    },
  }
}

/** Takes up to `limit` rows from the stacks, none of a business that is busy. `busy` gets the businesses of these rows. */
function pickRows(
  stacks: readonly Stack[],
  busy: ReturnType<typeof createBusy>,
  { limit, choose = ([first]) => first }: Pick<ClaimReads, 'limit' | 'choose'>,
): DueRow[] {
  const picked: DueRow[] = []
  const taken: Urgency[] = []
  while (picked.length < limit) {
    for (const { urgency, rows } of stacks)
      while (rows.length > 0 && busy.of(urgency).has((rows.at(-1) as DueRow).business)) rows.pop()
    const due = stacks.filter(({ rows }) => rows.length > 0)
    const urgency = choose(
      due.map((stack) => stack.urgency),
      taken,
    )
    const row = due.find((stack) => stack.urgency === urgency)?.rows.pop()
    if (!row) break
    busy.add(row)
    picked.push(row)
    taken.push(row.urgency)
  }
  return picked
}

/** The columns of a due row that decide whether it is leased. */
interface DueRow {
  uid: string
  business: string
  urgency: Urgency
  is_newest: number
  /** 1: it was never read, but another subscription of its business was. */
  is_of_known: 0 | 1
  /** How long it has been due. */
  due_for: number
}

/**
 * The free due rows of a class, the longest due first, or the newest: a range of the index `subscriptions_due`, which ends
 * at its limit.
 */
function dueReads(engine: Engine, urgency: Urgency, limit: number, look: LookBack, isNewest: 0 | 1 = 0): Sql {
  const isOfKnown =
    urgency === URGENCY.eventOfUnread ? sql`1 - ${unreadOfBusiness(sql`subscriptions.business_uid`)}` : sql`0`
  return sql`
    select subscription_uid as uid, business_uid as business, urgency, ${sql.lit(isNewest)} as is_newest,
      ${isOfKnown} as is_of_known, ${engine.now()} - refresh_at as due_for from subscriptions
    where ${isDueOf(engine, urgency, look)}
    order by refresh_at ${isNewest ? sql`desc` : sql``} limit ${limit} ${engine.skipLocked}`
}

/** Whether a row is a free due one of a class, of the rows that a look back reads. */
function isDueOf({ now }: Pick<Engine, 'now'>, urgency: Urgency, look: LookBack): Sql {
  const isSeen = look.since(urgency, sql`refresh_at`)
  return sql`urgency = ${sql.lit(urgency)} and refresh_at <= ${now()} and ${isSeen} and ${IS_FREE}`
}

/**
 * One statement reads all classes, and JavaScript picks among the rows: with a statement for each class and the pick in
 * SQL, SQLite was 3 × slower. On PostgreSQL the rows are locked, so that concurrent claims read different ones.
 */
async function dueRowsOf(
  engine: Engine,
  trx: Connection,
  urgencies: readonly Urgency[],
  size: number,
  look: LookBack,
) {
  const classes = urgencies.map((urgency) => dueReads(engine, urgency, size, look))
  if (urgencies.includes(URGENCY.eventOfUnread))
    classes.push(dueReads(engine, URGENCY.eventOfUnread, NEWEST * size, look, 1))
  if (classes.length === 0) return []
  const parts = classes.map((rows, i) => sql`select * from (${rows}) as ${sql.ref(`class_${i}`)}`)
  const rows = await sql<DueRow>`${sql.join(parts, ' union all ')}`.execute(trx)
  for (const urgency of urgencies)
    look.found(urgency, Math.max(0, ...rows.flatMap((row) => (row.urgency === urgency ? row.due_for : []))))
  return rows
}

/** Whether any row of these classes is due. */
async function isDue(
  engine: Pick<Engine, 'now'>,
  db: Connection,
  urgencies: readonly Urgency[],
): Promise<boolean> {
  const classes = sql.join(urgencies.map((urgency) => sql.lit(urgency)))
  const rows = await sql`
    select 1 from subscriptions where urgency in (${classes}) and refresh_at <= ${engine.now()} and ${IS_FREE} limit 1`.execute(
    db,
  )
  return rows.length > 0
}

/** The rows of busy businesses that one transaction puts off. */
const PUT_OFF_AT_ONCE = 128
/**
 * A business is read one row at a time, so its rows are put off by one step each. A row that is due too early is put
 * off again.
 */
const PUT_OFF_STEP_MS = 20

/** Puts off due rows of busy businesses, so that the rows behind them come first. */
function createPutOff(engine: Engine) {
  const { clock } = engine
  const delay = prepare(
    engine,
    { uid: 'text', ms: 'integer' },
    ({ table }) => sql`
      update subscriptions set refresh_at = late.now + late.ms
      from ${table} as late
      where subscriptions.subscription_uid = late.uid and ${IS_FREE} and refresh_at <= late.now
      returning subscription_uid`,
  )
  /** The monotonic time until which the rows of a business have been put off. */
  const putOffUntil = new Map<string, number>()

  /** Puts off one batch. False when it finds none. */
  return async function putOff(trx: Connection, urgency: Urgency, busy: ReadonlySet<string>, look: LookBack) {
    const due = await sql<DueRow>`${dueReads(engine, urgency, PUT_OFF_AT_ONCE + busy.size, look)}`.execute(
      trx,
    )
    const late = due.filter(({ business }) => busy.has(business))
    if (late.length === 0) return false
    const now = clock.monotonic()
    for (const [business, until] of putOffUntil) if (until < now) putOffUntil.delete(business)
    const rows = late.map(({ uid, business }) => {
      const until = Math.max(putOffUntil.get(business) ?? 0, now) + PUT_OFF_STEP_MS
      putOffUntil.set(business, until)
      return { uid, ms: Math.ceil(until - now) }
    })
    return (await run(engine, trx, delay(rows))).length > 0
  }
}

/** A requested read that has been due for this long is behind others. */
const BEHIND_MS = 250
/** Forged subscriptions may name any business. Those that were read come first, then the newest. */
const MAX_AT_ONCE = 100

/**
 * Whether a requested read waits behind others, so that `readFirst` would help the visitor who waits for it. Also a first read
 * that has failed: after an outage its next try is as late as those of all that was made up meanwhile.
 */
export function isBehindOthers(subscriptions: readonly Subscription[], now: number): boolean {
  return subscriptions.some(
    ({ pending, failure, record, refreshAt }) =>
      pending && (failure === null || record === null) && refreshAt !== null && now - refreshAt >= BEHIND_MS,
  )
}
