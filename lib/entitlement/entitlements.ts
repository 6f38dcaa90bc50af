import { LRUCache } from 'lru-cache'
import { type Clock, SECOND } from '../clock.js'
import { identifierOf } from '../record.js'
import type { Store, Subscription } from '../store/store.js'
import { type Decision, type DecisionRules, decide, decisionWithout } from './decide.js'

export interface Entitlements {
  /** Whether the business may use the app now. Never rejects: what is unknown, malformed or unverifiable is false. */
  isEntitled(businessUid: string): Promise<boolean>
  explain(businessUid: string): Promise<Decision>
  close(): void
}

/**
 * Answers from a bounded cache over the store. A business that is known cannot be pushed out by unknown ones: each has
 * a cache of its own. What the store commits ends the cached answer at once (its hints); `ttlMs` bounds how long a
 * commit that nobody told of can stay unseen.
 */
export function createEntitlements(options: {
  store: Pick<Store, 'subscriptionsOf' | 'subscribe'>
  rules: DecisionRules
  /** How long a caller waits for a read that a delivery asked for, counted from the delivery, and in all. */
  waitMs: number
  ttlMs?: number
  maxEntries?: number
  clock: Clock
}): Entitlements {
  const { store, rules, waitMs, ttlMs = 5 * SECOND, maxEntries = 10_000, clock } = options
  const known = new LRUCache<string, Answer>({ max: maxEntries })
  const unknown = new LRUCache<string, Answer>({ max: maxEntries })
  const loads = new Map<string, Load>()
  // A database that does not even refuse in time is asked once a second, not by every caller.
  let silentUntil = 0

  const unsubscribe = store.subscribe((hint) => {
    if (hint.kind === 'journal') return
    if (hint.businessUid === null) {
      for (const cache of [known, unknown]) for (const answer of cache.values()) answer.freshUntil = 0
      for (const load of loads.values()) load.outdate()
      return
    }
    // Kept, not deleted: should the store be down at the next question, it is the last known answer.
    const answer = known.peek(hint.businessUid) ?? unknown.peek(hint.businessUid)
    if (answer) answer.freshUntil = 0
    loads.get(hint.businessUid)?.outdate()
  })

  function fresh(businessUid: string): Answer | undefined {
    const answer = known.get(businessUid) ?? unknown.get(businessUid)
    return answer && answer.freshUntil > clock.now() ? answer : undefined
  }

  /** Many callers, one load; a load that began before a change is repeated before anyone sees it. */
  function load(businessUid: string): Promise<Decision> {
    let current = loads.get(businessUid)
    if (!current) {
      if (silentUntil > clock.now()) return Promise.resolve(lastKnown(businessUid))
      current = createLoad(businessUid)
      loads.set(businessUid, current)
    }
    return current.decision
  }

  function createLoad(businessUid: string): Load {
    let outdated = false
    let stopWaiting = () => {}

    async function run(): Promise<Decision> {
      const begunAt = clock.now()
      let askedAt = begunAt
      try {
        for (;;) {
          outdated = false
          askedAt = clock.now()
          const subscriptions = await store.subscriptionsOf(businessUid)
          const now = clock.now()
          // However many deliveries follow, callers get an answer; one that is outdated already is for them alone.
          if (outdated && now < begunAt + Math.max(waitMs, SECOND)) continue
          const patienceMs = Math.min(readUnderWay(subscriptions), begunAt + waitMs - now)
          if (patienceMs <= 0)
            return keep(businessUid, decide(businessUid, subscriptions, rules, now), !outdated)
          // Also looks again by itself: the read may be another process's.
          await new Promise<void>((resolve) => {
            const timer = clock.setTimeout(resolve, Math.min(patienceMs, SECOND / 4))
            stopWaiting = () => {
              clock.clearTimeout(timer)
              resolve()
            }
          })
        }
      } catch {
        if (clock.now() - askedAt >= SECOND) silentUntil = clock.now() + SECOND
        return lastKnown(businessUid)
      } finally {
        loads.delete(businessUid)
      }
    }

    return {
      decision: run(),
      outdate() {
        outdated = true
        stopWaiting()
      },
    }
  }

  /** How much longer to wait for a read that a delivery asked for and that has not failed. */
  function readUnderWay(subscriptions: Subscription[]): number {
    const now = clock.now()
    const until = subscriptions
      .filter((each) => each.pending && each.failure === null && each.requestedAt !== null)
      .map((each) => Math.min(each.requestedAt as number, now) + waitMs)
    return Math.max(0, ...until) - now
  }

  function keep(businessUid: string, decision: Decision, isCurrent: boolean): Decision {
    const now = clock.now()
    const staleAt =
      decision.entitled && decision.asOf !== null
        ? Date.parse(decision.asOf) + rules.maxStaleMs
        : Number.POSITIVE_INFINITY
    const [cache, other] = decision.subscriptions.length > 0 ? [known, unknown] : [unknown, known]
    cache.set(businessUid, {
      decision,
      answer: decision.entitled ? YES : NO,
      freshUntil: isCurrent ? Math.min(now + ttlMs, staleAt) : 0,
    })
    other.delete(businessUid)
    return decision
  }

  /** The store is down: the last answer while it is not too old, then no. */
  function lastKnown(businessUid: string): Decision {
    const now = clock.now()
    const last = known.peek(businessUid)?.decision
    if (last?.asOf && now - Date.parse(last.asOf) <= rules.maxStaleMs) return { ...last, stale: true }
    return decisionWithout(businessUid, 'store_unavailable', now)
  }

  return {
    isEntitled(businessUid) {
      if (!isUid(businessUid)) return NO
      return fresh(businessUid)?.answer ?? load(businessUid).then((decision) => decision.entitled)
    },

    async explain(businessUid) {
      if (!isUid(businessUid)) return decisionWithout('', 'invalid_business_uid', clock.now())
      return fresh(businessUid)?.decision ?? load(businessUid)
    },

    close() {
      unsubscribe()
      for (const load of loads.values()) load.outdate()
    },
  }
}

// Shared, so that a warm answer allocates nothing.
const YES = Promise.resolve(true)
const NO = Promise.resolve(false)

interface Answer {
  decision: Decision
  answer: Promise<boolean>
  freshUntil: number
}

interface Load {
  decision: Promise<Decision>
  outdate(): void
}

function isUid(value: unknown): value is string {
  return typeof value === 'string' && identifierOf(value) !== null
}
