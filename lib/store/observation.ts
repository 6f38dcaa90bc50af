import type { Engine } from './engine.js'
import { isNamedWithin } from './is-handled.js'
import { LANE_TOPICS } from './lane-heads.js'
import { schemaVersion } from './migrate.js'
import type { NewTally, StoreObservation } from './observed.js'
import type { TalliesTable } from './schema.js'
import { type Sql, sql } from './sql.js'
import { isTopicAmong, type Topic, URGENCY } from './store.js'
import type { StoreTime } from './store-time.js'

/** The table `tallies`, and queries for operators that read one index each. */
export function createObservation(
  engine: Engine,
  { read, write }: Pick<Engine, 'read' | 'write'>,
  offsetOf: StoreTime,
): StoreObservation {
  const { now } = engine

  return {
    addTallies: (tallies) =>
      write(async (trx) => {
        if (tallies.length === 0) return
        // Sorted, so that two processes lock the rows in the same order.
        const keyOf = ({ kind, name, secret }: NewTally) => `${kind} ${name} ${secret}`
        const rows = [...tallies].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
        await sql`
          insert into tallies (kind, name, secret, count, first_at, last_at)
          select kind, name, secret, count, ${now()} - first_ago, ${now()} - last_ago
          from ${engine.rows(JSON.stringify(rows.map(asRow)), COLUMNS)} as added where true
          on conflict (kind, name, secret) do update set
            count = tallies.count + excluded.count,
            last_at = case when tallies.last_at > excluded.last_at then tallies.last_at else excluded.last_at end`.execute(
          trx,
        )
      }),

    tallies: () =>
      read(async (db) => {
        const rows = await sql<
          TalliesTable & { now: number }
        >`select tallies.*, ${now()} as now from tallies`.execute(db)
        const offset = offsetOf(rows[0]?.now)
        return rows.map(({ kind, name, secret, count, first_at: firstAt, last_at: lastAt }) => ({
          kind,
          name,
          secret,
          count: Number(count),
          firstAt: Number(firstAt) + offset,
          lastAt: Number(lastAt) + offset,
        }))
      }),

    dueWork: ({ withinMs, topics }) =>
      read(async (db) => {
        const soon = sql`${now()} + ${Math.trunc(withinMs)}`
        // A range of the index for each class: SQLite scans the table for a condition on the time alone.
        const reads = [
          sql`select 1 from subscriptions where lease_token is not null`,
          ...Object.values(URGENCY).map(
            (urgency) =>
              sql`select 1 from subscriptions where urgency = ${sql.lit(urgency)} and refresh_at <= ${soon}`,
          ),
        ]
        // One statement sees one state. Between two, a read could end and write the change that the first did not see.
        const rows = await sql<{ reads: number; leased: number; topic: Topic | null }>`
          with recursive ${LANE_TOPICS}
          select ${anyOf(reads)} as reads,
            ${anyOf([sql`select 1 from lanes where lease_token is not null`])} as leased, topic
          from (
            select topic from topics where topic is not null and ${isNamedWithin(engine, sql.ref('topics.topic'))} and (
              select due_at from lanes where lanes.topic = topics.topic order by due_at limit 1
            ) <= ${soon}
            union all
            select null
          ) as due`.execute(db)
        const named = topics && new Set(topics)
        const isHandled = (topic: Topic | null) => topic !== null && (!named || isTopicAmong(named, topic))
        return {
          reads: Number(rows[0]?.reads) > 0,
          entries: Number(rows[0]?.leased) > 0 || rows.some(({ topic }) => isHandled(topic)),
        }
      }),

    schemaVersion: () => read(schemaVersion),
  }
}

/** Above 0 if any query returns a row. Each sub-select ends at its first row. */
function anyOf(queries: readonly Sql[]): Sql {
  const each = queries.map((query) => sql`coalesce((select 1 from (${query} limit 1) as found), 0)`)
  return sql`(${sql.join(each, ' + ')})`
}

const COLUMNS = {
  kind: 'text',
  name: 'text',
  secret: 'text',
  count: 'integer',
  first_ago: 'integer',
  last_ago: 'integer',
} as const

const asRow = ({ kind, name, secret, count, firstAgoMs, lastAgoMs }: NewTally) => ({
  kind,
  name,
  secret,
  count,
  first_ago: Math.trunc(firstAgoMs),
  last_ago: Math.trunc(lastAgoMs),
})
