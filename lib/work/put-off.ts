import { LRUCache } from 'lru-cache'
import { type Clock, HOUR, MINUTE, SECOND } from '../clock.js'
import type { Entry } from '../store/store.js'

/** `settled()` waits for what is due within a second, and most answers are known by then. */
const LEAST_MS = SECOND
const MOST_MS = MINUTE
/** Between two entries that are put off: in an outage of the platform that lasts for days there may be very many. */
const APART_MS = 5
/** An entry is old at once after a replay or a long sleep. It still waits so long for an answer. */
const AT_LEAST_MS = HOUR

/**
 * The pauses of entries whose payload cannot be made now, because the answer for their business is not known or the store
 * cannot be read. A pause grows with the time that the entry has waited in this process. The wait ends with the retention.
 */
export function createPutOffs({ retentionMs, clock }: { retentionMs: number; clock: Clock }) {
  /** When this process first put the entry off, by its id. */
  const firstAt = new LRUCache<string, number>({ max: 10_000 })
  let lastUntil = Number.NEGATIVE_INFINITY

  return {
    /** The pause until the next look, in ms; null: the entry is older than its retention, so it waits no longer. */
    pauseMs({ id, receivedAt }: Pick<Entry, 'id' | 'receivedAt'>): number | null {
      const now = clock.monotonic()
      const first = firstAt.get(id) ?? now
      firstAt.set(id, first)
      const waitedMs = now - first
      if (waitedMs >= AT_LEAST_MS && clock.now() - receivedAt >= retentionMs) {
        firstAt.delete(id)
        return null
      }
      lastUntil = Math.min(Math.max(now + LEAST_MS, lastUntil + APART_MS), now + MOST_MS)
      return Math.min(MOST_MS, Math.max(lastUntil - now, waitedMs / 4))
    },
    ended({ id }: Pick<Entry, 'id'>) {
      firstAt.delete(id)
    },
  }
}
