import { fullJitter } from '../../base/backoff.js'
import { type Clock, SECOND } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { createLine } from '../../base/line.js'
import { sleep } from '../../base/waiting.js'

export interface RunningItemsOptions<Item> {
  /** Handles failures of the item itself; `onError` gets any other rejection. */
  run(item: Item, lease: RunningLease): Promise<void>
  /** False: the lease is lost. A rejection is tried again at the next renewal. */
  renew(item: Item): Promise<boolean>
  leaseMs: number
  renewEveryMs: number
  clock: Clock
  onError(error: unknown): void
}

/** The lease of a running item. */
export interface RunningLease {
  /** Aborts when the lease is lost, or when the loop closes and no longer waits. */
  signal: AbortSignal
  /** Whether the lease is held by the clock: after a stall of the process the signal may be late. */
  isHeld(): boolean
  /** When the claim began, by the monotonic clock. */
  claimBegan: number
}

interface Running<Item> {
  item: Item
  controller: AbortController
  /** The end of the lease, unless it is renewed before. */
  heldUntil: number
  renewAt: number
  /** The lease is lost, or the item has ended. */
  isOver: boolean
  done: Promise<void>
}

/**
 * Leased items that run. One timer renews their leases, and finds those that were not renewed in time. docs/states.md has
 * the states of a lease.
 */
export function createRunningItems<Item>(options: RunningItemsOptions<Item> & { onEnd(): void }) {
  const { run, renew, leaseMs, renewEveryMs, clock, onError, onEnd } = options
  const running = createLine<Running<Item>>()
  let timer: unknown
  let sweepAt = Number.POSITIVE_INFINITY

  function sweepBy(time: number) {
    if (time >= sweepAt) return
    clock.clearTimeout(timer)
    sweepAt = time
    timer = clock.setTimeout(sweep, Math.max(0, time - clock.monotonic()))
  }

  function sweep() {
    sweepAt = Number.POSITIVE_INFINITY
    const now = clock.monotonic()
    for (const each of running.values()) {
      if (each.isOver) continue
      if (each.heldUntil <= now) lose(each)
      else if (each.renewAt <= now) void renewNow(each)
      if (!each.isOver) sweepBy(Math.min(each.heldUntil, each.renewAt))
    }
  }

  async function renewNow(each: Running<Item>) {
    const calledAt = clock.monotonic()
    each.renewAt = Number.POSITIVE_INFINITY
    const isHeld = await renew(each.item).catch(() => undefined)
    if (each.isOver) return
    if (isHeld) each.heldUntil = calledAt + leaseMs
    const now = clock.monotonic()
    // The store may have answered so late that somebody else has the item already.
    if (isHeld === false || each.heldUntil <= now) return lose(each)
    each.renewAt = now + renewEveryMs
    sweepBy(Math.min(each.heldUntil, each.renewAt))
  }

  function lose(each: Running<Item>) {
    each.isOver = true
    each.controller.abort()
  }

  return {
    /** Runs the items of one claim, whose leases hold until `heldUntil`. Returns a promise of the end of each. */
    begin(items: readonly Item[], heldUntil: number): Promise<void>[] {
      const renewAt = clock.monotonic() + renewEveryMs
      const ends: Promise<void>[] = []
      for (const item of items) {
        const controller = new AbortController()
        const each = { item, controller, heldUntil, renewAt, isOver: false, done: Promise.resolve() }
        const leave = running.add(each)
        // The claim took longer than the lease.
        if (heldUntil <= clock.monotonic()) lose(each)
        const isHeld = () => !each.isOver && clock.monotonic() < each.heldUntil
        const claimBegan = heldUntil - leaseMs
        each.done = run(item, { signal: controller.signal, isHeld, claimBegan })
          .catch(onError)
          .finally(() => {
            each.isOver = true
            leave()
            if (running.size === 0) {
              clock.clearTimeout(timer)
              sweepAt = Number.POSITIVE_INFINITY
            }
            onEnd()
          })
        ends.push(each.done)
      }
      if (running.size > 0) sweepBy(Math.min(heldUntil, renewAt))
      return ends
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
