import { type Clock, SECOND, spread } from '../schedule.js'

export interface LeaseLoop {
  start(): void
  /** Looks for work now, or after `inMs`. */
  wake(inMs?: number): void
  /** Stops claiming, lets what runs finish for `graceMs`, then aborts it; resolves when all of it has ended or let go. */
  close(graceMs: number): Promise<void>
  /** When the loop last looked for work; a loop that has not for long is stuck. */
  lookedAt(): number
  running(): number
}

/** Wake-ups during this time after a look share the next one: a look costs some queries, a flood of wake-ups none. */
const REST_MS = 10

/**
 * Takes leased items and runs them, at most `concurrency` at once: the one loop behind reading and handling.
 * It looks when woken, when an item ends, and every `pollMs` whatever else fails to wake it.
 * A lease is renewed while its item runs; when the renewal finds it lost, the item's signal is aborted.
 */
export function createLeaseLoop<Item>(options: {
  concurrency: number
  /** Leases up to `limit` items; fewer than asked means: no more for now. */
  claim(limit: number): Promise<Item[]>
  /** Never rejects for what the item is about; what it throws goes to `onError`. */
  run(item: Item, signal: AbortSignal): Promise<void>
  renew(item: Item): Promise<boolean>
  renewEveryMs: number
  pollMs: number
  clock: Clock
  onError(error: unknown): void
}): LeaseLoop {
  const { concurrency, claim, run, renew, renewEveryMs, pollMs, clock, onError } = options
  const running = new Map<AbortController, Promise<void>>()
  let state: 'new' | 'started' | 'closed' = 'new'
  let turn: Promise<void> | undefined
  let lookedAt = clock.now()
  let restUntil = 0
  let timer: unknown
  // When to look next, in steps of REST_MS, so that there are never many.
  const wanted = new Set<number>()

  function lookAt(time: number) {
    const slot = Math.ceil(Math.max(time, restUntil) / REST_MS) * REST_MS
    // A flood of wake-ups asks for the same look again and again.
    if (wanted.has(slot) && timer !== undefined) return
    wanted.add(slot)
    arm()
  }

  function arm() {
    if (state !== 'started' || turn) return
    clock.clearTimeout(timer)
    timer = clock.setTimeout(look, Math.max(0, Math.min(...wanted) - clock.now()))
  }

  function look() {
    clock.clearTimeout(timer)
    timer = undefined
    if (state !== 'started' || turn) return
    const now = clock.now()
    for (const time of wanted) if (time <= now) wanted.delete(time)
    turn = takeAll()
      .catch(onError)
      .finally(() => {
        turn = undefined
        restUntil = clock.now() + REST_MS
        lookAt(clock.now() + spread(pollMs, 0.2))
      })
  }

  async function takeAll() {
    lookedAt = clock.now()
    while (state === 'started' && running.size < concurrency) {
      const items = await claim(concurrency - running.size)
      for (const item of items) begin(item)
      if (items.length === 0) return
    }
  }

  function begin(item: Item) {
    const controller = new AbortController()
    let renewal: unknown
    const renewLater = () => {
      renewal = clock.setTimeout(async () => {
        // A renewal that could not be asked for is tried again; the lease's end decides.
        const held = await renew(item).catch(() => true)
        if (!held) controller.abort()
        else if (running.has(controller)) renewLater()
      }, renewEveryMs)
    }
    renewLater()
    const done = run(item, controller.signal)
      .catch(onError)
      .finally(() => {
        clock.clearTimeout(renewal)
        running.delete(controller)
        // Without a rest: a slot is free, and what is waiting for it has waited.
        if (turn) lookAt(clock.now())
        else look()
      })
    running.set(controller, done)
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      look()
    },

    wake: (inMs = 0) => lookAt(clock.now() + inMs),

    async close(graceMs) {
      state = 'closed'
      clock.clearTimeout(timer)
      await turn
      await endWithin(graceMs)
      if (running.size === 0) return
      for (const controller of running.keys()) controller.abort()
      // Whatever ignores its signal is left behind: its lease runs out and somebody else takes the item.
      await endWithin(Math.min(graceMs, SECOND))
    },

    lookedAt: () => lookedAt,
    running: () => running.size,
  }

  /** Resolves when nothing runs any more, or the time is up. Keeps the process alive that long and no longer. */
  function endWithin(ms: number) {
    return new Promise<void>((resolve) => {
      const timer = clock.setTimeout(resolve, ms, true)
      Promise.all(running.values()).then(() => {
        clock.clearTimeout(timer)
        resolve()
      })
    })
  }
}
