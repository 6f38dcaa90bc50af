import { type ClaimSuspectLane, EVERY_EVENT, type LaneClaim, type Topic } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import type { StoreTime } from '../sql/store-time.js'
import { handedOut } from './claims.js'
import { headsOf, keysIn } from './heads.js'
import { type Lanes, TAKEN_BACK } from './lanes.js'
import { newLeaseToken } from './leases.js'

/**
 * Leases suspect lanes, one at a time. The fewest lapses come first: so the innocent ones, which were leased beside the
 * one that ends the process, are all handled after its first try alone. docs/states.md has the states.
 */
export function createSuspectLanes(engine: Engine, lanes: Pick<Lanes, 'advance'>, offsetOf: StoreTime) {
  const { now, leaseNow } = engine
  const hasRunOut = () =>
    sql`lease_token is not null and lease_token <> ${TAKEN_BACK} and due_at <= ${leaseNow()}`

  /** Due suspect lanes that the caller may lease. */
  const mayLease = ({ topics, exceptKeys }: Pick<ClaimSuspectLane, 'topics' | 'exceptKeys'>) =>
    sql`due_at <= ${now()} and ${isHandled(topics)} and key not in ${keysIn(engine, exceptKeys)}`

  return {
    /** A query for the fewest lapses of a due suspect lane: those already marked, and those whose lease has run out. */
    fewestLapses(options: Omit<ClaimSuspectLane, 'leaseMs'>): Sql {
      return sql`
        select min(lapses) as lapses from (
          select * from (
            select lapses from lanes where suspect = 1 and lease_token is null and ${mayLease(options)}
            order by lapses limit 1
          ) as marked
          union all
          select * from (
            select lapses from lanes where ${hasRunOut()} and ${mayLease(options)} order by due_at limit 100
          ) as run_out
        ) as suspect_lanes`
    },

    async claim(trx: Connection, options: ClaimSuspectLane): Promise<LaneClaim | undefined> {
      // From the time of leases to that of dates.
      await sql`
        update lanes set suspect = 1, lease_token = null, due_at = due_at + (${now()} - ${leaseNow()}) where key in (
          select key from lanes where ${hasRunOut()} order by key ${engine.skipLocked}
        )`.execute(trx)
      const token = newLeaseToken()
      const [row] = await sql<{ key: string; lapses: number }>`
        with picked as materialized (
          select key from lanes where suspect = 1 and lease_token is null and ${mayLease(options)}
          order by lapses, due_at limit 1 ${engine.skipLocked}
        )
        update lanes set lapses = lapses + 1, lease_token = ${token}, due_at = ${leaseNow()} + ${options.leaseMs}
        from picked where lanes.key = picked.key returning lanes.key, lapses`.execute(trx)
      if (!row) return undefined
      const lapses = Number(row.lapses) - 1
      const rows = (await headsOf(engine, trx, [row.key], 1)).get(row.key) ?? []
      const offset = offsetOf(rows[0]?.now)
      const entries = handedOut(rows, { topics: new Set(options.topics), lapses, offset })
      if (entries.length > 0) return { id: row.key, leaseToken: token, lapses, entries }
      // Its head has ended, or has another topic.
      await lanes.advance(trx, [row.key], rows.length === 0 ? 'all' : 'untried')
      return undefined
    },
  }
}

/** A condition of lanes whose head has one of these topics. It uses no index: suspects are few, due lanes may be many. */
function isHandled(topics: readonly Topic[]): Sql {
  if (topics.length === 0) return sql`1 = 0`
  const topic = sql`(topic || '')`
  const named = sql`${topic} in (${sql.join(topics.map((each) => sql`${each}`))})`
  return topics.includes(EVERY_EVENT)
    ? sql`(${named} or (${topic} > 'event:' and ${topic} < 'event;'))`
    : named
}
