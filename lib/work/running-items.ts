import type { Clock } from '../clock.js'
import { createLine } from '../line.js'
import { createClaimLeases } from './lease.js'

export interface RunningItemsOptions<Item> {
  /**
   * Handles failures of the item itself; `onError` gets any other rejection. `isHeld` also knows the end of a lease whose
   * signal is late.
   */
  run(item: Item, signal: AbortSignal, isHeld: () => boolean): Promise<void>
  renew(item: Item): Promise<boolean>
  leaseMs: number
  renewEveryMs: number
  clock: Clock
  onError(error: unknown): void
}

/** Leased items that run. The signal of an item aborts when its lease is lost (`lease.ts`). */
export function createRunningItems<Item>(options: RunningItemsOptions<Item> & { onEnd(): void }) {
  const { run, renew, leaseMs, renewEveryMs, clock, onError, onEnd } = options
  const running = createLine<{ item: Item; controller: AbortController; done: Promise<void> }>()

  return {
    /** Runs the items of one claim, whose leases hold until `heldUntil`. */
    begin(items: readonly Item[], heldUntil: number) {
      const leases = createClaimLeases({ heldUntil, leaseMs, renewEveryMs, clock })
      for (const item of items) {
        const controller = new AbortController()
        const lease = leases.add({ renew: () => renew(item), onLost: () => controller.abort() })
        const done = run(item, controller.signal, lease.isHeld)
          .catch(onError)
          .finally(() => {
            lease.end()
            leave()
            onEnd()
          })
        const leave = running.add({ item, controller, done })
      }
    },

    size: () => running.size,
    items: () => running.values().map(({ item }) => item),

    /** How many of them pass the test. */
    count(test: (item: Item) => boolean): number {
      let found = 0
      for (const { item } of running.values()) if (test(item)) found++
      return found
    },

    /** Resolves when those that run now have ended. */
    ended: () => Promise.all(running.values().map(({ done }) => done)),

    abort() {
      for (const { controller } of running.values()) controller.abort()
    },
  }
}
