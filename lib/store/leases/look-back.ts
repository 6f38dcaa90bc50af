import { type Clock, SECOND } from '../../base/clock.js'

/** A row is due at the time of its statement, and seen after its commit: most take less. */
const COMMIT_MS = SECOND / 2
/** Almost every transaction takes less: a statement may take 5 s, a lock 4 s. */
const LONG_COMMIT_MS = 15 * SECOND
/** A query further back is made again after this many times its duration, so all of them take 2 % of the time each. */
const RESTS = 50

/** One query for due rows. */
export interface LookBack {
  /** How long ago the rows of this part are due that the query reads, at most; undefined: all rows. */
  sinceMs(part: string | number): number | undefined
  /** The oldest row of the part that the query has found has been due for so long; 0: it has found none. */
  found(part: string | number, oldestMs: number): void
  end(): void
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
 */
export function createLookBack(clock: Pick<Clock, 'monotonic'>) {
  const reaches = [
    { backMs: Number.POSITIVE_INFINITY, nextAt: 0, tookMs: 0 },
    { backMs: LONG_COMMIT_MS, nextAt: 0, tookMs: 0 },
  ]
  const oldest = new Map<string | number, { ms: number; at: number }>()

  function look(): LookBack {
    const beganAt = clock.monotonic()
    const reach = reaches.find(({ nextAt }) => beganAt >= nextAt)
    const backMs = reach?.backMs ?? COMMIT_MS
    return {
      sinceMs(part) {
        const last = oldest.get(part)
        const ms = last ? last.ms + (beganAt - last.at) + backMs : Number.POSITIVE_INFINITY
        return ms === Number.POSITIVE_INFINITY ? undefined : Math.ceil(ms)
      },
      found: (part, oldestMs) => void oldest.set(part, { ms: oldestMs, at: beganAt }),
      end() {
        if (!reach) return
        const now = clock.monotonic()
        reach.tookMs = now - beganAt
        // It has read what the less far ones read.
        for (const each of reaches) if (each.backMs <= backMs) each.nextAt = now + each.tookMs * RESTS
      },
    }
  }

  return { look }
}
