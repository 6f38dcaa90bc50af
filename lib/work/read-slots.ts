import { type Clock, SECOND } from '../clock.js'
import type { ReadClaim } from '../store/store.js'
import { createSlotQueue } from './slot-queue.js'

/**
 * Reads are leased before a slot is free: as many as end in this time, or in the time of two claims. So no slot waits
 * for a claim on a slow database, and a new request waits hardly longer.
 */
const AHEAD_MS = 25
const MAX_AHEAD = 64
/** How long a read leased ahead waits for a slot. If the reads before it are slow, it goes back to the store. */
const PATIENCE_MS = SECOND / 2
/** The most reads being written, whose slots are free. */
const MAX_WRITING = 64

/**
 * The slots of a loop of reads. While the platform answers at once, more reads are leased than there are slots, so no
 * slot waits for the store.
 */
export function createReadSlots(options: {
  concurrency: number
  /** Whether a read only waits, and so takes no slot. */
  isWaiting(claim: ReadClaim): boolean
  clock: Clock
}) {
  const { concurrency, isWaiting, clock } = options
  const inSlots = new Map<ReadClaim, number>()
  const writing = new Set<ReadClaim>()
  /** Moving average of the time that a claim takes. */
  let claimMs = 0
  /** Moving average of the time that a read holds its slot. */
  let slotMs = Number.POSITIVE_INFINITY
  let isClosed = false
  const queue = createSlotQueue({
    patienceMs: PATIENCE_MS,
    clock,
    onLate() {
      slotMs = Number.POSITIVE_INFINITY
    },
  })

  function take(claim: ReadClaim, signal: AbortSignal): boolean | Promise<boolean> {
    if (signal.aborted || isClosed) return false
    admit()
    if (queue.size() === 0 && isFree()) {
      inSlots.set(claim, clock.monotonic())
      return true
    }
    return queue.wait(signal, () => inSlots.set(claim, clock.monotonic()))
  }

  return {
    /** True: the read may begin. False: give it back. */
    take,
    /** The read is being written, so its slot goes to the next one. */
    written(claim: ReadClaim) {
      const beganAt = inSlots.get(claim)
      if (beganAt === undefined || writing.size >= MAX_WRITING) return
      writing.add(claim)
      leave(claim)
    },
    end(claim: ReadClaim) {
      writing.delete(claim)
      leave(claim)
    },
    /** Whether the read is being written without a slot. */
    isWriting: (claim: ReadClaim) => writing.has(claim),
    /** How many reads more than slots may be leased. */
    ahead() {
      const aheadMs = Math.max(AHEAD_MS, 2 * claimMs)
      return isClosed ? 0 : Math.min(MAX_AHEAD, Math.floor((concurrency * aheadMs) / slotMs))
    },
    claimTook(ms: number) {
      claimMs = claimMs * 0.8 + Math.min(ms, PATIENCE_MS) * 0.2
    },
    /** Gives back every read that waits for a slot. */
    close() {
      isClosed = true
      queue.clear()
      queue.rest()
    },
  }

  function leave(claim: ReadClaim) {
    const beganAt = inSlots.get(claim)
    if (beganAt === undefined) return
    inSlots.delete(claim)
    const ms = Math.max(0.1, clock.monotonic() - beganAt)
    slotMs = Number.isFinite(slotMs) ? slotMs * 0.9 + ms * 0.1 : ms
    admit()
  }

  function admit() {
    while (queue.size() > 0 && isFree()) queue.admit()
  }

  function isFree(): boolean {
    if (inSlots.size < concurrency) return true
    let used = 0
    for (const claim of inSlots.keys()) if (!isWaiting(claim)) used++
    return used < concurrency
  }
}
