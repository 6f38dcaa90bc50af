import { EVERY_EVENT, HANDLED_FOR_MS, KINDS_OF_READS } from '../port/journal.js'
import type { Engine } from '../sql/engine.js'
import { type Sql, sql } from '../sql/sql.js'

// Conditions on topics, as SQL. docs/states.md has the states of a topic.

/** Whether an entry is of `KINDS_OF_READS`, as SQL. */
export function isOfReadBy(kind: Sql): Sql {
  return sql`${kind} in (${sql.join(KINDS_OF_READS.map((each) => sql.lit(each)))})`
}

/** Whether a new entry is pending, as SQL: its topic is known, or it is a change. Topics are never forgotten. */
export function isPendingBy(kind: Sql, topic: Sql): Sql {
  return sql`(${kind} = 'change' or ${topic} in (select topic from handlers)
    or (${kind} = 'event' and exists (select 1 from handlers where topic = ${sql.lit(EVERY_EVENT)})))`
}

/** Whether a process has named the topic `of` within `ms`, as SQL. */
export function isNamedWithin(engine: Pick<Engine, 'leaseNow'>, of: Sql, ms: number = HANDLED_FOR_MS): Sql {
  return sql`(select max(seen_at) from handlers where handlers.topic = ${of}
    or (handlers.topic = ${sql.lit(EVERY_EVENT)} and ${of} like 'event:%')) >= ${engine.leaseNow()} - ${sql.lit(ms)}`
}

/** The condition of the partial index `journal_aside`: events that were set aside. */
export const IS_ASIDE = sql`status = 'unhandled' and kind = 'event' and settled_at is not null`

/** `topics`, those of all events that were set aside, for a recursive query: it reads one index entry for each topic. */
export function asideTopics(engine: Pick<Engine, 'byIndex'>): Sql {
  const aside = sql`journal ${engine.byIndex('journal_aside')} where ${IS_ASIDE}`
  return sql`topics(topic) as (
    select min(topic) from ${aside}
    union all
    select (select min(journal.topic) from ${aside} and journal.topic > topics.topic)
    from topics where topic is not null
  )`
}
