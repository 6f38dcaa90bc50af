import { type Clock, SECOND } from '../clock.js'
import type { ReadClaim } from '../store/store.js'

/**
 * Reads that are leased before a slot is free: as many as end in this time, or in that of two claims. So a claim on a
 * slow database costs no slot its time, and what is asked for next waits hardly longer.
 */
const AHEAD_MS = 25
const MAX_AHEAD = 64
/** So long a read that was leased ahead waits for a slot: when those before it turn out to be slow it is given back. */
const PATIENCE_MS = SECOND / 2
/** Reads that have ended and are being written, at most: their slots are free. */
const MAX_WRITING = 64

/**
 * The slots of a loop of reads. While the platform answers at once more is leased than there are slots, so that a slot
 * never waits for the store.
 */
export function createReadSlots(options: {
  concurrency: number
  /** Whether a read only waits for something, and so takes no slot. */
  isWaiting(claim: ReadClaim): boolean
  clock: Clock
}) {
  const { concurrency, isWaiting, clock } = options
  const queue = new Set<() => void>()
  const giveUps = new Set<() => void>()
  const inSlots = new Map<ReadClaim, number>()
  const writing = new Set<ReadClaim>()
  /** How long a claim takes, lately. */
  let claimMs = 0
  /** How long a read holds its slot, lately. */
  let slotMs = Number.POSITIVE_INFINITY
  let isClosed = false

  function take(claim: ReadClaim, signal: AbortSignal): boolean | Promise<boolean> {
    if (signal.aborted || isClosed) return false
    admit()
    if (queue.size === 0 && isFree()) {
      inSlots.set(claim, clock.monotonic())
      return true
    }
    return new Promise((resolve) => {
      const end = (has: boolean) => {
        clock.clearTimeout(patience)
        signal.removeEventListener('abort', giveUp)
        queue.delete(enter)
        giveUps.delete(giveUp)
        if (has) inSlots.set(claim, clock.monotonic())
        resolve(has)
      }
      const enter = () => end(true)
      const giveUp = () => end(false)
      const patience = clock.setTimeout(() => {
        slotMs = Number.POSITIVE_INFINITY
        giveUp()
      }, PATIENCE_MS)
      signal.addEventListener('abort', giveUp, { once: true })
      queue.add(enter)
      giveUps.add(giveUp)
    })
  }

  return {
    /** Whether it may begin now; false when it is to be given back. */
    take,
    /** It is being written: its slot is the next one's. */
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
    /** Whether it holds neither a slot nor a place in the queue. */
    isWriting: (claim: ReadClaim) => writing.has(claim),
    /** How many more than the slots may be leased. */
    ahead() {
      const aheadMs = Math.max(AHEAD_MS, 2 * claimMs)
      return isClosed ? 0 : Math.min(MAX_AHEAD, Math.floor((concurrency * aheadMs) / slotMs))
    },
    claimTook(ms: number) {
      claimMs = claimMs * 0.8 + Math.min(ms, PATIENCE_MS) * 0.2
    },
    /** What waits for a slot is given back. */
    close() {
      isClosed = true
      for (const giveUp of giveUps) giveUp()
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
    for (const enter of queue) {
      if (!isFree()) return
      enter()
    }
  }

  function isFree(): boolean {
    if (inSlots.size < concurrency) return true
    let used = 0
    for (const claim of inSlots.keys()) if (!isWaiting(claim)) used++
    return used < concurrency
  }
}
