import { spread } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { createLine } from '../line.js'
import { sleep } from '../waiting.js'
import { createClaimLeases } from './lease.js'

export interface LeaseLoop<Item = unknown> {
  start(): void
  /** Looks for work now, or after `inMs`. */
  wake(inMs?: number): void
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

/** Wake-ups within this time after a look share the next one: a look costs some queries, a flood of wake-ups none. */
const REST_MS = 10

/** Each waiting item holds a lease, which is renewed while it waits. */
const MAX_WAITING = 250

/**
 * Leases items and runs them, at most `concurrency` at once: the one loop behind reading and handling.
 *
 * | state | entered | left |
 * |---|---|---|
 * | new | creation; wake-ups are remembered | `start()`: looking. `close()`: closed |
 * | looking | `start()`; the timer; a free slot. Claims and runs items until no slot is free or no item is due | the last claim ends: waiting. `close()`: closed, after that claim |
 * | waiting | a look has ended; the timer waits for the earliest wake-up, at most about `pollMs` | the timer, or an item ends: looking. `close()`: closed |
 * | closed | `close()`; claims nothing, waits for running items, then aborts them | never |
 *
 * The signal of an item aborts when its lease is lost (`lease.ts`). All times are monotonic: setting the wall clock
 * neither ends a lease nor delays a look.
 */
export function createLeaseLoop<Item>(options: {
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
  /** Handles failures of the item itself; `onError` gets any other rejection. */
  run(item: Item, signal: AbortSignal): Promise<void>
  renew(item: Item): Promise<boolean>
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  clock: Clock
  onError(error: unknown): void
}): LeaseLoop<Item> {
  const { concurrency, isWaiting = () => false, maxWaiting = MAX_WAITING, ahead = () => 0 } = options
  const { isExhaustive = false, claim, run, renew, leaseMs, renewEveryMs, pollMs, clock, onError } = options
  const running = createLine<{ item: Item; controller: AbortController; done: Promise<void> }>()
  let state: 'new' | 'started' | 'closed' = 'new'
  let looking: Promise<void> | undefined
  /** A slot became free during a look, which may have counted its slots before. */
  let isSlotFreed = false
  /** The last claim has leased all due items. */
  let isExhausted = false
  let lookedAt = clock.monotonic()
  /** Wake-ups before this time share the look after it. */
  let restUntil = 0
  let pollAt = 0
  let timer: unknown
  /** The times of the next looks, in steps of REST_MS, so there are never many. */
  const wakeUps = new Set<number>()

  function lookAt(time: number) {
    // A poll comes first, and retries that are hours ahead must not pile up here.
    if (time > clock.monotonic() + 2 * pollMs) return
    const step = Math.ceil(Math.max(time, restUntil) / REST_MS) * REST_MS
    // A flood of wake-ups asks for the same look again and again.
    if (wakeUps.has(step) && timer !== undefined) return
    wakeUps.add(step)
    arm()
  }

  function arm() {
    if (state !== 'started' || looking) return
    clock.clearTimeout(timer)
    timer = clock.setTimeout(look, Math.max(0, Math.min(pollAt, ...wakeUps) - clock.monotonic()))
  }

  function look() {
    clock.clearTimeout(timer)
    timer = undefined
    if (state !== 'started' || looking) return
    isSlotFreed = false
    const now = clock.monotonic()
    for (const time of wakeUps) if (time <= now) wakeUps.delete(time)
    looking = takeAll()
      .catch(onError)
      .finally(() => {
        looking = undefined
        restUntil = clock.monotonic() + REST_MS
        pollAt = clock.monotonic() + spread(pollMs, 0.2)
        if (isSlotFreed) slotFreed()
        arm()
      })
  }

  async function takeAll() {
    lookedAt = clock.monotonic()
    while (state === 'started') {
      let waiting = 0
      for (const { item } of running.values()) if (isWaiting(item)) waiting++
      const extra = ahead()
      const free = concurrency + extra - (running.size - Math.min(waiting, maxWaiting))
      // Items leased ahead are filled up in one claim, when half of them are missing.
      if (free <= extra / 2) return
      const askedAt = clock.monotonic()
      const items = await claim(free)
      if (items.length > 0) begin(items, askedAt + leaseMs)
      isExhausted = isExhaustive && items.length < free
      if (items.length === 0 || isExhausted) return
    }
  }

  /** Runs the items of one claim. */
  function begin(items: readonly Item[], heldUntil: number) {
    const leases = createClaimLeases({ heldUntil, leaseMs, renewEveryMs, clock })
    for (const item of items) {
      const controller = new AbortController()
      const lease = leases.add({ renew: () => renew(item), onLost: () => controller.abort() })
      const done = run(item, controller.signal)
        .catch(onError)
        .finally(() => {
          lease.end()
          leave()
          slotFreed()
        })
      const leave = running.add({ item, controller, done })
    }
  }

  /** Looks without a rest if due items may wait for the slot. */
  function slotFreed() {
    if (looking) isSlotFreed = true
    else if (isExhausted) lookAt(clock.monotonic())
    else look()
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      look()
    },

    slotFreed,

    wake: (inMs = 0) => lookAt(clock.monotonic() + inMs),

    async close(graceMs) {
      state = 'closed'
      clock.clearTimeout(timer)
      await endWithin(graceMs)
      if (running.size === 0) return
      for (const { controller } of running.values()) controller.abort()
      // An item that ignores its signal is left behind. Its lease runs out, and somebody else takes it.
      await endWithin(Math.min(graceMs, SECOND))
    },

    lookedAt: () => lookedAt,
    items: () => running.values().map(({ item }) => item),
  }

  /** Resolves when no item runs any more, or after `ms`. */
  function endWithin(ms: number): Promise<void> {
    const ended = new AbortController()
    // A claim under way may still begin items.
    Promise.resolve(looking)
      .then(() => Promise.all(running.values().map(({ done }) => done)))
      .then(() => ended.abort())
    return sleep(ms, clock, ended.signal)
  }
}
