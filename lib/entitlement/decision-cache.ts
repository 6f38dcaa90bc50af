import { LRUCache } from 'lru-cache'
import { type Clock, createAgingTime, SECOND } from '../base/clock.js'
import { deepFreeze } from '../base/freeze.js'
import { type Decision, decisionWithout } from './decide.js'
import { decisionLater, firstEndInMs } from './items.js'

export interface CachedDecision {
  decision: Decision
  /** `isEntitled`'s answer, made once: an answer from memory allocates nothing. */
  answer: Promise<boolean>
  /** The end of freshness. All times here are those of `createAgingTime`: an answer also ages while the machine sleeps. */
  freshUntil: number
  /** When the decision was made: in the time of the others, and by the wall clock. */
  madeAt: { age: number; wall: number }
}

/** The two answers of `isEntitled`. */
export const YES = Promise.resolve(true)
export const NO = Promise.resolve(false)

/**
 * The decisions in memory, by business. Known and unknown businesses have a cache each, so unknown ones evict no
 * known one.
 */
export function createDecisionCache(options: {
  maxStaleMs: number
  /** How long a commit stays unseen if its notification is lost. */
  ttlMs?: number | undefined
  /** The most entries of each cache. */
  maxEntries?: number | undefined
  clock: Clock
}) {
  const { maxStaleMs, ttlMs = 5 * SECOND, maxEntries = 10_000, clock } = options
  const age = createAgingTime(clock)
  const known = new LRUCache<string, CachedDecision>({ max: maxEntries })
  const unknown = new LRUCache<string, CachedDecision>({ max: maxEntries })

  return {
    /** Undefined when the decision is not in memory, or not fresh. */
    fresh(businessUid: string): CachedDecision | undefined {
      const cached = known.get(businessUid) ?? unknown.get(businessUid)
      return cached && cached.freshUntil > age() ? cached : undefined
    },

    /**
     * `isCurrent`: no change was committed while the decision was made. Otherwise it only answers while the store is
     * down.
     */
    set(businessUid: string, decision: Decision, isCurrent: boolean) {
      const [now, wall] = [age(), clock.now()]
      const freshMs = Math.min(ttlMs, firstEndInMs(decision, maxStaleMs, wall))
      const [cache, other] = decision.subscriptions.length > 0 ? [known, unknown] : [unknown, known]
      cache.set(businessUid, {
        decision,
        answer: decision.entitled ? YES : NO,
        freshUntil: isCurrent ? now + freshMs : Number.NEGATIVE_INFINITY,
        madeAt: { age: now, wall },
      })
      other.delete(businessUid)
    },

    /** The answer while the store is down: the last decision, as far as it still holds, then no. */
    lastKnown(businessUid: string): Decision {
      const last = known.peek(businessUid)
      if (last) {
        // The wall clock may have been set back.
        const now = last.madeAt.wall + age() - last.madeAt.age
        const decision = decisionLater(last.decision, maxStaleMs, now)
        if (decision) return deepFreeze({ ...decision, stale: true })
      }
      return decisionWithout(businessUid, 'store_unavailable', clock.now())
    },

    /** Ends the freshness of one decision, or of all (null). An expired one may still answer while the store is down. */
    expire(businessUid: string | null) {
      const expired =
        businessUid === null
          ? [...known.values(), ...unknown.values()]
          : [known.peek(businessUid) ?? unknown.peek(businessUid)]
      for (const cached of expired) if (cached) cached.freshUntil = Number.NEGATIVE_INFINITY
    },

    /** Deletes one decision, or all (null). */
    forget(businessUid: string | null) {
      for (const cache of [known, unknown]) {
        if (businessUid === null) cache.clear()
        else cache.delete(businessUid)
      }
    },
  }
}

export type DecisionCache = ReturnType<typeof createDecisionCache>
