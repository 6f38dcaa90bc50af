import { nextTurn } from '../waiting.js'
import type { Engine } from './engine.js'
import { type Connection, type Sql, sql } from './sql.js'
import type { ClaimReads, ReadClaim, Urgency } from './store.js'
import type { Subscriptions } from './subscriptions.js'

/** Due rows of a class that a claim looks at beside as many as it may lease and as businesses are busy. */
const WINDOW = 16
/** Rows of busy businesses that one transaction puts off. */
const PUT_OFF_AT_ONCE = 128
/** One business is read once at a time, so its rows come back one after the other; too soon only means: once more. */
const PUT_OFF_STEP_MS = 20
/** Transactions of one claim, each of which puts off a batch of what cannot be read now. */
const MOST_LOOKS = 200
/** Named by an event and never read: what is made up looks like a customer here. */
const UNREAD = 1 satisfies Urgency

/** What a claim has to know of a row that is due. */
interface DueRow {
  uid: string
  business: string
  urgency: Urgency
  is_newest: number
}

/**
 * Leases the subscriptions that may be read next. A claim looks at a bounded number of due rows, however many belong to
 * businesses that are being read: when they hide what is behind them it puts those off, each once, so that the others
 * come up.
 *
 * Of what was never read every second one is the newest: whoever makes up very many cannot hold back a purchase that
 * comes after them, nor can those that keep coming hold back the first.
 */
