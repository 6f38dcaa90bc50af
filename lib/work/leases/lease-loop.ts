import { spread } from '../../base/backoff.js'
import { type Clock, SECOND } from '../../base/clock.js'
import { endsWithin } from '../../base/waiting.js'
import { createRunningItems, type RunningItemsOptions, type RunningLease } from './lease.js'
import { createSlots, type SlotsOptions } from './slots.js'

export interface LeaseLoop<Item> {
  start(): void
  /** Looks for work now, or after `inMs`. */
  wake(inMs?: number): void
  /** Claims nothing until `resume`. Resolves when no item runs. */
  halt(): Promise<void>
  resume(): void
  /** Runs an item that was claimed while the loop is halted, with a lease until `heldUntil`. Resolves when this item has ended. */
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
  const running = createRunningItems<Item>({
    ...options,
    run: runInSlot,
    onEnd: slotFreed,
    // The store may be closed when an item ends that was left behind.
    onError: (error) => isOver || onError(error),
  })
  const times = createLookTimes({ pollMs, clock, look })
  let state: 'new' | 'started' | 'closed' = 'new'
  let looking: Promise<void> | undefined
  let isHalted = false
  /** It is closed, and nobody waits for its items any more. */
  let isOver = false
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
      const ends = running.begin([item], heldUntil)
      // Closed during the claim: it returns the item.
      if (state === 'closed') running.abort()
      return Promise.all(ends).then(() => {})
    },

    wake: (inMs = 0) => times.wakeAt(clock.monotonic() + inMs),

    async close(graceMs) {
      state = 'closed'
      times.end()
      slots.close()
      await endWithin(graceMs)
      if (running.size() > 0) {
        running.abort()
        // An item that ignores its signal is left behind. Its lease runs out, and somebody else takes it.
        await endWithin(Math.min(graceMs, SECOND))
      }
      isOver = true
    },

    lookedAt: () => lookedAt,
    items: running.items,
  }

  /** Resolves when no item runs any more, or after `ms`. */
  function endWithin(ms: number): Promise<boolean> {
    // A claim under way may still begin items.
    const ended = Promise.resolve(looking).then(() => running.ended())
    return endsWithin(ended, ms, clock)
  }
}

/** Wake-ups within this time after a look share the next one: a look costs some queries, a flood of wake-ups none. */
const REST_MS = 10
/** After a look that found no work the rest is as many times as long as the look: most deliveries make no work due. */
const RESTS_PER_LOOK = 10
const MAX_REST_MS = 100
/** The time of a wake-up that is due already. */
const NOW = Number.NEGATIVE_INFINITY

/** When a loop looks for work: at its wake-ups, and after `pollMs` without one. All times are monotonic. */
function createLookTimes(options: { pollMs: number; clock: Clock; look(): void }) {
  const { pollMs, clock, look } = options
  /** False before the first look, during a look, and after the end. */
  let isResting = false
  /** Wake-ups before this time share the look after it. */
  let restUntil = 0
  let pollAt = 0
  let beganAt = 0
  let timer: unknown
  let hasEnded = false
  /** The times of the next looks: `NOW`, and steps of REST_MS, so there are never many. */
  const wakeUps = new Set<number>()

  function arm() {
    if (!isResting) return
    clock.clearTimeout(timer)
    const lookAt = Math.max(restUntil, Math.min(pollAt, ...wakeUps))
    timer = clock.setTimeout(look, Math.max(0, lookAt - clock.monotonic()))
  }

  return {
    /** Looks at this time, or a little later if a look has just ended. */
    wakeAt(time: number) {
      const now = clock.monotonic()
      // A poll comes first, and retries that are hours ahead must not pile up here.
      if (time > now + 2 * pollMs) return
      const step = time <= now ? NOW : Math.ceil(time / REST_MS) * REST_MS
      // A flood of wake-ups asks for the same look again and again.
      if (wakeUps.has(step) && timer !== undefined) return
      wakeUps.add(step)
      arm()
    },

    /** A look begins, which serves all wake-ups up to now. */
    lookBegins() {
      isResting = false
      clock.clearTimeout(timer)
      timer = undefined
      const now = clock.monotonic()
      beganAt = now
      for (const time of wakeUps) if (time <= now) wakeUps.delete(time)
    },

    /** A look has ended. `arm` follows, unless another look begins at once. */
    lookEnded(hasFound: boolean) {
      isResting = !hasEnded
      const now = clock.monotonic()
      const restMs = hasFound ? REST_MS : Math.min(MAX_REST_MS, RESTS_PER_LOOK * (now - beganAt))
      restUntil = now + Math.max(REST_MS, restMs)
      pollAt = now + spread(pollMs, 0.2)
    },

    arm,

    /** No look any more. */
    end() {
      hasEnded = true
      isResting = false
      clock.clearTimeout(timer)
    },
  }
}
