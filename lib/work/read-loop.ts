import type { Clock } from '../clock.js'
import type { ReadClaim } from '../store/store.js'
import { createLeaseLoop } from './lease-loop.js'
import { createReadSlots } from './read-slots.js'

/** A lease loop over reads. Leases some ahead, and begins the next read while another one is written. */
export function createReadLoop(options: {
  concurrency: number
  /** Whether a read only waits, and so takes no slot. */
  isWaiting(claim: ReadClaim): boolean
  /** Leases up to `limit` reads. Fewer: no other read is due. */
  claim(limit: number): Promise<ReadClaim[]>
  /** Reads and writes; calls `onWriting` once the platform has answered. */
  read(claim: ReadClaim, signal: AbortSignal, onWriting: () => void): Promise<void>
  /** Whether a read leased ahead may still begin. */
  mayBegin(): boolean
  /** Returns a read that does not begin. */
  giveBack(claim: ReadClaim): Promise<void>
  onSlotFree?(claim: ReadClaim): void
  onEnd(claim: ReadClaim): void
  renew(claim: ReadClaim): Promise<boolean>
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  clock: Clock
  onError(error: unknown): void
}) {
  const { isWaiting, claim, clock, read, mayBegin, giveBack, onSlotFree = () => {}, onEnd } = options
  const slots = createReadSlots(options)

  const loop = createLeaseLoop<ReadClaim>({
    ...options,
    isWaiting: (claim) => slots.isWriting(claim) || isWaiting(claim),
    ahead: slots.ahead,
    isExhaustive: true,
    async claim(limit) {
      const askedAt = clock.monotonic()
      const claims = await claim(limit)
      slots.claimTook(clock.monotonic() - askedAt)
      return claims
    },
    async run(claim, signal) {
      const onWriting = () => {
        slots.written(claim)
        onSlotFree(claim)
        loop.slotFreed()
      }
      try {
        const begins = (await slots.take(claim, signal)) && mayBegin()
        await (begins ? read(claim, signal, onWriting) : giveBack(claim))
      } finally {
        slots.end(claim)
        onSlotFree(claim)
        onEnd(claim)
      }
    },
  })

  return {
    ...loop,
    close(graceMs: number) {
      const closed = loop.close(graceMs)
      slots.close()
      return closed
    },
  }
}
