import { type Clock, SECOND } from '../clock.js'
import {
  type DeadEntry,
  type Entry,
  type EntryEnd,
  type LaneClaim,
  MAX_LAPSES,
  type Store,
} from '../store/store.js'
import { createHandlerCalls } from './call-handlers.js'
import { createLaneFinishes } from './lane-finishes.js'
import { createLeaseLoop, type LeaseLoop } from './lease-loop.js'
import { createSlices } from './slices.js'

/** Entries that one claim reads: with payloads of some hundred bytes SQLite takes 2 ms for them. */
const ENTRIES = 128
/** Lanes that are leased before a slot is free, at most, and for how long: as many as are worked off meanwhile. */
const MAX_AHEAD = 128
const AHEAD_MS = 40
/** So long a lane may wait for a slot, or hold one while others are due. */
const PATIENCE_MS = SECOND
/** After a handler that took longer, the next waits for the answer whether the lane is still leased: some ms. */
const SLOW_MS = 50

type HandlerCallsOptions = Parameters<typeof createHandlerCalls>[0]

/**
 * Takes journal entries to the app's handlers: at least once, in order within a lane, never two of one lane at once.
 * At most `concurrency` lanes have handlers running. Where handlers return at once, more lanes are leased ahead.
 */
export function createDispatcher(
  options: HandlerCallsOptions & {
    store: Pick<Store, 'claimLanes' | 'finishLanes' | 'renewLane'>
    concurrency: number
    leaseMs: number
    renewEveryMs: number
    pollMs: number
    clock: Clock
    onHandled?(entry: Entry, result: EntryEnd['result']): void
    onDead(entry: DeadEntry): void
    onError(error: unknown): void
  },
) {
  const { store, handlers, concurrency, leaseMs, renewEveryMs, pollMs, clock, onError } = options
  const { onHandled = () => {}, onDead } = options
  const calls = createHandlerCalls(options)
  const finishes = createLaneFinishes({ store, clock })
  const slices = createSlices(clock)
  const inSlot = new Set<LaneClaim>()
  const queue: (() => void)[] = []
  /** How long a lane holds its slot, lately. */
  let slotMs = Number.POSITIVE_INFINITY

  const loop: LeaseLoop<LaneClaim> = createLeaseLoop<LaneClaim>({
    concurrency,
    isWaiting: (lane) => !inSlot.has(lane),
    maxWaiting: 4 * MAX_AHEAD,
    leaseMs,
    renewEveryMs,
    pollMs,
    clock,
    onError,
    renew: (lane) => store.renewLane(lane, leaseMs),
    run,
    async claim(free) {
      const topics = handlers.topics()
      if (topics.length === 0 || queue.length > 0) return []
      // Not in the turn of the event loop in which a batch was written.
      await slices.turn()
      const ahead = Math.min(MAX_AHEAD, Math.floor((concurrency * AHEAD_MS) / slotMs))
      const exceptKeys = [...new Set([...loop.items().map(({ id }) => id), ...calls.busyKeys()])]
      return store.claimLanes({ limit: free + ahead, entries: ENTRIES, leaseMs, topics, exceptKeys })
    },
  })

  async function run(lane: LaneClaim, signal: AbortSignal) {
    const ended: { entry: Entry; result: EntryEnd['result'] }[] = []
    let isOver = false
    let isHeld = true
    let writing: Promise<unknown> | undefined
    let isReleased = false

    async function write() {
      let written: typeof ended = []
      isHeld = await finishes.write(() => {
        written = ended.splice(0)
        isReleased = isOver
        const results = written.map(({ entry: { id, attempt }, result }) => ({ id, attempt, result }))
        return { id: lane.id, leaseToken: lane.leaseToken, results, keep: !isOver }
      }, signal)
      if (isHeld) for (const { entry, result } of written) note(entry, result)
    }

    if (await hasSlot(lane, signal)) {
      const beganAt = clock.monotonic()
      try {
        for (const entry of lane.entries) {
          await slices.turn()
          if (signal.aborted || !isHeld || clock.monotonic() - beganAt > PATIENCE_MS) break
          const calledAt = clock.monotonic()
          const result =
            lane.lapses >= MAX_LAPSES
              ? ({ kind: 'dead', error: 'its handlers ended the process again and again' } as const)
              : await calls.call(entry, signal)
          if (!result) break
          ended.push({ entry, result })
          if (result.kind === 'retry') break
          // Written while the next is handled: a process that ends repeats little.
          writing ??= write().finally(() => {
            writing = undefined
          })
          writing.catch(() => {})
          // Meanwhile the lane may have been taken back by an erasure: then nothing more of it is handled.
          if (clock.monotonic() - calledAt > SLOW_MS) await writing
        }
      } finally {
        leaveSlot(lane, beganAt)
      }
    }
    isOver = true
    await writing
    if (isHeld && !isReleased) await write()
  }

  /** Whether it has a slot now; false when it waited too long, or lost its lease meanwhile. */
  function hasSlot(lane: LaneClaim, signal: AbortSignal): boolean | Promise<boolean> {
    // Claimed so slowly that the lease is over: it may be somebody else's.
    if (signal.aborted) return false
    if (inSlot.size < concurrency) {
      inSlot.add(lane)
      return true
    }
    return new Promise((resolve) => {
      const end = (has: boolean) => {
        clock.clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        const at = queue.indexOf(enter)
        if (at >= 0) queue.splice(at, 1)
        if (has) inSlot.add(lane)
        resolve(has)
      }
      const enter = () => end(true)
      const giveUp = () => end(false)
      // What was leased ahead is given back when those before it turn out to be slow.
      const timer = clock.setTimeout(() => {
        slotMs = Number.POSITIVE_INFINITY
        giveUp()
      }, PATIENCE_MS)
      signal.addEventListener('abort', giveUp, { once: true })
      queue.push(enter)
    })
  }

  function leaveSlot(lane: LaneClaim, beganAt: number) {
    const ms = Math.max(0.01, clock.monotonic() - beganAt)
    slotMs = Number.isFinite(slotMs) ? slotMs * 0.9 + ms * 0.1 : ms
    inSlot.delete(lane)
    queue[0]?.()
    if (queue.length === 0) loop.wake()
  }

  function note(entry: Entry, result: EntryEnd['result']) {
    onHandled(entry, result)
    if (result.kind === 'retry') loop.wake(result.inMs)
    if (result.kind !== 'dead') return
    const { id, kind, name, businessUid, subscriptionUid, attempt: attempts } = entry
    onDead({ id, kind, name, businessUid, subscriptionUid, attempts, error: result.error })
  }

  return loop
}
