import { LRUCache } from 'lru-cache'
import { type Clock, DAY, SECOND } from '../base/clock.js'
import { createRecheck, sleep } from '../base/waiting.js'
import { MAX_READ_INTERVAL_MS, type Search, type Store, type Subscription } from '../store/port/store.js'
import { isBehindOthers } from '../store/subscriptions/claims.js'
import { type Decision, type DecisionRules, decide, isOfApp } from './decide.js'
import type { DecisionCache } from './decision-cache.js'

interface Load {
  decision: Promise<Decision>
  /** What the store says so far, without the wait for requested reads, or for a database that does not respond. */
  soFar(): Promise<Decision>
  /** Whether its result may lack a commit that came before now: then whoever asks now needs another load. */
  isBehind(): boolean
  /** A commit about the business: the load reads the store again. `isSuperseded`: its earlier answers no longer hold. */
  outdate(isSuperseded: boolean): void
}

/**
 * Decides from the store, once for all concurrent callers of a business. Waits up to `waitMs` for a requested read, and
 * repeats a query once if a commit has outdated it. An answer that is outdated again is still true for those who asked
 * before; it is not cached, and who asks later gets one of a later load. So a flood of commits keeps no caller waiting.
 *
 * With `searches` a business of which no subscription to the app was read is searched for at the platform: the first question
 * requests it, and waits for it as for a read. Subscriptions that were only named do not count, because anybody with the
 * delivery secret can name them.
 *
 * While reads of a business that may use the app are requested again and again, its callers share one wait of `waitMs`;
 * see docs/decisions/pages-wait-once.md.
 */
export function createDecisionLoads(options: {
  store: Pick<Store, 'subscriptionsOf' | 'readFirst'>
  /** Searches the platform for subscriptions of a business; undefined where nobody does. */
  searches?: Searches | undefined
  rules: DecisionRules
  waitMs: number
  cache: Pick<DecisionCache, 'set' | 'lastKnown'>
  clock: Clock
  during<T>(query: Promise<T>): Promise<T>
}) {
  const { store, rules, waitMs, searches, cache, clock, during } = options
  /** The loads of a business under way, the newest last. All but that one are behind. */
  const loads = new Map<string, Load[]>()
  /** How long the callers of a business that may use the app have waited since the last five seconds without a requested read. */
  const spent = new LRUCache<string, number>({ max: MOST_WAITING })
  // One query a second tests a database that does not respond, not one for each caller.
  let silentUntil = Number.NEGATIVE_INFINITY

  function load(businessUid: string): Promise<Decision> {
    const underWay = loads.get(businessUid) ?? []
    const newest = underWay.at(-1)
    if (newest && !newest.isBehind()) return newest.decision
    if (silentUntil > clock.monotonic()) return Promise.resolve(cache.lastKnown(businessUid))
    const { decision, ...begun } = begin(businessUid)
    const load: Load = { ...begun, decision: decision.finally(() => ended(businessUid, load)) }
    loads.set(businessUid, [...underWay, load])
    return load.decision
  }

  function ended(businessUid: string, load: Load) {
    const rest = (loads.get(businessUid) ?? []).filter((each) => each !== load)
    if (rest.length > 0) loads.set(businessUid, rest)
    else loads.delete(businessUid)
  }

  function begin(businessUid: string): Load {
    const recheck = createRecheck(clock)
    let outdated = false
    let superseded = false
    let isPutFirst = false
    let isQuerying = false
    /** The query under way repeats one that a commit has outdated, so it is not repeated in turn. */
    let isRepeat = false
    let latest: Decision | undefined
    let noteFirst = (_decision: Decision) => {}
    const first = new Promise<Decision>((resolve) => {
      noteFirst = resolve
    })

    async function run(): Promise<Decision> {
      const beganAt = clock.monotonic()
      let queriedAt = beganAt
      try {
        for (;;) {
          outdated = false
          superseded = false
          queriedAt = clock.monotonic()
          isQuerying = true
          const { subscriptions, search } = await storedOf(businessUid)
          isQuerying = false
          if (!isPutFirst && isBehindOthers(subscriptions, clock.now())) {
            isPutFirst = true
            store.readFirst(businessUid).catch(() => {})
          }
          isRepeat = outdated && !isRepeat
          if (isRepeat) continue
          const waitedMs = clock.monotonic() - beganAt
          const decision = decide(businessUid, subscriptions, rules, clock.now(), search)
          latest = decision
          noteFirst(decision)
          const owed = awaited(
            subscriptions.filter((each) => mayChange(each, decision.entitled) && leftMs(each) > 0),
          )
          if (!decision.entitled || owed.some(isAfterQuiet)) spent.delete(businessUid)
          const spentMs = Math.max(waitedMs, spent.get(businessUid) ?? 0)
          const left = [...owed.map(leftMs), search ? leftOfSearchMs(search) : 0]
          const patienceMs = Math.min(Math.max(...left), waitMs - spentMs)
          if (patienceMs <= 0) {
            if (!superseded) cache.set(businessUid, decision, !outdated)
            return decision
          }
          const beforeMs = (spent.get(businessUid) ?? 0) - clock.monotonic()
          await recheck.wait(patienceMs)
          if (decision.entitled) spent.set(businessUid, beforeMs + clock.monotonic())
        }
      } catch {
        if (clock.monotonic() - queriedAt >= SECOND) silentUntil = clock.monotonic() + SECOND
        return cache.lastKnown(businessUid)
      }
    }

    const decision = during(run())
    return {
      decision,
      soFar: async () => {
        const silent = () => sleep(SECOND, clock).then(() => cache.lastKnown(businessUid))
        return latest ?? Promise.race([first, decision, silent()])
      },
      isBehind: () => isQuerying && outdated && isRepeat,
      outdate(isSuperseded) {
        outdated = true
        superseded ||= isSuperseded
        recheck.end()
      },
    }
  }

  /** How much longer to wait for a requested read. A request with a time in the future means that a clock has leapt. */
  function leftMs(subscription: Subscription): number {
    const since = owedSince(subscription)
    return since === null ? 0 : waitMs - Math.max(0, clock.now() - since)
  }

  /** The subscriptions of a business, and the search for one if none to the app was read. */
  async function storedOf(businessUid: string) {
    const subscriptions = await store.subscriptionsOf(businessUid)
    if (!searches || subscriptions.some((each) => isOfApp(each, rules)))
      return { subscriptions, search: undefined }
    const search = await searchFor(businessUid, searches)
    // What a search has found is stored with its answer, perhaps since. One that has found what was read is deleted.
    const mayHaveFound = search === undefined || search.isAnswered
    return { subscriptions: mayHaveFound ? await store.subscriptionsOf(businessUid) : subscriptions, search }
  }

  /** The search for subscriptions of a business, which the first question requests; undefined: none is made. */
  async function searchFor(businessUid: string, searches: Searches): Promise<Search | undefined> {
    const search = await searches.searchOf(businessUid)
    if (!searches.requestSearch) return search
    if (search?.isAsked && clock.now() - search.wantedAt < WANTED_MS) return search
    const isMade = await searches.requestSearch(businessUid, 'question')
    return search ?? (isMade ? searches.searchOf(businessUid) : undefined)
  }

  function leftOfSearchMs({ pending, failure, wantedAt }: Search): number {
    return pending && failure === null ? waitMs - Math.max(0, clock.now() - wantedAt) : 0
  }

  return {
    load,
    /** What the store says so far, for a caller of `load` who has no more time. */
    async soFar(businessUid: string): Promise<Decision> {
      return loads.get(businessUid)?.at(-1)?.soFar() ?? load(businessUid)
    },
    /** Outdates the load of one business, or all loads (null). */
    outdate(businessUid: string | null, isSuperseded: boolean) {
      const affected = businessUid === null ? [...loads.values()].flat() : (loads.get(businessUid) ?? [])
      for (const each of affected) each.outdate(isSuperseded)
    },
  }
}

