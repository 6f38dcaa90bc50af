import type { Clock } from '../clock.js'

/** The lease of one running item. Ends by itself: `onLost` is called when it is refused, or was not renewed in time. */
export interface Lease {
  /** Begins to renew. Until `heldUntil` the lease holds without a renewal. */
  startRenewal(heldUntil: number, renewInMs: number): void
  /** The item has ended: no renewal any more, and no `onLost`. */
  end(): void
}

/**
 * A lease that renews itself:
 *
 * | state | entered | left |
 * |---|---|---|
 * | held | at the claim; after each renewal that the store confirms | a renewal is refused, or none was confirmed until the end: lost. The item ends: ended |
 * | lost | see above; `onLost` was called | never |
 * | ended | `end()` | never |
 *
 * All times are monotonic. A lease counts from the moment before the call of the store, so nobody else can have the item
 * before it ends here.
 */
export function createLease(options: {
  /** False: the lease is lost. A rejection is tried again at the next renewal. */
  renew(): Promise<boolean>
  onLost(): void
  leaseMs: number
  renewEveryMs: number
  clock: Clock
}): Lease {
  const { renew, onLost, leaseMs, renewEveryMs, clock } = options
  let lapse: unknown
  let renewal: unknown
  let isOver = false

  function holdUntil(time: number) {
    clock.clearTimeout(lapse)
    // The store may have answered so late that somebody else has the item already.
    if (time <= clock.monotonic()) onLost()
    else lapse = clock.setTimeout(onLost, time - clock.monotonic())
  }

  function renewIn(ms: number) {
    renewal = clock.setTimeout(async () => {
      const calledAt = clock.monotonic()
      const held = await renew().catch(() => undefined)
      if (isOver) return
      if (held === false) return onLost()
      if (held) holdUntil(calledAt + leaseMs)
      renewIn(renewEveryMs)
    }, ms)
  }

  return {
    startRenewal(heldUntil, renewInMs) {
      if (isOver) return
      holdUntil(heldUntil)
      renewIn(renewInMs)
    },
    end() {
      isOver = true
      clock.clearTimeout(renewal)
      clock.clearTimeout(lapse)
    },
  }
}
