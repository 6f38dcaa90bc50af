import { LRUCache } from 'lru-cache'
import { type Clock, SECOND } from '../clock.js'
import { identifierOf } from '../record.js'
import type { Store, Subscription } from '../store/store.js'
import { type Decision, type DecisionRules, decide, decisionWithout } from './decide.js'
import { decisionAbout, entitlesTo, firstStaleInMs, type ItemOptions } from './items.js'

export interface Entitlements {
  /** Whether the business may use the app now. Never rejects: what is unknown, malformed or unverifiable is false. */
  isEntitled(businessUid: string | number, options?: ItemOptions): Promise<boolean>
  /** The same answer where it is in memory and fresh, else undefined. Looks nothing up. */
  peek(businessUid: string | number, options?: ItemOptions): boolean | undefined
  explain(businessUid: string | number, options?: ItemOptions): Promise<Decision>
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
  /** How long a caller waits for a read that was requested, counted from the request, and in all. */
  waitMs: number
  ttlMs?: number
  maxEntries?: number
  clock: Clock
  /** Given each look into the store, to keep the process alive meanwhile: an answer from memory holds nothing. */
  during?<T>(looking: Promise<T>): Promise<T>
}): Entitlements {
  const { store, rules, waitMs, ttlMs = 5 * SECOND, maxEntries = 10_000, clock } = options
  const { during = (looking) => looking } = options
  const known = new LRUCache<string, Answer>({ max: maxEntries })
  const unknown = new LRUCache<string, Answer>({ max: maxEntries })
  const loads = new Map<string, Load>()
  // A database that does not even refuse in time is asked once a second, not by every caller.
  let silentUntil = Number.NEGATIVE_INFINITY

  const unsubscribe = store.subscribe((hint) => {
    if (hint.kind === 'journal') return
    const isSuperseded = hint.kind === 'decided' && hint.superseded
    if (hint.businessUid === null) {
      for (const cache of [known, unknown]) {
        if (isSuperseded) cache.clear()
        for (const answer of cache.values()) answer.freshUntil = Number.NEGATIVE_INFINITY
      }
      for (const load of loads.values()) load.outdate(isSuperseded)
      return
    }
    if (isSuperseded) {
      known.delete(hint.businessUid)
      unknown.delete(hint.businessUid)
    } else {
      // Kept, not deleted: should the store be down at the next question, it is the last known answer.
      const answer = known.peek(hint.businessUid) ?? unknown.peek(hint.businessUid)
      if (answer) answer.freshUntil = Number.NEGATIVE_INFINITY
    }
    loads.get(hint.businessUid)?.outdate(isSuperseded)
  })

  /** A text that is a key here has been found fit to be an identifier before: a warm answer does not look again. */
  function fresh(businessUid: string): Answer | undefined {
    const answer = known.get(businessUid) ?? unknown.get(businessUid)
    return answer && answer.freshUntil > clock.monotonic() ? answer : undefined
  }

  /** Many callers, one load; a load that began before a change is repeated before anyone sees it. */
  function load(businessUid: string): Promise<Decision> {
    let current = loads.get(businessUid)
    if (!current) {
      if (silentUntil > clock.monotonic()) return Promise.resolve(lastKnown(businessUid))
      current = createLoad(businessUid)
      loads.set(businessUid, current)
    }
    return current.decision
  }

  function createLoad(businessUid: string): Load {
    let outdated = false
    let superseded = false
    let stopWaiting = () => {}

    async function run(): Promise<Decision> {
      const begunAt = clock.monotonic()
      let askedAt = begunAt
      try {
        for (;;) {
          outdated = false
          superseded = false
          askedAt = clock.monotonic()
          const subscriptions = await store.subscriptionsOf(businessUid)
          const waitedMs = clock.monotonic() - begunAt
          // However many deliveries follow, callers get an answer; one that is outdated already is for them alone.
          if (outdated && waitedMs < Math.max(waitMs, SECOND)) continue
          const decision = decide(businessUid, subscriptions, rules, clock.now())
          const patienceMs = Math.min(worthWaitingMs(subscriptions, decision), waitMs - waitedMs)
          if (patienceMs <= 0) return superseded ? decision : keep(businessUid, decision, !outdated)
          // Also looks again by itself: the read may be another process's.
          await new Promise<void>((resolve) => {
            const timer = clock.setTimeout(resolve, Math.min(patienceMs, SECOND / 4), true)
            stopWaiting = () => {
              clock.clearTimeout(timer)
              resolve()
            }
          })
        }
      } catch {
        if (clock.monotonic() - askedAt >= SECOND) silentUntil = clock.monotonic() + SECOND
        return lastKnown(businessUid)
      } finally {
        loads.delete(businessUid)
      }
    }

    return {
      decision: during(run()),
      outdate(isSuperseded) {
        outdated = true
        superseded ||= isSuperseded
        stopWaiting()
      },
    }
  }

  /** How much longer to wait for reads that were requested and may still change the decision. */
  function worthWaitingMs(subscriptions: Subscription[], { entitled }: Decision): number {
    const now = clock.now()
    const waits = subscriptions
      .filter((each) => each.requestedAt !== null && mayChange(each, entitled))
      // A request cannot be of the future: its clock was read a moment ago, or leapt.
      .map((each) => waitMs - Math.max(0, now - (each.requestedAt as number)))
    return Math.max(0, ...waits)
  }

  function keep(businessUid: string, decision: Decision, isCurrent: boolean): Decision {
    const now = clock.monotonic()
    const staleInMs =
      decision.asOf === null
        ? Number.POSITIVE_INFINITY
        : Date.parse(decision.asOf) + rules.maxStaleMs - clock.now()
    const freshMs = Math.min(ttlMs, firstStaleInMs(decision, rules.maxStaleMs, clock.now()))
    const [cache, other] = decision.subscriptions.length > 0 ? [known, unknown] : [unknown, known]
    cache.set(businessUid, {
      decision,
      answer: decision.entitled ? YES : NO,
      freshUntil: isCurrent ? now + freshMs : Number.NEGATIVE_INFINITY,
      staleAt: now + staleInMs,
    })
    other.delete(businessUid)
    return decision
  }

  /** The store is down: the last answer while it is not too old, then no. */
  function lastKnown(businessUid: string): Decision {
    const last = known.peek(businessUid)
    if (last?.decision.asOf && clock.monotonic() <= last.staleAt) return { ...last.decision, stale: true }
    return decisionWithout(businessUid, 'store_unavailable', clock.now())
  }

  function about(decision: Decision, asked: ItemOptions | undefined): Decision {
    return decisionAbout(decision, asked, rules, clock.now())
  }

  return {
    isEntitled(given, asked) {
      const warm = typeof given === 'string' ? fresh(given) : undefined
      if (warm) return asked === undefined ? warm.answer : entitlesTo(warm.decision, asked) ? YES : NO
      const businessUid = identifierOf(given)
      if (businessUid === null) return NO
      const decision = fresh(businessUid)?.decision
      if (decision) return entitlesTo(decision, asked) ? YES : NO
      return load(businessUid).then((loaded) => about(loaded, asked).entitled)
    },

    peek(given, asked) {
      const warm = typeof given === 'string' ? fresh(given) : undefined
      if (warm) return entitlesTo(warm.decision, asked)
      const businessUid = identifierOf(given)
      const decision = businessUid === null ? undefined : fresh(businessUid)?.decision
      if (decision) return entitlesTo(decision, asked)
      return businessUid === null ? false : undefined
    },

    async explain(given, asked) {
      const businessUid = identifierOf(given)
      if (businessUid === null) return decisionWithout('', 'invalid_business_uid', clock.now())
      return about(fresh(businessUid)?.decision ?? (await load(businessUid)), asked)
    },

    close() {
      unsubscribe()
      for (const load of loads.values()) load.outdate(false)
    },
  }
}

// Shared, so that a warm answer allocates nothing.
const YES = Promise.resolve(true)
const NO = Promise.resolve(false)

interface Answer {
  decision: Decision
  answer: Promise<boolean>
  /** Monotonic, as all times here: a wall clock that is set neither ends nor stretches an answer. */
  freshUntil: number
  staleAt: number
}

interface Load {
  decision: Promise<Decision>
  outdate(isSuperseded: boolean): void
}

/** A read under way may change any answer; one that shows a new subscription at last only an answer that was no. */
function mayChange({ record, pending, verifying, failure }: Subscription, entitled: boolean): boolean {
  return (pending && failure === null) || (verifying && record === null && !entitled)
}