export function createReadClaims(engine: Engine, subscriptions: Pick<Subscriptions, 'lease'>) {
  const { clock } = engine
  /** Until when rows of a business have been put off, in monotonic time. */
  const putOffUntil = new Map<string, number>()
  let isNewestNext = false
  /** Whether the last claim found something. */
  let wasDue = false

  /** `isPutOff`: look again, there may be something behind. */
  async function claimOnce(
    trx: Connection,
    options: ClaimReads,
  ): Promise<{ claims: ReadClaim[]; isPutOff: boolean }> {
    const { limit, except, urgencies, choose = ([first]) => first } = options
    const size = WINDOW + limit + except.length
    const rows = await lookInto(trx, urgencies, size)
    if (rows.length === 0) return { claims: [], isPutOff: false }
    const busy = new Set(except)
    const lines = urgencies.map((urgency) => ({ urgency, rows: lineOf(rows, urgency) }))
    const picked: DueRow[] = []
    const taken: Urgency[] = []
    while (picked.length < limit) {
      for (const line of lines)
        while (line.rows.length > 0 && busy.has((line.rows.at(-1) as DueRow).business)) line.rows.pop()
      const due = lines.filter((line) => line.rows.length > 0)
      const urgency = choose(
        due.map((line) => line.urgency),
        taken,
      )
      const row = due.find((line) => line.urgency === urgency)?.rows.pop()
      if (!row) break
      busy.add(row.business)
      picked.push(row)
      taken.push(row.urgency)
    }
    const claims = await subscriptions.lease(
      trx,
      picked.map(({ uid }) => uid),
      options.leaseMs,
    )
    let isPutOff = false
    if (picked.length < limit) {
      for (const line of lines) {
        // Where there are fewer, all that is due has been looked at.
        const seen = rows.filter((row) => row.urgency === line.urgency && row.is_newest === 0).length
        if (line.rows.length === 0 && seen === size && (await putOff(trx, line.urgency, busy)))
          isPutOff = true
      }
    }
    return { claims, isPutOff }
  }

  /**
   * One statement looks into all classes, and what it finds is picked here: a statement for each class and the pick in
   * SQL took SQLite three times as long. Where others claim too, what it finds is locked, so that each finds other rows.
   */
  async function lookInto(trx: Connection, urgencies: readonly Urgency[], size: number) {
    const classes = urgencies.map(
      (urgency) =>
        sql`select * from (${due(urgency, size)} ${engine.skipLocked}) as ${sql.ref(`class_${urgency}`)}`,
    )
    if (urgencies.includes(UNREAD))
      classes.push(sql`select * from (
        select subscription_uid as uid, business_uid as business, urgency, 1 as is_newest from subscriptions
        where urgency = ${sql.lit(UNREAD)} and refresh_at <= ${engine.now()}
        order by refresh_at desc limit ${size} ${engine.skipLocked}) as newest`)
    if (classes.length === 0) return []
    const rows = await sql<DueRow>`${sql.join(classes, ' union all ')}`.execute(trx)
    return rows
  }

  /** The rows of a class, the next last. */
  function lineOf(rows: readonly DueRow[], urgency: Urgency): DueRow[] {
    const ofClass = rows.filter((row) => row.urgency === urgency)
    if (urgency !== UNREAD) return ofClass.reverse()
    const ends = [0, 1].map((isNewest) => ofClass.filter((row) => row.is_newest === isNewest))
    if (isNewestNext) ends.reverse()
    isNewestNext = !isNewestNext
    const [first = [], second = []] = ends
    // The same row may come from both ends: the second time its business is busy.
    return first.flatMap((row, i) => [row, ...second.slice(i, i + 1)]).reverse()
  }

  /** Walked in the index, and ended by its limit. */
  function due(urgency: Urgency, limit: number, more: Sql = sql``) {
    return sql`
      select subscription_uid as uid, business_uid as business, urgency, 0 as is_newest ${more} from subscriptions
      where urgency = ${sql.lit(urgency)} and refresh_at <= ${engine.now()}
      order by refresh_at limit ${limit}`
  }

  async function putOff(trx: Connection, urgency: Urgency, busy: ReadonlySet<string>) {
    const rows = await sql<DueRow & { token: string | null }>`${due(
      urgency,
      PUT_OFF_AT_ONCE + busy.size,
      sql`, lease_token as token`,
    )} ${engine.skipLocked}`.execute(trx)
    // A leased row keeps its time, which is the end of its lease.
    const late = rows.filter(({ business, token }) => busy.has(business) && token === null)
    if (late.length === 0) return false
    const now = clock.monotonic()
    for (const [business, until] of putOffUntil) if (until < now) putOffUntil.delete(business)
    const json = late.map(({ uid, business }) => {
      const until = Math.max(putOffUntil.get(business) ?? 0, now) + PUT_OFF_STEP_MS
      putOffUntil.set(business, until)
      return { uid, ms: Math.ceil(until - now) }
    })
    const put = await sql`
      update subscriptions set refresh_at = ${engine.now()} + late.ms
      from ${engine.rows(JSON.stringify(json), { uid: 'text', ms: 'integer' })} as late
      where subscriptions.subscription_uid = late.uid and lease_token is null and refresh_at <= ${engine.now()}
      returning subscription_uid`.execute(trx)
    return put.length > 0
  }

  async function isDue(db: Connection, urgencies: readonly Urgency[]): Promise<boolean> {
    const classes = sql.join(urgencies.map((urgency) => sql.lit(urgency)))
    const rows = await sql`
      select 1 from subscriptions where urgency in (${classes}) and refresh_at <= ${engine.now()} limit 1`.execute(
      db,
    )
    return rows.length > 0
  }

  async function claim(
    { read, write }: Pick<Engine, 'read' | 'write'>,
    options: ClaimReads,
  ): Promise<ReadClaim[]> {
    const { limit, except, urgencies, choose = ([first]) => first } = options
    // Deliveries cause many looks that find nothing: those write nothing. After one that found something there is most
    // likely more; and on PostgreSQL a look that only reads takes as long.
    if (engine.isLocal && !wasDue && !(await read((db) => isDue(db, urgencies)))) return []
    wasDue = false
    const claims: ReadClaim[] = []
    for (let looks = 0; looks < MOST_LOOKS && claims.length < limit; looks++) {
      const before = claims.map(({ urgency }) => urgency)
      const left = {
        ...options,
        limit: limit - claims.length,
        except: [...except, ...claims.map((claim) => claim.subscription.businessUid)],
        choose: (due: readonly Urgency[], taken: readonly Urgency[]) => choose(due, [...before, ...taken]),
      }
      try {
        const found = await write((trx) => claimOnce(trx, left))
        claims.push(...found.claims)
        if (!found.isPutOff) break
      } catch (error) {
        // What is leased must be read; the next claim meets the same.
        if (claims.length === 0) throw error
        break
      }
      await nextTurn()
    }
    wasDue = claims.length > 0
    return claims
  }

  return { claim }
}
