import type { Clock } from '../clock.js'
import { createLine } from '../line.js'
import { createClaimLeases } from './lease.js'

export interface RunningItemsOptions<Item> {
  /** Handles failures of the item itself; `onError` gets any other rejection. */
  run(item: Item, lease: RunningLease): Promise<void>
  renew(item: Item): Promise<boolean>
  leaseMs: number
  renewEveryMs: number
  clock: Clock
  onError(error: unknown): void
}

/** The lease of a running item. */
export interface RunningLease {
  /** Aborts when the lease is lost. */
  signal: AbortSignal
  /** Whether the lease is held by the clock: the signal may be late. */
  isHeld(): boolean
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
        const done = run(item, { signal: controller.signal, isHeld: lease.isHeld })
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

    /** Resolves when those that run now have ended. */
    ended: () => Promise.all(running.values().map(({ done }) => done)),

    abort() {
      for (const { controller } of running.values()) controller.abort()
    },
  }
}
