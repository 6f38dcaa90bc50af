import { type Clock, DAY, HOUR, SECOND } from '../../base/clock.js'
import type { Engine } from '../sql/engine.js'
import { type Sql, sql } from '../sql/sql.js'

/** A row is due at the time of its statement, and seen after its commit: most take less. */
const COMMIT_MS = SECOND / 2
/** Almost every transaction takes less: a statement may take 5 s, a lock 4 s. */
const LONG_COMMIT_MS = 15 * SECOND
/** A query further back is made again after this many times its duration, so all of them take 2 % of the time each. */
const RESTS = 50
/** How the limit of all queries changes after one that took too long, and after one to the limit that did not. */
const LIMIT = { factor: 4, firstMs: HOUR, leastMs: LONG_COMMIT_MS, mostMs: DAY }
const ALL = sql`1 = 1`

/** One query for due rows. */
export interface LookBack {
  /**
   * A condition of the rows of this part that the query reads.
   *
   * @param now the time in which `dueAt` is: by default that of dates
   */
  since(part: string | number, dueAt: Sql, now?: Sql): Sql
  /** The oldest row of the part that the query has found has been due for so long; 0: it has found none. */
  found(part: string | number, oldestMs: number): void
  /** Ends the look with the query, and settles as it does. */
  during<T>(query: Promise<T>): Promise<T>
}

/**
 * How far back queries for due rows look. An index keeps the entries of rows that are not due any more while some
 * transaction is open that began before, and a query from the start of the index reads them all: after half an hour of
 * 500 deliveries a second 900,000. So a query begins a little before the oldest row that the last one found, or before
 * the last query if it found none. A row whose commit took longer, or that was locked, may be behind that: queries further
 * back find it, which are rarer the longer they take.
 *
 * Each part, a class of rows, has its own oldest row: one whose rows wait long must not make the queries of the others read
 * as far back. So a free row that gets another class is due there from now on.
 *
 * A query that the database gave up because it took too long would do so again and again. So none reads further back than a
 * limit, which becomes less after each of those, and more with each query to the limit that succeeds. What has been due for
 * longer is found by a query to a higher limit, at the latest when the other transaction has ended.
 */
export function createLookBack(
  engine: Pick<Engine, 'isLocal' | 'isTimeout' | 'now'> & { clock: Pick<Clock, 'monotonic'> },
) {
  const { clock } = engine
  const farthest = { backMs: Number.POSITIVE_INFINITY, nextAt: 0, tookMs: 0 }
  const reaches = [farthest, { backMs: LONG_COMMIT_MS, nextAt: 0, tookMs: 0 }]
  let limitMs = Number.POSITIVE_INFINITY
  const oldest = new Map<string | number, { ms: number; at: number }>()

  function lookTo(reach: (typeof reaches)[number] | undefined): LookBack {
    const beganAt = clock.monotonic()
    const backMs = reach?.backMs ?? COMMIT_MS
    return {
      since(part, dueAt, now = engine.now()) {
        // SQLite removes the entries of rows that are not due any more at once.
        if (engine.isLocal) return ALL
        const last = oldest.get(part)
        const ms = Math.min(limitMs, last ? last.ms + (beganAt - last.at) + backMs : Number.POSITIVE_INFINITY)
        return ms === Number.POSITIVE_INFINITY ? ALL : sql`${dueAt} >= ${now} - ${Math.ceil(ms)}`
      },
      found: (part, oldestMs) => void oldest.set(part, { ms: oldestMs, at: beganAt }),
      async during(query) {
        try {
          const result = await query
          if (reach) restAfter(reach, beganAt)
          return result
        } catch (error) {
          if (engine.isTimeout(error))
            limitMs = Math.max(LIMIT.leastMs, Math.min(limitMs / LIMIT.factor, LIMIT.firstMs))
          throw error
        }
      },
    }
  }

  function restAfter(reach: (typeof reaches)[number], beganAt: number) {
    const now = clock.monotonic()
    reach.tookMs = now - beganAt
    // It has read what the less far ones read.
    for (const each of reaches) if (each.backMs <= reach.backMs) each.nextAt = now + each.tookMs * RESTS
    if (reach !== farthest) return
    limitMs = limitMs > LIMIT.mostMs ? Number.POSITIVE_INFINITY : limitMs * LIMIT.factor
  }

  return {
    look: () => lookTo(reaches.find(({ nextAt }) => clock.monotonic() >= nextAt)),
    /** A look for rows that another one has just found: it goes no further back. */
    lookAgain: () => lookTo(undefined),
  }
}
