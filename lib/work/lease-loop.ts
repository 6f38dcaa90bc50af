import { spread } from '../backoff.js'
import { type Clock, SECOND } from '../clock.js'
import { createLine } from '../line.js'

export interface LeaseLoop<Item = unknown> {
  start(): void
  /** Looks for work now, or after `inMs`. */
  wake(inMs?: number): void
  /** A running item has begun to wait, so that its slot is free: looks without a rest. */
  slotFreed(): void
  /** Stops claiming, lets what runs finish for `graceMs`, then aborts it; resolves when all of it has ended or let go. */
  close(graceMs: number): Promise<void>
  /** When the loop last looked for work, by the monotonic clock; a loop that has not for long is stuck. */
  lookedAt(): number
  running(): number
  /** What runs now. */
  items(): Item[]
}

/** The lease of one item that runs. */
interface Lease {
  /** Counts on from `heldUntil`, unless it has ended. */
  keep(heldUntil: number, renewInMs: number): void
  end(): void
}

/** Wake-ups during this time after a look share the next one: a look costs some queries, a flood of wake-ups none. */
const REST_MS = 10

/** Each holds a lease, which is renewed while it waits. */
const MAX_WAITING = 250

/**
 * Takes leased items and runs them, at most `concurrency` at once: the one loop behind reading and handling.
 * It looks when woken, when an item ends, and every `pollMs` whatever else fails to wake it.
 * A lease is renewed while its item runs; when it is lost, or could not be renewed
 * until its end, the item's signal is aborted. All of it is measured by the monotonic clock: a wall clock that is set
 * neither ends a lease nor delays a look.
 */
export function createLeaseLoop<Item>(options: {
  concurrency: number
  /** Whether a running item only waits for something, and so takes no slot; at most `maxWaiting` do. */
  isWaiting?(item: Item): boolean
  maxWaiting?: number
  /** Leases up to `limit` items; fewer than asked means: no more for now. */
  claim(limit: number): Promise<Item[]>
  /** Never rejects for what the item is about; what it throws goes to `onError`. */
  run(item: Item, signal: AbortSignal): Promise<void>
  renew(item: Item): Promise<boolean>
  leaseMs: number
  renewEveryMs: number
  pollMs: number
  clock: Clock
  onError(error: unknown): void
}): LeaseLoop<Item> {
  const {
    concurrency,
    isWaiting = () => false,
    maxWaiting = MAX_WAITING,
    claim,
    run,
    renew,
    leaseMs,
    renewEveryMs,
    pollMs,
    clock,
    onError,
  } = options
  const running = createLine<{ item: Item; controller: AbortController; done: Promise<void> }>()
  let state: 'new' | 'started' | 'closed' = 'new'
  let turn: Promise<void> | undefined
  /** During the turn, which may have been past the look at its slots. */
  let isSlotFreed = false
  let lookedAt = clock.monotonic()
  let restUntil = 0
  let pollAt = 0
  let timer: unknown
  // When to look next, in steps of REST_MS, so that there are never many.
  const wanted = new Set<number>()

  function lookAt(time: number) {
    // A poll comes first; retries that are hours ahead must not pile up here.
    if (time > clock.monotonic() + 2 * pollMs) return
    const slot = Math.ceil(Math.max(time, restUntil) / REST_MS) * REST_MS
    // A flood of wake-ups asks for the same look again and again.
    if (wanted.has(slot) && timer !== undefined) return
    wanted.add(slot)
    arm()
  }

  function arm() {
    if (state !== 'started' || turn) return
    clock.clearTimeout(timer)
    timer = clock.setTimeout(look, Math.max(0, Math.min(pollAt, ...wanted) - clock.monotonic()))
  }

  function look() {
    clock.clearTimeout(timer)
    timer = undefined
    if (state !== 'started' || turn) return
    isSlotFreed = false
    const now = clock.monotonic()
    for (const time of wanted) if (time <= now) wanted.delete(time)
    turn = takeAll()
      .catch(onError)
      .finally(() => {
        turn = undefined
        restUntil = clock.monotonic() + REST_MS
        pollAt = clock.monotonic() + spread(pollMs, 0.2)
        if (isSlotFreed) look()
        else arm()
      })
  }

  async function takeAll() {
    lookedAt = clock.monotonic()
    while (state === 'started') {
      let waiting = 0
      for (const { item } of running.values()) if (isWaiting(item)) waiting++
      const free = concurrency - (running.size - Math.min(waiting, maxWaiting))
      if (free <= 0) return
      const askedAt = clock.monotonic()
      const items = await claim(free)
      if (items.length === 0) return
      begin(items, askedAt + leaseMs)
    }
  }

  /**
   * Runs what one claim leased. Until `heldUntil` nobody else can have it: a lease is counted from before it was asked
   * for. Most items end long before the first renewal: until then one timer stands for all of them.
   */
  function begin(items: readonly Item[], heldUntil: number) {
    const aheadMs = Math.min(renewEveryMs, heldUntil - clock.monotonic())
    const leases: Lease[] = []
    let left = items.length
    const timer = clock.setTimeout(
      () => {
        for (const lease of leases) lease.keep(heldUntil, renewEveryMs - aheadMs)
      },
      Math.max(0, aheadMs),
    )
    for (const item of items) {
      const controller = new AbortController()
      if (aheadMs <= 0) controller.abort()
      const lease = createLease(item, controller)
      leases.push(lease)
      const done = run(item, controller.signal)
        .catch(onError)
        .finally(() => {
          lease.end()
          if (--left === 0) clock.clearTimeout(timer)
          leave()
          slotFreed()
        })
      const leave = running.add({ item, controller, done })
    }
  }

  function createLease(item: Item, controller: AbortController): Lease {
    let lapse: unknown
    let renewal: unknown
    let isOver = false
    const abort = () => controller.abort()
    const holdUntil = (time: number) => {
      clock.clearTimeout(lapse)
      // The answer may have come so late that somebody else has it already.
      if (time <= clock.monotonic()) abort()
      else lapse = clock.setTimeout(abort, time - clock.monotonic())
    }
    const renewIn = (ms: number) => {
      renewal = clock.setTimeout(async () => {
        const askedAt = clock.monotonic()
        // A renewal that could not be asked for is tried again; the lease's end decides.
        const held = await renew(item).catch(() => undefined)
        if (isOver) return
        if (held === false) return abort()
        if (held) holdUntil(askedAt + leaseMs)
        renewIn(renewEveryMs)
      }, ms)
    }
    return {
      keep(heldUntil, renewInMs) {
        if (isOver) return
        holdUntil(heldUntil)
        renewIn(renewInMs)
      },
      end() {
        isOver = true
        clock.clearTimeout(renewal)
        clock.clearTimeout(lapse)
      },
    }
  }

  /** Without a rest: what is waiting for the slot has waited. */
  function slotFreed() {
    if (turn) isSlotFreed = true
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
      // Whatever ignores its signal is left behind: its lease runs out and somebody else takes the item.
      await endWithin(Math.min(graceMs, SECOND))
    },

    lookedAt: () => lookedAt,
    running: () => running.size,
    items: () => running.values().map(({ item }) => item),
  }

  /** Resolves when nothing runs any more, or the time is up. Keeps the process alive that long and no longer. */
  function endWithin(ms: number) {
    return new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, ms, true)
      // A claim under way may still begin something.
      Promise.resolve(turn)
        .then(() => Promise.all(running.values().map(({ done }) => done)))
        .then(() => {
          clock.clearTimeout(timer)
          resolve()
        })
    })
  }
}
