import type { Engine } from './engine.js'
import { type Connection, type Sql, sql } from './sql.js'
import { URGENCY, type Urgency } from './store.js'

/** Whose lease did not run out, and no earlier one: `suspect-reads.ts` leases the others. */
const IS_UNSUSPECTED = sql`suspect = 0 and lease_token is null`

/** The columns of a due row that decide whether it is leased. */
export interface DueRow {
  uid: string
  business: string
  urgency: Urgency
  is_newest: number
}

/** The due rows of a class, the longest due first: a range of the index `subscriptions_due`, which ends at its limit. */
export function dueReads(engine: Engine, urgency: Urgency, limit: number, more: Sql = sql``) {
  return sql`
    select subscription_uid as uid, business_uid as business, urgency, 0 as is_newest ${more} from subscriptions
    where urgency = ${sql.lit(urgency)} and refresh_at <= ${engine.now()} and ${IS_UNSUSPECTED}
    order by refresh_at limit ${limit}`
}

/**
 * One statement reads all classes, and JavaScript picks among the rows: with a statement for each class and the pick in
 * SQL, SQLite was 3 × slower. On PostgreSQL the rows are locked, so that concurrent claims read different ones.
 */
export async function dueRowsOf(
  engine: Engine,
  trx: Connection,
  urgencies: readonly Urgency[],
  size: number,
) {
  const classes = urgencies.map(
    (urgency) =>
      sql`select * from (${dueReads(engine, urgency, size)} ${engine.skipLocked}) as ${sql.ref(`class_${urgency}`)}`,
  )
  if (urgencies.includes(URGENCY.eventOfUnread))
    classes.push(sql`select * from (
      select subscription_uid as uid, business_uid as business, urgency, 1 as is_newest from subscriptions
      where urgency = ${sql.lit(URGENCY.eventOfUnread)} and refresh_at <= ${engine.now()} and ${IS_UNSUSPECTED}
      order by refresh_at desc limit ${size} ${engine.skipLocked}) as newest`)
  if (classes.length === 0) return []
  const rows = await sql<DueRow>`${sql.join(classes, ' union all ')}`.execute(trx)
  return rows
}

/** Whether any row of these classes is due. */
export async function isDue(
  engine: Pick<Engine, 'now' | 'leaseNow' | 'isLocal'>,
  db: Connection,
  urgencies: readonly Urgency[],
): Promise<boolean> {
  const classes = sql.join(urgencies.map((urgency) => sql.lit(urgency)))
  const rows = await sql`
    select 1 from subscriptions where urgency in (${classes}) and refresh_at <= ${engine.now()} and ${IS_UNSUSPECTED} limit 1`.execute(
    db,
  )
  return rows.length > 0
}
