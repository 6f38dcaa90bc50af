import { nextTurn } from '../base/waiting.js'
import { isNamedWithin } from './journal/is-handled.js'
import { firstDueOf, LANE_TOPICS } from './lanes/heads.js'
import type { Arrival, StoreObservation } from './port/operators.js'
import { isTopicAmong, type Topic, URGENCY } from './port/store.js'
import type { ClockOffset } from './sql/clock-offset.js'
import type { Engine } from './sql/engine.js'
import { schemaVersion } from './sql/migrations.js'
import type { JournalTable, PlatformFactsTable } from './sql/schema.js'
import { type Sql, sql } from './sql/sql.js'

/** Queries for operators that read one index each. */
export function createObservation(
  engine: Engine,
  { read, write }: Pick<Engine, 'read' | 'write'>,
  offsetOf: ClockOffset,
): StoreObservation {
  return {
    async arrivals(limit) {
      const found = new Map<string, Arrival>()
      let oldest = Number.POSITIVE_INFINITY
      let counted = 0
      for (let before: string | undefined; counted < limit; ) {
        const window = Math.min(WINDOW, limit - counted)
        const rows = await read((db) => arrivalsBefore(before, window).execute(db))
        const offset = offsetOf(rows[0]?.now)
        let seen = 0
        for (const row of rows) {
          seen += row.count
          oldest = Math.min(oldest, row.first_at + offset)
          if (row.kind === 'event' || row.kind === 'unrecognised') add(found, asArrival(row, offset))
        }
        if (seen < window) return { arrivals: [...found.values()], completeSince: null }
        counted += seen
        before = rows[0]?.lowest
        await nextTurn()
      }
      return { arrivals: [...found.values()], completeSince: oldest }
    },

    dueWork: ({ withinMs, topics, searches = false }) =>
      read(async (db) => {
        const soon = sql`${engine.now()} + ${Math.trunc(withinMs)}`
        // A range of the index for each class: SQLite scans the table for a condition on the time alone.
        const reads = [
          sql`select 1 from subscriptions where lease_token is not null`,
          ...Object.values(URGENCY).map(
            (urgency) =>
              sql`select 1 from subscriptions where urgency = ${sql.lit(urgency)} and refresh_at <= ${soon}`,
          ),
          ...(searches
            ? [
                sql`select 1 from searches where lease_token is not null`,
                ...[0, 1].map(
                  (byInstall) =>
                    sql`select 1 from searches where by_install = ${sql.lit(byInstall)} and search_at <= ${soon}`,
                ),
              ]
            : []),
        ]
        // One statement sees one state. Between two, a read could end and write the change that the first did not see.
        const rows = await sql<{ reads: number; leased: number; topic: Topic | null }>`
          with recursive ${LANE_TOPICS}
          select ${anyOf(reads)} as reads,
            ${anyOf([sql`select 1 from lanes where lease_token is not null`])} as leased, topic
          from (
            select topic from topics where topic is not null and ${isNamedWithin(engine, sql.ref('topics.topic'))} and ${firstDueOf(sql`1 = 1`)} <= ${soon}
            union all
            select null
          ) as due`.execute(db)
        const named = topics && new Set(topics)
        const isHandled = (topic: Topic | null) => topic !== null && (!named || isTopicAmong(named, topic))
        return {
          reads: (rows[0]?.reads ?? 0) > 0,
          entries: (rows[0]?.leased ?? 0) > 0 || rows.some(({ topic }) => isHandled(topic)),
        }
      }),

    cleanUp: () => read(async (db) => (await engine.cleanUp?.(db)) ?? null),
    schemaVersion: () => read(schemaVersion),

    platformFacts: () => read(async (db) => (await FACTS.execute(db))[0]?.facts || null),
    addPlatformFacts: (add) =>
      write(async (trx) => {
        await sql`insert into platform_facts (id, facts) values (1, '') on conflict (id) do nothing`.execute(
          trx,
        )
        const [row] = await sql<FactsRow>`${FACTS} ${engine.forUpdate}`.execute(trx)
        await sql`update platform_facts set facts = ${add(row?.facts || null)} where id = 1`.execute(trx)
      }),
  }

  /**
   * Counts a window of the entries before an id; ids are made in the order of time. The plan on both engines is a range of
   * the index of the ids, backward. See docs/decisions/counts-read-an-index.md.
   */
  function arrivalsBefore(id: string | undefined, window: number): Sql<ArrivalRow> {
    return sql<ArrivalRow>`
      with newest as materialized (
        select id, kind, name, secret, received_at from journal
        ${id === undefined ? sql`` : sql`where id < ${id}`} order by id desc limit ${window}
      )
      select kind, name, secret, count(*) as count, min(received_at) as first_at, max(received_at) as last_at,
        (select min(id) from newest) as lowest, ${engine.now()} as now
      from newest group by kind, name, secret`
  }
}

type FactsRow = Pick<PlatformFactsTable, 'facts'>
const FACTS = sql<FactsRow>`select facts from platform_facts where id = 1`

/** The entries that one statement of `arrivals` reads: SQLite takes about a millisecond for them. */
const WINDOW = 500

type ArrivalRow = Pick<JournalTable, 'name' | 'secret'> & {
  kind: string
  count: number
  first_at: number
  last_at: number
  lowest: string
  now: number
}

function asArrival(row: ArrivalRow, offset: number): Arrival {
  return {
    kind: row.kind as Arrival['kind'],
    name: row.name,
    secret: row.secret,
    count: row.count,
    firstAt: row.first_at + offset,
    lastAt: row.last_at + offset,
  }
}

function add(found: Map<string, Arrival>, more: Arrival) {
  const key = `${more.kind} ${more.name} ${more.secret}`
  const sum = found.get(key)
  if (!sum) return void found.set(key, more)
  sum.count += more.count
  sum.firstAt = Math.min(sum.firstAt, more.firstAt)
  sum.lastAt = Math.max(sum.lastAt, more.lastAt)
}

/** Above 0 if any query returns a row. Each sub-select ends at its first row. */
function anyOf(queries: readonly Sql[]): Sql {
  const each = queries.map((query) => sql`coalesce((select 1 from (${query} limit 1) as found), 0)`)
  return sql`(${sql.join(each, ' + ')})`
}
