import { SECOND } from '../../base/clock.js'
import { sleep } from '../../base/waiting.js'
import { createRunningItems, type RunningItemsOptions, type RunningLease } from './lease.js'
import { createLookTimes } from './look-times.js'
import { createSlots, type SlotsOptions } from './slots.js'

export interface LeaseLoop<Item> {
  start(): void
  /** Looks for work now, or after `inMs`. */
  wake(inMs?: number): void
  /** Claims nothing until `resume`. Resolves when no item runs. */
  halt(): Promise<void>
  resume(): void
  /** Runs an item that was claimed while the loop is halted, with a lease until `heldUntil`. Resolves when it has ended. */
  runAlone(item: Item, heldUntil: number): Promise<void>
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

/** What an item runs with that has a slot. */
export interface RunInSlot extends RunningLease {
  /** Passes the slot on while the item is being written. */
  leaveSlot(): void
}

interface LeaseLoopOptions<Item>
  extends Omit<RunningItemsOptions<Item>, 'run'>,
    Omit<SlotsOptions<Item>, 'clock'> {
  /**
   * Leases up to `limit` items. `others` are the leased ones that have a slot or wait for one. `isAll`: no other item was
   * due, so the next look may rest.
   */
  claim(limit: number, others: readonly Item[]): Promise<{ items: Item[]; isAll: boolean }>
  /** Runs an item that has a slot. */
  run(item: Item, lease: RunInSlot): Promise<void>
  /** Returns an item that has got no slot. */
  giveBack(item: Item, lease: RunningLease): Promise<void>
  pollMs: number
}

/**
 * Leases items and runs them, at most `concurrency` at once: the one loop behind reading and handling. docs/states.md has
 * its states. All times are monotonic: setting the wall clock neither ends a lease nor delays a look.
 */
export function createLeaseLoop<Item>(options: LeaseLoopOptions<Item>): LeaseLoop<Item> {
  const { claim, run, giveBack, leaseMs, pollMs, clock, onError } = options
  const slots = createSlots<Item>(options)
  const running = createRunningItems<Item>({ ...options, run: runInSlot, onEnd: slotFreed })
  const times = createLookTimes({ pollMs, clock, look })
  let state: 'new' | 'started' | 'closed' = 'new'
  let looking: Promise<void> | undefined
  let isHalted = false
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
    while (state === 'started' && !isHalted) {
      const free = slots.room()
      if (free === 0) return
      const askedAt = clock.monotonic()
      const { items, isAll } = await claim(free, slots.taken())
      slots.claimTook(clock.monotonic() - askedAt)
      if (items.length > 0) {
        hasFound = true
        running.begin(items, askedAt + leaseMs)
      }
      isExhausted = isAll
      if (items.length === 0 || isAll) return
    }
  }

  async function runInSlot(item: Item, lease: RunningLease) {
    const slot = await slots.take(item, lease.signal)
    if (!slot) return giveBack(item, lease)
    const leaveSlot = () => {
      slot.leave()
      // Otherwise an item leased ahead has got the slot, and its work goes before the next claim.
      if (!slots.areWaitedFor()) slotFreed()
    }
    try {
      await run(item, { ...lease, leaveSlot })
    } finally {
      slot.end()
    }
  }

  /** Looks without a rest if due items may wait for the slot. */
  function slotFreed() {
    if (looking) isSlotFreed = true
    else if (slots.room() === 0) return
    else if (isExhausted) times.wakeAt(clock.monotonic())
    else look()
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      look()
    },

    async halt() {
      isHalted = true
      await looking
      await running.ended()
    },

    resume() {
      isHalted = false
      times.wakeAt(clock.monotonic())
    },

    runAlone(item, heldUntil) {
      running.begin([item], heldUntil)
      // Closed during the claim: it returns the item.
      if (state === 'closed') running.abort()
      return running.ended().then(() => {})
    },

    wake: (inMs = 0) => times.wakeAt(clock.monotonic() + inMs),

    async close(graceMs) {
      state = 'closed'
      times.end()
      slots.close()
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
