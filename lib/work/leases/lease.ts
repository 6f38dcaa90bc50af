import { fullJitter } from '../../base/backoff.js'
import { type Clock, SECOND } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { createLine } from '../../base/line.js'
import { sleep } from '../../base/waiting.js'

/** The lease of one running item. */
interface Lease {
  /** By the clock, whether or not its timers have run: after a stall of the process other timers may run first. */
  isHeld(): boolean
  /** The item has ended: no renewal any more, and no `onLost`. */
  end(): void
}

/** The leases of one claim. One timer serves them until the first renewal, before which most items end. */
function createClaimLeases(options: {
  /** Until this time they hold without a renewal. */
  heldUntil: number
  leaseMs: number
  renewEveryMs: number
  clock: Clock
}) {
  const { heldUntil, leaseMs, renewEveryMs, clock } = options
  const firstRenewalMs = Math.min(renewEveryMs, heldUntil - clock.monotonic())
  const leases: ReturnType<typeof createLease>[] = []
  let open = 0
  const timer = clock.setTimeout(
    () => {
      for (const lease of leases) lease.startRenewal(renewEveryMs - firstRenewalMs)
    },
    Math.max(0, firstRenewalMs),
  )

  return {
    /** All leases are added before the first of them ends. */
    add({ renew, onLost }: LeaseCalls): Lease {
      // The claim took longer than the lease.
      if (firstRenewalMs <= 0) onLost()
      const lease = createLease({ renew, onLost, heldUntil, leaseMs, renewEveryMs, clock })
      leases.push(lease)
      open++
      return {
        isHeld: lease.isHeld,
        end() {
          lease.end()
          if (--open === 0) clock.clearTimeout(timer)
        },
      }
    },
  }
}

interface LeaseCalls {
  /** False: the lease is lost. A rejection is tried again at the next renewal. */
  renew(): Promise<boolean>
  /** Called when a renewal is refused, or the lease was not renewed in time. */
  onLost(): void
}

/** A lease that renews itself. docs/states.md has its states. */
export function createLease(
  options: LeaseCalls & { heldUntil: number; leaseMs: number; renewEveryMs: number; clock: Clock },
) {
  const { renew, onLost, leaseMs, renewEveryMs, clock } = options
  let { heldUntil } = options
  let lapse: unknown
  let renewal: unknown
  let hasEnded = false

  function holdUntil(time: number) {
    heldUntil = time
    clock.clearTimeout(lapse)
    // The store may have answered so late that somebody else has the item already.
    if (time <= clock.monotonic()) onLost()
    else lapse = clock.setTimeout(onLost, time - clock.monotonic())
  }

  function renewIn(ms: number) {
    renewal = clock.setTimeout(async () => {
      const calledAt = clock.monotonic()
      const held = await renew().catch(() => undefined)
      if (hasEnded) return
      if (held === false) return onLost()
      if (held) holdUntil(calledAt + leaseMs)
      renewIn(renewEveryMs)
    }, ms)
  }

  return {
    isHeld: () => clock.monotonic() < heldUntil,
    /** Begins to renew. */
    startRenewal(renewInMs: number) {
      if (hasEnded) return
      holdUntil(heldUntil)
      renewIn(renewInMs)
    },
    end() {
      hasEnded = true
      clock.clearTimeout(renewal)
      clock.clearTimeout(lapse)
    },
  }
}

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

/**
 * Repeats a failed write until it succeeds or the lease is lost: a short restart of the database must not cost a whole
 * lease. Throws an error that is not retryable at once.
 */
export async function writeWhileLeased<T>(
  write: () => Promise<T>,
  lost: AbortSignal,
  clock: Clock,
): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await write()
    } catch (error) {
      if (!isRetryable(error) || lost.aborted) throw error
      await sleep(writePauseMs(failures), clock, lost)
      if (lost.aborted) throw error
    }
  }
}

export function isRetryable(error: unknown): boolean {
  return error instanceof MarketplaceError && error.retryable
}

/** The pause after a failed write of a result. */
function writePauseMs(failures: number): number {
  return fullJitter(failures, SECOND / 4, 5 * SECOND)
}
