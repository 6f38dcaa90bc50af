import { SECOND } from '../clock.js'
import { sleep } from '../waiting.js'
import { createLookTimes } from './look-times.js'
import { createRunningItems, type RunningItemsOptions } from './running-items.js'

export interface LeaseLoop<Item> {
  start(): void
  /** Looks for work now, or after `inMs`. */
  wake(inMs?: number): void
  /** Claims nothing until `resume`. Resolves when no item runs. */
  hold(): Promise<void>
  resume(): void
  /** Runs an item that was claimed while the loop is held, with a lease until `heldUntil`. Resolves when it has ended. */
  runAlone(item: Item, heldUntil: number): Promise<void>
  /** A running item has begun to wait, so its slot is free: looks without a rest. */
  slotFreed(): void
  /**
   * Stops claiming, waits `graceMs` for running items, then aborts them. Resolves when they have ended or were left
   * behind.
   */
  close(graceMs: number): Promise<void>
  /** When the loop last looked for work, by the monotonic clock. If that is long ago, the loop is stuck. */
  lookedAt(): number
  /** The running items. */
  items(): Item[]
}

export interface LeaseLoopOptions<Item> extends RunningItemsOptions<Item> {
  concurrency: number
  /** Whether a running item only waits, and so takes no slot; at most `maxWaiting` items do. */
  isWaiting?(item: Item): boolean
  maxWaiting?: number
  /**
   * How many more than `concurrency` are leased; `run` makes them wait for a slot. Claimed when half of them are
   * missing.
   */
  ahead?(): number
  /** Whether a claim of fewer items than `limit` has leased all due ones, so that the next look may rest. */
  isExhaustive?: boolean
  /** Leases up to `limit` items. */
  claim(limit: number): Promise<Item[]>
  pollMs: number
}

/** Each waiting item holds a lease, which is renewed while it waits. */
const MAX_WAITING = 250

/**
 * Leases items and runs them, at most `concurrency` at once: the one loop behind reading and handling. docs/states.md has
 * its states. All times are monotonic: setting the wall clock neither ends a lease nor delays a look.
 */
export function createLeaseLoop<Item>(options: LeaseLoopOptions<Item>): LeaseLoop<Item> {
  const { concurrency, isWaiting = () => false, maxWaiting = MAX_WAITING, ahead = () => 0 } = options
  const { isExhaustive = false, claim, leaseMs, pollMs, clock, onError } = options
  const running = createRunningItems<Item>({ ...options, onEnd: slotFreed })
  const times = createLookTimes({ pollMs, clock, look })
  let state: 'new' | 'started' | 'closed' = 'new'
  let looking: Promise<void> | undefined
  let isHeld = false
  /** A slot became free during a look, which may have counted its slots before. */
  let isSlotFreed = false
  /** The look has leased an item. */
  let hasFound = false
  /** The last claim has leased all due items. */
  let isExhausted = false
  let lookedAt = clock.monotonic()

  function look() {
    times.lookBegins()
    isSlotFreed = false
    hasFound = false
    looking = takeAll()
      .catch(onError)
      .finally(() => {
        looking = undefined
        times.lookEnded(hasFound)
        if (isSlotFreed) slotFreed()
        times.arm()
      })
  }

  async function takeAll() {
    lookedAt = clock.monotonic()
    while (state === 'started' && !isHeld) {
      const extra = ahead()
      const waiting = Math.min(running.count(isWaiting), maxWaiting)
      const free = concurrency + extra - (running.size() - waiting)
      // Items leased ahead are filled up in one claim, when half of them are missing.
      if (free <= extra / 2) return
      const askedAt = clock.monotonic()
      const items = await claim(free)
      if (items.length > 0) {
        hasFound = true
        running.begin(items, askedAt + leaseMs)
      }
      isExhausted = isExhaustive && items.length < free
      if (items.length === 0 || isExhausted) return
    }
  }

  /** Looks without a rest if due items may wait for the slot. */
  function slotFreed() {
    if (looking) isSlotFreed = true
    else if (isExhausted) times.wakeAt(clock.monotonic())
    else look()
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      look()
    },

    async hold() {
      isHeld = true
      await looking
      await running.ended()
    },

    resume() {
      isHeld = false
      times.wakeAt(clock.monotonic())
    },

    runAlone(item, heldUntil) {
      running.begin([item], heldUntil)
      // Closed during the claim: it returns the item.
      if (state === 'closed') running.abort()
      return running.ended().then(() => {})
    },

    slotFreed,

    wake: (inMs = 0) => times.wakeAt(clock.monotonic() + inMs),

    async close(graceMs) {
      state = 'closed'
      times.end()
      await endWithin(graceMs)
      if (running.size() === 0) return
      running.abort()
      // An item that ignores its signal is left behind. Its lease runs out, and somebody else takes it.
      await endWithin(Math.min(graceMs, SECOND))
    },

    lookedAt: () => lookedAt,
    items: running.items,
  }

  /** Resolves when no item runs any more, or after `ms`. */
  function endWithin(ms: number): Promise<void> {
    const ended = new AbortController()
    // A claim under way may still begin items.
    Promise.resolve(looking)
      .then(() => running.ended())
      .then(() => ended.abort())
    return sleep(ms, clock, ended.signal)
  }
}
