import { type Clock, SECOND } from '../clock.js'
import { isBehindOthers } from '../store/read-first.js'
import { MAX_READ_INTERVAL_MS, MIN_READ_INTERVAL_MS, type Store, type Subscription } from '../store/store.js'
import { createRecheck } from '../waiting.js'
import { type Decision, type DecisionRules, decide } from './decide.js'
import type { DecisionCache } from './decision-cache.js'

interface Load {
  decision: Promise<Decision>
  /** A commit about the business: the load reads the store again. `isSuperseded`: its earlier answers no longer hold. */
  outdate(isSuperseded: boolean): void
}

/**
 * Decides from the store, once for all concurrent callers of a business. Waits up to `waitMs` for a requested read, and
 * repeats a load that a commit outdated before anyone sees its result.
 */
export function createDecisionLoads(options: {
  store: Pick<Store, 'subscriptionsOf' | 'readFirst'>
  rules: DecisionRules
  waitMs: number
  cache: Pick<DecisionCache, 'set' | 'lastKnown'>
  clock: Clock
  during<T>(query: Promise<T>): Promise<T>
}) {
  const { store, rules, waitMs, cache, clock, during } = options
  const loads = new Map<string, Load>()
  // One query a second tests a database that does not respond, not one for each caller.
  let silentUntil = Number.NEGATIVE_INFINITY

  function load(businessUid: string): Promise<Decision> {
    let current = loads.get(businessUid)
    if (!current) {
      if (silentUntil > clock.monotonic()) return Promise.resolve(cache.lastKnown(businessUid))
      current = begin(businessUid)
      loads.set(businessUid, current)
    }
    return current.decision
  }

  function begin(businessUid: string): Load {
    const recheck = createRecheck(clock)
    let outdated = false
    let superseded = false
    let isPutFirst = false

    async function run(): Promise<Decision> {
      const beganAt = clock.monotonic()
      let queriedAt = beganAt
      try {
        for (;;) {
          outdated = false
          superseded = false
          queriedAt = clock.monotonic()
          const subscriptions = await store.subscriptionsOf(businessUid)
          if (!isPutFirst && isBehindOthers(subscriptions, clock.now())) {
            isPutFirst = true
            store.readFirst?.(businessUid).catch(() => {})
          }
          const waitedMs = clock.monotonic() - beganAt
          // A flood of deliveries must not keep callers waiting: after this time they get an answer that is not cached.
          if (outdated && waitedMs < Math.max(waitMs, SECOND)) continue
          const decision = decide(businessUid, subscriptions, rules, clock.now())
          const patienceMs = Math.min(worthWaitingMs(subscriptions, decision), waitMs - waitedMs)
          if (patienceMs <= 0) {
            if (!superseded) cache.set(businessUid, decision, !outdated)
            return decision
          }
          await recheck.wait(patienceMs)
        }
      } catch {
        if (clock.monotonic() - queriedAt >= SECOND) silentUntil = clock.monotonic() + SECOND
        return cache.lastKnown(businessUid)
      } finally {
        loads.delete(businessUid)
      }
    }

    return {
      decision: during(run()),
      outdate(isSuperseded) {
        outdated = true
        superseded ||= isSuperseded
        recheck.end()
      },
    }
  }

  /**
   * How much longer to wait for requested reads that may still change the decision. A yes waits for the reads that may
   * end it. Other reads may only add an item to a yes, so all of those together delay it once.
   */
  function worthWaitingMs(subscriptions: Subscription[], decision: Decision): number {
    const now = clock.now()
    const ending: number[] = []
    const adding: number[] = []
    subscriptions.forEach((each, i) => {
      const since = each.owedSince ?? each.requestedAt
      if (since === null || !mayChange(each, decision.entitled)) return
      const entitles = decision.subscriptions[i]?.entitled === true
      if (entitles && isPutOff(each, now))
        return // A request with a time in the future means that a clock has leapt.
      ;(entitles ? ending : adding).push(waitMs - Math.max(0, now - since))
    })
    const others = adding.length === 0 ? 0 : decision.entitled ? Math.min(...adding) : Math.max(...adding)
    return Math.max(0, others, ...ending)
  }

  return {
    load,
    /** Outdates the load of one business, or all loads (null). */
    outdate(businessUid: string | null, isSuperseded: boolean) {
      if (businessUid !== null) loads.get(businessUid)?.outdate(isSuperseded)
      else for (const each of loads.values()) each.outdate(isSuperseded)
    },
  }
}

/** Two deliveries of one event put a read off by less than this. */
const FLOOD_MS = 200

/**
 * Whether a flood of events has put the read off, which it does for at most `MAX_READ_INTERVAL_MS` after the last read.
 * So the record was confirmed within that time. The time of a leased row is the end of its lease, which is later.
 */
function isPutOff({ readAt, owedSince, refreshAt }: Subscription, now: number): boolean {
  if (readAt === null || owedSince === null || refreshAt === null || refreshAt <= now) return false
  const dueAfterOne = Math.max(owedSince, readAt + MIN_READ_INTERVAL_MS)
  return refreshAt >= dueAfterOne + FLOOD_MS && refreshAt <= readAt + MAX_READ_INTERVAL_MS
}

/** A read under way may change any answer. A verification, which may show a new subscription, changes only a no. */
function mayChange({ record, pending, verifying, failure }: Subscription, entitled: boolean): boolean {
  return (pending && failure === null) || (verifying && record === null && !entitled)
}
