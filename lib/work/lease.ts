import type { Clock } from '../clock.js'

/** The lease of one running item. */
export interface Lease {
  /** By the clock, whether or not its timers have run: after a stall of the process other timers may run first. */
  isHeld(): boolean
  /** The item has ended: no renewal any more, and no `onLost`. */
  end(): void
}

/** The leases of one claim. One timer serves them until the first renewal, before which most items end. */
export function createClaimLeases(options: {
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
