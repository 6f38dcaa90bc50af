import type { Engine } from './engine.js'
import { type Sql, sql } from './sql.js'

/**
 * Whether a row of `subscriptions` or `lanes` may be leased, by its column `refresh_at` or `due_at`. While it is leased,
 * the column is the end of the lease, in the time of leases, which is never ahead of the time of dates. So the first
 * condition is a range of the index. PostgreSQL has one time. The `case` keeps SQLite from another index.
 */
export function isDueBy(engine: Pick<Engine, 'now' | 'leaseNow' | 'isLocal'>, column: Sql) {
  const isDue = sql`${column} <= ${engine.now()}`
  return engine.isLocal
    ? sql`${isDue} and case when lease_token is null then 1 else ${column} <= ${engine.leaseNow()} end = 1`
    : isDue
}
