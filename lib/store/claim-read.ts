import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { nextTurn } from '../waiting.js'
import type { Engine, Tables } from './schema.js'
import type { ClaimRead, ReadClaim, Urgency } from './store.js'
import type { Subscriptions } from './subscriptions.js'

/** Due rows of a class that a claim looks at beside as many as businesses are busy. */
const WINDOW = 16
/** Rows of busy businesses that one transaction puts off. */
const PUT_OFF_AT_ONCE = 128
/** Transactions of one claim, each of which puts off a batch of what cannot be read now. */
const MOST_LOOKS = 200
/** One business is read once at a time, so its rows come back one after the other; too soon only means: once more. */
const PUT_OFF_STEP_MS = 20

/** What a claim has to know of a row that is due. */
interface DueRow {
  uid: string
  business: string
  urgency: Urgency
}

/**
 * Which subscriptions may be leased next. A claim looks at a bounded number of due rows, however many belong to
 * businesses that are being read: when it finds nothing else, it puts those off, each once, so that what is behind them
 * comes up.
 */
export function createReadClaims(engine: Engine) {
  const { clock } = engine
  /** Until when rows of a business have been put off, in monotonic time. */
  const putOffUntil = new Map<string, number>()
  /** Whether the last claim found something. */
  let wasDue = false

  /**
   * The uids of the first class that has any, the longest due first: several, because others may be about to lease the
   * first. Undefined when nothing is due. `put off`: look again, there may be something behind.
   *
   * One statement looks into all classes, and what it finds is picked here: a statement for each class and the pick in
   * SQL took SQLite 1.0 ms instead of 0.3.
   */
  async function next(
    trx: Transaction<Tables>,
    { except, urgencies }: Omit<ClaimRead, 'leaseMs'>,
  ): Promise<string[] | 'put off' | undefined> {
    const size = WINDOW + except.length
    const busy = new Set(except)
    const { rows } = await sql<DueRow>`${sql.join(
      urgencies.map(
        (urgency) => sql`select * from (${due(urgency, size)}) as ${sql.ref(`class_${urgency}`)}`,
      ),
      sql` union all `,
    )}`.execute(trx)
    for (const urgency of urgencies) {
      const near = rows.filter((row) => row.urgency === urgency)
      const free = near.filter(({ business }) => !busy.has(business))
      if (free.length > 0) return free.map(({ uid }) => uid)
      // Where there are fewer, all that is due has been looked at.
      if (busy.size > 0 && near.length === size && (await putOff(trx, urgency, busy))) return 'put off'
    }
    return undefined
  }

  /** Walked in the index, and ended by its limit. */
  function due(urgency: Urgency, limit: number, more: RawBuilder<unknown> = sql``) {
    return sql`
      select subscription_uid as uid, business_uid as business, urgency ${more} from subscriptions
      where urgency = ${sql.lit(urgency)} and refresh_at <= ${engine.now()}
      order by refresh_at limit ${limit}`
  }

  async function putOff(trx: Transaction<Tables>, urgency: Urgency, busy: ReadonlySet<string>) {
    const { rows } = await sql<DueRow & { token: string | null }>`${due(
      urgency,
      PUT_OFF_AT_ONCE + busy.size,
      sql`, lease_token as token`,
    )}`.execute(trx)
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
    json.sort((a, b) => (a.uid < b.uid ? -1 : 1))
    const put = await sql`
      update subscriptions set refresh_at = ${engine.now()} + late.ms
      from ${engine.rows(JSON.stringify(json), { uid: 'text', ms: 'integer' })} as late
      where subscriptions.subscription_uid = late.uid and lease_token is null and refresh_at <= ${engine.now()}
      returning subscription_uid`.execute(trx)
    return put.rows.length > 0
  }

  async function isDue(db: Kysely<Tables>, urgencies: readonly Urgency[]): Promise<boolean> {
    const classes = sql.join(urgencies.map((urgency) => sql.lit(urgency)))
    const { rows } = await sql`
      select 1 from subscriptions where urgency in (${classes}) and refresh_at <= ${engine.now()} limit 1`.execute(
      db,
    )
    return rows.length > 0
  }

  return {
    async claim(
      { read, write, lease }: Pick<Engine, 'read' | 'write'> & Pick<Subscriptions, 'lease'>,
      options: ClaimRead,
    ): Promise<ReadClaim | undefined> {
      // Deliveries cause many looks that find nothing: those write nothing. After one that found something there is most
      // likely more; and on PostgreSQL a look that only reads takes as long.
      if (engine.isLocal && !wasDue && !(await read((db) => isDue(db, options.urgencies)))) return undefined
      wasDue = false
      for (let looks = 0; looks < MOST_LOOKS; looks++) {
        const claimed = await write(async (trx) => {
          const found = await next(trx, options)
          return typeof found === 'object' ? lease(trx, found, options) : found
        })
        wasDue = claimed !== undefined
        if (claimed !== 'put off') return claimed
        await nextTurn()
      }
      return undefined
    },
  }
}