/**
 * The calls of the store for searches. Without `requestSearch` the caller requests none, and only sees what others have
 * requested.
 */
export type Searches = Pick<Store, 'searchOf'> & Partial<Pick<Store, 'requestSearch'>>

/** Whether a read has shown the subscription: only the platform can, so nobody has made it up. */
const wasRead = ({ record }: Pick<Subscription, 'record'>): boolean => record !== null

/** A search that somebody wants is noted as wanted again after this time, so that it is not deleted. */
const WANTED_MS = DAY

/** The most businesses whose waiting time is remembered. The callers of a forgotten one may wait again. */
const MOST_WAITING = 10_000

/** Requests belong to one series until this long passes between a read and the next request. */
const QUIET_MS = MAX_READ_INTERVAL_MS

/**
 * Whether the first unanswered request came at least `QUIET_MS` after the last read, whatever that found: the platform
 * may refuse each read of a series.
 */
function isAfterQuiet(subscription: Subscription): boolean {
  const { triedAt } = subscription
  const since = owedSince(subscription)
  return triedAt !== null && since !== null && since - triedAt >= QUIET_MS
}

function owedSince({ owedSince, requestedAt }: Subscription): number | null {
  return owedSince ?? requestedAt
}

/** More subscriptions that were never read come to a business at once only if somebody makes them up. */
const MOST_BOUGHT_AT_ONCE = 3

/** Those for which a page waits. New ones that somebody makes up all the time would hold up every *no* of the business. */
function awaited(owed: readonly Subscription[]): readonly Subscription[] {
  const read = owed.filter(wasRead)
  return owed.length - read.length > MOST_BOUGHT_AT_ONCE ? read : owed
}

/**
 * A read under way may change any answer. One of a subscription that was never read, and its verification, change only a
 * no: it takes no access away.
 */
function mayChange({ record, pending, verifying, failure }: Subscription, entitled: boolean): boolean {
  if (record === null) return !entitled && ((pending && failure === null) || verifying)
  return pending && failure === null
}
