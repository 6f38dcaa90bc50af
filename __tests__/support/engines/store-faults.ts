import { MarketplaceError } from '../../../lib/base/errors.js'
import type { Store } from '../../../lib/store/port/store.js'
import { seeded } from '../../../lib/testing/random.js'

/** These calls never fail. */
const SPARED = ['close', 'subscribe', 'problem', 'readFirst'] as const

type StoreMethod = Exclude<keyof Store, (typeof SPARED)[number]>

/** A fault of the calls of a store. */
interface StoreFault {
  /** The call or calls it strikes, default every call. */
  on?: StoreMethod | readonly StoreMethod[]
  /**
   * `unavailable` does nothing and rejects; `unacknowledged` does its work and rejects; `hang` does nothing and does not
   * settle until it is released, and then does its work.
   */
  kind: 'unavailable' | 'unacknowledged' | 'hang'
  /** Ends after this many strikes. */
  times?: number
  /** The chance of a strike, 0 to 1, default 1. */
  probability?: number
}

/** Wraps a store so that its calls fail as planned. `close` never fails, and releases the calls that are held. */
export function withStoreFaults(
  store: Store,
  { seed = 1, faults: planned = [] }: { seed?: number; faults?: readonly StoreFault[] } = {},
) {
  const draw = seeded(seed).stream('store faults')
  const faults = new Set<StoreFault & { strikes: number }>()
  /** What releases the calls that hang, with their fault. */
  const held = new Map<() => void, StoreFault>()

  /** Adds a fault, until `remove` ends it and releases the calls that it holds. */
  function add(fault: StoreFault) {
    const added = { ...fault, strikes: 0 }
    faults.add(added)
    return {
      /** How often it has struck. */
      get strikes() {
        return added.strikes
      },
      remove() {
        faults.delete(added)
        for (const [release, of] of held) if (of === added) release()
      },
    }
  }

  function clear() {
    faults.clear()
    for (const release of held.keys()) release()
  }

  async function call(method: StoreMethod, work: () => Promise<unknown>): Promise<unknown> {
    const fault = [...faults].find(
      ({ on = method, probability = 1 }) => [on].flat().includes(method) && draw() < probability,
    )
    if (!fault) return work()
    if (++fault.strikes === fault.times) faults.delete(fault)
    if (fault.kind === 'hang') {
      await new Promise<void>((resolve) => {
        const release = () => {
          held.delete(release)
          resolve()
        }
        held.set(release, fault)
      })
      return work()
    }
    if (fault.kind === 'unacknowledged') await work()
    throw new MarketplaceError(
      'store_unavailable',
      `Cannot use the store: a simulated fault struck ${method}`,
    )
  }

  for (const fault of planned) add(fault)
  const struck = Object.fromEntries(
    Object.entries(store)
      .filter(([method]) => !SPARED.some((each) => each === method))
      .map(([method, own]) => [
        method,
        (...given: unknown[]) => call(method as StoreMethod, () => own(...given)),
      ]),
  )

  return {
    ...store,
    ...struck,
    async close() {
      clear()
      await store.close()
    },
    faults: {
      add,
      clear,
      /** The number of calls that hang. */
      get held() {
        return held.size
      },
    },
  }
}
