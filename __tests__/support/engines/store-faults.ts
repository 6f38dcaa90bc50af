import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Store } from '../../../lib/store/port/store.js'
import { cannot } from '../../../lib/testing/cannot.js'
import { seeded } from '../../../lib/testing/random.js'

/** The faults of a call. */
export const STORE_FAULT_KINDS = {
  unavailable: 'does nothing, and rejects with store_unavailable',
  unacknowledged: 'does its work, and rejects with store_unavailable',
  hang: 'does nothing and does not settle until it is released; then does its work',
} as const

/** How a call goes wrong: see `STORE_FAULT_KINDS`. */
export type StoreFaultKind = keyof typeof STORE_FAULT_KINDS

/** The calls that faults can strike. */
export const STORE_METHODS = [
  'open',
  'accept',
  'requestRefresh',
  'subscriptionsOf',
  'subscriptionsNamed',
  'claimReads',
  'claimSuspectRead',
  'renewRead',
  'finishRead',
  'otherBusinesses',
  'readOthers',
  'claimLanes',
  'claimSuspectLane',
  'dueSuspect',
  'renewLane',
  'finishLanes',
  'handleTopics',
  'listEntries',
  'getEntry',
  'replayEntry',
  'listSubscriptions',
  'timelineOf',
  'recordAction',
  'erase',
  'prune',
  'counts',
  'arrivals',
  'dueWork',
  'schemaVersion',
  'refreshAll',
  'backup',
] as const satisfies readonly (keyof Store)[]

/** A call that faults can strike. */
export type StoreMethod = (typeof STORE_METHODS)[number]

/** A fault of the calls of a store. */
export interface StoreFault {
  /** The call or calls it strikes, default every call. */
  on?: StoreMethod | readonly StoreMethod[]
  kind: StoreFaultKind
  /** Ends after this many strikes. */
  times?: number
  /** The chance of a strike, 0 to 1, default 1. */
  probability?: number
}

/** A fault that was added. */
export interface StoreFaultHandle {
  /** How often it has struck. */
  readonly strikes: number
  /** Ends it, and releases the calls it holds. */
  remove(): void
}

/** The faults of a store made by `withStoreFaults`. */
export interface StoreFaults {
  /** Adds a fault and returns a handle to end it. Throws `argument_invalid` for an invalid fault. */
  add(fault: StoreFault): StoreFaultHandle
  /** Ends all faults, and releases the calls they hold. */
  clear(): void
  /** Number of calls held at present. */
  readonly held: number
}

/**
 * Wraps a store so that its calls fail as planned. If several faults match, the one added first strikes. A fault applies
 * to calls that begin after it was added. The same `seed` and the same calls give the same strikes, independent of calls
 * of other methods. No fault strikes `close`: it releases held calls and closes the wrapped store.
 */
export function withStoreFaults(
  store: Store,
  plan: { seed?: number | string; faults?: readonly StoreFault[] } = {},
): Store & { faults: StoreFaults } {
  const { seed = 1, faults: planned = [] } = plan
  const chance = seeded(seed)
  const rules = new Set<Rule>()
  let number = 0

  function add(fault: StoreFault): StoreFaultHandle {
    const { on = STORE_METHODS, kind, times = Number.POSITIVE_INFINITY, probability = 1 } = fault
    const methods = typeof on === 'string' ? [on] : on
    if (!Object.hasOwn(STORE_FAULT_KINDS, kind))
      throw cannot('add a fault', `there is no kind ${String(kind)}`)
    const unknown = methods.find((method) => !STORE_METHODS.includes(method))
    if (unknown !== undefined) throw cannot('add a fault', `there is no call ${String(unknown)}`)
    if (!(times >= 1)) throw cannot('add a fault', 'times must be 1 or more')
    if (!(probability >= 0 && probability <= 1)) throw cannot('add a fault', 'probability must be 0 to 1')
    const draws = new Map<StoreMethod, () => number>()
    const nth = ++number
    for (const method of methods) draws.set(method, chance.stream(`store fault ${nth}/${method}`))
    const rule: Rule = { kind, left: times, probability, draws, strikes: 0, held: new Set() }
    rules.add(rule)
    return {
      get strikes() {
        return rule.strikes
      },
      remove: () => end(rule),
    }
  }

  function end(rule: Rule) {
    rules.delete(rule)
    for (const release of rule.held) release()
    rule.held.clear()
    held.delete(rule)
  }

  // A rule that has ended may still hold calls.
  const held = new Set<Rule>()

  function strike(method: StoreMethod): Rule | undefined {
    for (const rule of rules) {
      const draw = rule.draws.get(method)
      if (!draw || draw() >= rule.probability) continue
      rule.strikes++
      if (--rule.left <= 0) rules.delete(rule)
      return rule
    }
    return undefined
  }

  async function call<T>(method: StoreMethod, inner: () => Promise<T>): Promise<T> {
    const rule = strike(method)
    if (!rule) return inner()
    if (rule.kind === 'unavailable') throw unavailable(method)
    if (rule.kind === 'hang') {
      held.add(rule)
      await new Promise<void>((release) => rule.held.add(release))
      return inner()
    }
    await inner()
    throw unavailable(method)
  }

  function clear() {
    for (const rule of [...rules, ...held]) end(rule)
  }

  for (const fault of planned) add(fault)
  const struck = Object.fromEntries(
    STORE_METHODS.map((method) => [
      method,
      (...given: unknown[]) =>
        call(method, () => (store[method] as (...args: unknown[]) => Promise<unknown>)(...given)),
    ]),
  ) as Pick<Store, StoreMethod>

  return {
    ...struck,
    readFirst: (businessUid) => store.readFirst(businessUid),
    subscribe: (listener) => store.subscribe(listener),
    problem: (inTimeMs) => store.problem(inTimeMs),
    async close() {
      clear()
      await store.close()
    },
    faults: {
      add,
      clear,
      get held() {
        return [...held].reduce((sum, rule) => sum + rule.held.size, 0)
      },
    },
  }
}

interface Rule {
  kind: StoreFaultKind
  left: number
  probability: number
  draws: Map<StoreMethod, () => number>
  strikes: number
  held: Set<() => void>
}

function unavailable(method: StoreMethod): MarketplaceError {
  return new MarketplaceError('store_unavailable', `Cannot use the store: a simulated fault struck ${method}`)
}
