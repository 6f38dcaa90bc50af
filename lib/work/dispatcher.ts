import { type Clock, SECOND } from '../clock.js'
import {
  type DeadEntry,
  type Entry,
  type EntryEnd,
  type LaneClaim,
  MAX_LAPSES,
  type Store,
} from '../store/store.js'
import { createDeadlines } from '../waiting.js'
import { createHandlerCalls } from './call-handlers.js'
import { createLaneFinishes } from './lane-finishes.js'
import { createLeaseLoop, type LeaseLoop } from './lease-loop.js'
import { createSlices } from './slices.js'

/** Entries that one claim reads: SQLite takes about 4 ms for as many lanes with payloads of some hundred bytes. */
const ENTRIES = 256
/** Lanes of one claim, at most. Half as many, so that each may hand out two: that shows whether lanes are deep. */
const MAX_LANES = ENTRIES / 2
/** Lanes that are leased before a slot is free, at most, and for how long: as many as are worked off meanwhile. */
const MAX_AHEAD = MAX_LANES
const AHEAD_MS = 40
/** So long a lane may wait for a slot, or hold one while others are due. */
const PATIENCE_MS = SECOND

interface Lane extends LaneClaim {
  /** Its handlers have run: it waits for its finish to be written, without a slot. */
  isHandled: boolean
}

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
  const patience = createDeadlines(PATIENCE_MS, clock)
  let inSlots = 0
  /** Lanes that may have been taken back: before their next entry is handled, the store is asked. */
  const doubted = new WeakSet<LaneClaim>()
  const queue: (() => void)[] = []
  /** How long a lane holds its slot, lately. */
  let slotMs = Number.POSITIVE_INFINITY
  /** Fewer where lanes are deep: then each hands out more entries, for one lease and one finish. */
  let lanesAtOnce = MAX_LANES

  /** Lanes that wait for a slot at most. The next are leased while half of them still wait. */
  const ahead = () => Math.min(MAX_AHEAD, Math.floor((concurrency * AHEAD_MS) / slotMs))

  const loop: LeaseLoop<Lane> = createLeaseLoop<Lane>({
    concurrency,
    ahead,
    isWaiting: (lane) => lane.isHandled,
    maxWaiting: 2 * MAX_AHEAD,
    leaseMs,
    renewEveryMs,
    pollMs,
    clock,
    onError,
    renew: (lane) => store.renewLane(lane, leaseMs),
    run,
    async claim(free) {
      const topics = handlers.topics()
      if (topics.length === 0) return []
      // Not in the turn of the event loop in which a batch was written.
      await slices.turn()
      const limit = Math.min(lanesAtOnce, free)
      const exceptKeys = [...new Set([...loop.items().map(({ id }) => id), ...calls.busyKeys()])]
      const lanes = await store.claimLanes({ limit, entries: ENTRIES, leaseMs, topics, exceptKeys })
      const handedOut = lanes.reduce((sum, { entries }) => sum + entries.length, 0)
      lanesAtOnce =
        handedOut > ENTRIES * 0.75
          ? Math.max(Math.min(concurrency, MAX_LANES), Math.floor(lanesAtOnce / 2))
          : Math.min(MAX_LANES, lanesAtOnce * 2)
      return lanes.map((lane) => ({ ...lane, isHandled: false }))
    },
  })

  async function run(lane: Lane, signal: AbortSignal) {
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

    if (await takeSlot(signal)) {
      const beganAt = clock.monotonic()
      try {
        for (const entry of lane.entries) {
          await slices.turn()
          if (signal.aborted || !isHeld || clock.monotonic() - beganAt > PATIENCE_MS) break
          if (doubted.delete(lane) && !(await store.renewLane(lane, leaseMs).catch(() => true))) break
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
  function takeSlot(signal: AbortSignal): boolean | Promise<boolean> {
    // Claimed so slowly that the lease is over: it may be somebody else's.
    if (signal.aborted) return false
    if (inSlots < concurrency) {
      inSlots++
      return true
    }
    return new Promise((resolve) => {
      const end = (has: boolean) => {
        inTime()
        signal.removeEventListener('abort', giveUp)
        const at = queue.indexOf(enter)
        if (at >= 0) queue.splice(at, 1)
        if (has) inSlots++
        resolve(has)
      }
      const enter = () => end(true)
      const giveUp = () => end(false)
      // What was leased ahead is given back when those before it turn out to be slow.
      const inTime = patience.set(() => {
        slotMs = Number.POSITIVE_INFINITY
        giveUp()
      })
      signal.addEventListener('abort', giveUp, { once: true })
      queue.push(enter)
    })
  }

  function leaveSlot(lane: Lane, beganAt: number) {
    const ms = Math.max(0.01, clock.monotonic() - beganAt)
    slotMs = Number.isFinite(slotMs) ? slotMs * 0.9 + ms * 0.1 : ms
    inSlots--
    lane.isHandled = true
    queue[0]?.()
    if (queue.length <= ahead() / 2) loop.wake()
  }

  function note(entry: Entry, result: EntryEnd['result']) {
    onHandled(entry, result)
    if (result.kind === 'retry') loop.wake(result.inMs)
    if (result.kind !== 'dead') return
    const { id, kind, name, businessUid, subscriptionUid, attempt: attempts } = entry
    onDead({ id, kind, name, businessUid, subscriptionUid, attempts, error: result.error })
  }

  return {
    ...loop,
    async close(graceMs: number) {
      await loop.close(graceMs)
      calls.rest()
      patience.rest()
    },
    /** What was known of a business (null: of any) has changed: it may have been erased, and its lanes taken back. */
    doubt(business: string | null) {
      for (const lane of loop.items())
        if (business === null || lane.entries.some(({ businessUid }) => businessUid === business))
          doubted.add(lane)
    },
  }
}
