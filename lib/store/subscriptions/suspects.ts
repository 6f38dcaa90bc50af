import { MINUTE } from '../../base/clock.js'
import { newLeaseToken } from '../lanes/leases.js'
import { MAX_LAPSES, type ReadClaim } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import type { StoreTime } from '../sql/store-time.js'
import { createSubscriptionRows, type LeasedRow, leasedRow } from './subscriptions.js'

/** The first pause of a read that has ended the process `MAX_LAPSES` times. It doubles this many times. */
const PAUSE_MS = 5 * MINUTE
const DOUBLINGS = 6

/** Leases suspect reads, one at a time, the fewest lapses first. docs/states.md has the states. */
export function createSuspectReads(engine: Engine, offsetOf: StoreTime) {
  const { now, leaseNow } = engine
  const { asClaim } = createSubscriptionRows(offsetOf)
  const hasRunOut = () => sql`lease_token is not null and refresh_at <= ${leaseNow()}`
  const isMarked = () => sql`suspect = 1 and lease_token is null and refresh_at <= ${now()}`

  return {
    /** A query for the fewest lapses of a due suspect read: those already marked, and those whose lease has run out. */
    fewestLapses: (): Sql => sql`
      select min(lapses) as lapses from (
        select * from (
          select lapses from subscriptions where ${isMarked()} order by lapses limit 1
        ) as marked
        union all
        select * from (
          select lapses from subscriptions where ${hasRunOut()} order by refresh_at limit 100
        ) as run_out
      ) as suspect_reads`,

    async claim(trx: Connection, leaseMs: number): Promise<ReadClaim | undefined> {
      const isPutOff = sql`lapses >= ${sql.lit(MAX_LAPSES)}`
      const doublings = sql`case when lapses > ${sql.lit(MAX_LAPSES + DOUBLINGS)} then ${sql.lit(DOUBLINGS)}
        else lapses - ${sql.lit(MAX_LAPSES)} end`
      await sql`
        update subscriptions set suspect = 1, lease_token = null,
          failure = case when ${isPutOff} then 'lease_lapsed' else failure end,
          refresh_at = case when ${isPutOff} then ${now()} + ${sql.lit(PAUSE_MS)} * (1 << (${doublings})) else refresh_at end
        where subscription_uid in (
          select subscription_uid from subscriptions where ${hasRunOut()} order by subscription_uid ${engine.skipLocked}
        )`.execute(trx)
      const [picked] = await sql<{ uid: string }>`
        select subscription_uid as uid from subscriptions where ${isMarked()}
        order by lapses, refresh_at limit 1 ${engine.skipLocked}`.execute(trx)
      if (!picked) return undefined
      const [row] = await sql<LeasedRow>`
        update subscriptions set
          lapses = lapses + 1, lease_token = ${newLeaseToken()}, refresh_at = ${leaseNow()} + ${leaseMs}
        where subscription_uid = ${picked.uid} returning ${leasedRow(engine)}`.execute(trx)
      return row && { ...asClaim(row), lapses: Number(row.lapses) - 1 }
    },
  }
}
