import { nextTurn } from '../../../base/waiting.js'
import { ENTRY_KINDS, ENTRY_STATUSES } from '../../port/journal.js'
import type { EntryStatus } from '../../port/store.js'
import type { Engine } from '../engine.js'
import { type Sql, sql } from '../sql.js'
import { ofStatus } from './tables.js'

/**
 * What a store contains: its subscriptions, the entries of each status, the lanes, the topics of handlers, and the searches.
 */
export type CopiedCounts = Record<'subscriptions' | EntryStatus | 'lanes' | 'topics' | 'searches', number>

/** Asks a store, inside a transaction or outside of one. */
export type Ask = <Of>(query: Sql<Of>) => Promise<Of[]>

/** Counts what a store contains, by statements that each read a window of an index. */
export async function countsOf(engine: Pick<Engine, 'byIndex'>, ask: Ask): Promise<CopiedCounts> {
  async function count(
    table: string,
    column: string,
    start: string | number,
    which: Sql = sql`1 = 1`,
    index = sql``,
  ) {
    const place = sql.ref(column)
    let sum = 0
    for (let after = start; ; await nextTurn()) {
      const [row] = await ask(sql<{ count: number; last: string | number | null }>`
        select count(*) as count, max(place) as last from (
          select ${place} as place from ${sql.ref(table)} ${index}
          where ${which} and ${place} > ${after} order by ${place} limit ${WINDOW}
        ) as counted`)
      sum += row?.count ?? 0
      if (!row || row.last === null || row.count < WINDOW) return sum
      after = row.last
    }
  }

  const counts = noCounts()
  for (const status of ENTRY_STATUSES)
    for (const kind of ENTRY_KINDS)
      counts[status] += await count(
        'journal',
        'seq',
        0,
        ofStatus(status, kind),
        engine.byIndex('journal_status'),
      )
  counts.subscriptions = await count('subscriptions', 'subscription_uid', '')
  counts.lanes = await count('lanes', 'key', '')
  counts.topics = await count('handlers', 'topic', '')
  counts.searches = await count('searches', 'business_uid', '')
  return counts
}

/** The rows of an index that one statement counts. */
const WINDOW = 10_000

/** Nothing, to count from. */
export const noCounts = (): CopiedCounts => ({
  subscriptions: 0,
  pending: 0,
  unhandled: 0,
  done: 0,
  dead: 0,
  lanes: 0,
  topics: 0,
  searches: 0,
})
