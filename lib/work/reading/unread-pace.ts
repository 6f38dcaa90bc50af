import { type Clock, HOUR, MINUTE, SECOND } from '../../base/clock.js'

/** The slowest pace, in reads a second: one a minute. */
const LEAST = 1 / 60
/** Fewer reads than this in the second before the first limit say little of the rate that the platform allows. */
const FEW = 10
/** What was never read has caused a limit if it was at least this part of the reads before it. */
const PART = 1 / 4
/** The reads that are remembered to judge a limit: those of a minute, or of less if they are more. */
const REMEMBERED = 1_000
/** Reads of this time that did not begin may begin at once: a look for work comes a little too late. */
const SAVED_MS = 100

/**
 * How fast subscriptions are read that were never read before. Without a limit of the platform there is no pace. A limit
 * (429) pauses all reads; after the pause those that were never read get half of the rate at which reads began in the
 * second before the limited one, and at least 5 a second. Otherwise made-up ones would reach the limit again and again,
 * and customers would wait for each pause. Each further limit at least halves the pace, down to one read a minute, and an
 * hour after the pause it ends.
 *
 * A limit counts only if two reads or more of what was never read began in the minute before it, since the last limit,
 * and they were a quarter of all reads. So neither a limit of one first purchase slows down the others, nor one that meets
 * the first read after each pause. A read counts once, also if it tries a candidate; a suspect is read whatever the pace.
 * Searches count as reads (`../searching/searcher.ts`): those that an install has made as reads of what was never read.
 */
export function createUnreadPace(clock: Pick<Clock, 'monotonic'>) {
  /** The last reads. */
  const begun: { at: number; isUnread: boolean }[] = []
  let limitedAt = Number.NEGATIVE_INFINITY
  let perSecond = Number.POSITIVE_INFINITY
  let endsAt = Number.NEGATIVE_INFINITY
  /** When the next read may begin. */
  let nextAt = Number.NEGATIVE_INFINITY

  const currentPace = () => (clock.monotonic() < endsAt ? perSecond : Number.POSITIVE_INFINITY)
  const savedSince = () => Math.max(nextAt, clock.monotonic() - SAVED_MS)

  return {
    /** A read begins. */
    began(isUnread: boolean) {
      begun.push({ at: clock.monotonic(), isUnread })
      if (begun.length > REMEMBERED) begun.shift()
    },

    /**
     * The platform limits our rate: the answer to a read that began at this time. Of the reads under way several may get
     * it, some after the pause; only the first one counts.
     */
    limited(pauseMs: number, beganAt: number) {
      const reads = begun.filter(({ at }) => at > Math.max(limitedAt, beganAt - MINUTE) && at <= beganAt)
      // The read began before the last limit.
      if (reads.length === 0) return
      limitedAt = clock.monotonic()
      const ofUnread = reads.filter(({ isUnread }) => isUnread).length
      if (ofUnread < 2 || ofUnread < reads.length * PART) return
      const inLastSecond = reads.filter(({ at }) => at > beganAt - SECOND).length
      perSecond = Math.max(LEAST, Math.min(currentPace(), Math.max(FEW, inLastSecond)) / 2)
      endsAt = clock.monotonic() + pauseMs + HOUR
    },

    /** How many subscriptions that were never read may be leased now. */
    room(): number {
      const pace = currentPace()
      if (pace === Number.POSITIVE_INFINITY) return pace
      return 1 + Math.floor(((clock.monotonic() - savedSince()) * pace) / SECOND)
    },

    /** So many were leased. */
    leased(count: number) {
      nextAt = savedSince() + (count * SECOND) / currentPace()
    },

    /** How long until there is room. */
    roomInMs: () => Math.max(0, nextAt - clock.monotonic()),
  }
}
