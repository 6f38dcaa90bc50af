import type { Clock } from '../base/clock.js'
import { identifierOf } from '../base/record.js'
import type { Store } from '../store/port/store.js'
import { type Decision, type DecisionRules, decisionWithout, withSearchToMake } from './decide.js'
import { type CachedDecision, createDecisionCache, NO, YES } from './decision-cache.js'
import { decisionAbout, entitlesTo, type ItemOptions } from './items.js'
import { createDecisionLoads, type Searches } from './load-decision.js'
import { createEntitlementWaits, type WaitOptions } from './wait-for-entitlement.js'

/**
 * What to explain, and whether to ask the platform for it.
 * @example const decision = await marketplace.explain(businessUid, { search: false })
 */
export interface ExplainOptions extends ItemOptions {
  /**
   * False: the question makes no search with `platform.findSubscriptions`, and puts no read of the business before others, for
   * a page where a person looks at any business. It shows the result of a search that was made. Default true.
   */
  search?: boolean
}

export interface Entitlements {
  /**
   * Whether the business may use the app now. Never rejects: an unknown, malformed or unverifiable business is
   * denied.
   */
  isEntitled(businessUid: string | number, options?: ItemOptions): Promise<boolean>
  explain(businessUid: string | number, options?: ExplainOptions): Promise<Decision>
  waitForEntitlement(businessUid: string | number, options?: WaitOptions): Promise<Decision>
  close(): void
}

/**
 * Answers from a bounded cache over the store. A notification of the store ends a cached answer at once; `ttlMs` bounds
 * how long a commit without a notification stays unseen.
 */
export function createEntitlements(options: {
  store: Pick<Store, 'subscriptionsOf' | 'readFirst' | 'subscribe'>
  /** Searches the platform for subscriptions of a business; undefined where nobody does. */
  searches?: Searches | undefined
  rules: DecisionRules
  /** How long a caller waits for a requested read, counted from the request, and in all. */
  waitMs: number
  ttlMs?: number
  maxEntries?: number
  clock: Clock
  /** Keeps the process alive during a query of the store. An answer from memory does not call it. */
  during?<T>(query: Promise<T>): Promise<T>
}): Entitlements {
  const { store, rules, waitMs, searches, ttlMs, maxEntries, clock } = options
  const { during = (query) => query } = options
  const cache = createDecisionCache({ maxStaleMs: rules.maxStaleMs, ttlMs, maxEntries, clock })
  const asks = { store, rules, waitMs, cache, clock, during }
  const loads = createDecisionLoads({ ...asks, searches })
  /** The same without a request of a search or of an earlier read, so their answers are not those of others. */
  const looks = createDecisionLoads({
    ...asks,
    store: { subscriptionsOf: (uid) => store.subscriptionsOf(uid), readFirst: async () => {} },
    cache: { ...cache, set() {} },
    searches: searches && { searchOf: searches.searchOf },
  })

  const unsubscribe = store.subscribe((hint) => {
    if (hint.kind === 'journal') return
    const isSuperseded = hint.kind === 'decided' && hint.superseded
    if (isSuperseded) cache.forget(hint.businessUid)
    else cache.expire(hint.businessUid)
    for (const each of [loads, looks]) each.outdate(hint.businessUid, isSuperseded)
    waits.changed(hint.businessUid)
  })

  /** Skips the identifier check: a text that is a key of the cache has passed it before. */
  function cachedFor(given: string | number): CachedDecision | undefined {
    return typeof given === 'string' ? cache.fresh(given) : undefined
  }

  function about(decision: Decision, asked: ItemOptions | undefined): Decision {
    return decisionAbout(decision, asked, rules, clock.now())
  }

  async function explain(given: string | number, asked?: ExplainOptions): Promise<Decision> {
    const businessUid = identifierOf(given)
    if (businessUid === null) return decisionWithout('', 'invalid_business_uid', clock.now())
    const cached = cache.fresh(businessUid)?.decision
    // If the wall clock was set back, `asOf` lies in the future, and people would read it.
    const isAhead = Date.parse(cached?.asOf ?? '') > clock.now()
    const isLook = asked?.search === false
    const { load } = isLook ? looks : loads
    const decision = about(cached && !isAhead ? cached : await load(businessUid), asked)
    return isLook && searches?.requestSearch ? withSearchToMake(decision) : decision
  }
  const waits = createEntitlementWaits({
    explain,
    explainSoFar: async (businessUid, asked) => about(await loads.soFar(businessUid), asked),
    async searchAgain(businessUid) {
      await searches?.requestSearch?.(businessUid, 'wait')
    },
    rules,
    clock,
  })

  return {
    isEntitled(given, asked) {
      const cached = cachedFor(given)
      if (cached) return asked === undefined ? cached.answer : entitlesTo(cached.decision, asked) ? YES : NO
      const businessUid = identifierOf(given)
      if (businessUid === null) return NO
      const decision = cache.fresh(businessUid)?.decision
      if (decision) return entitlesTo(decision, asked) ? YES : NO
      return loads.load(businessUid).then((loaded) => about(loaded, asked).entitled)
    },

    explain,

    async waitForEntitlement(given, options) {
      const businessUid = identifierOf(given)
      return businessUid === null ? explain(given) : waits.wait(businessUid, options)
    },

    close() {
      unsubscribe()
      for (const each of [loads, looks]) each.outdate(null, false)
      waits.close()
    },
  }
}
