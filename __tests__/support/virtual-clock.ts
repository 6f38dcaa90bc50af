import type { Clock } from '../../lib/clock.js'

interface Timer {
  at: number
  callback: () => void
  owner: object
}

/**
 * A clock that stands still until `advance`, which runs the timers one by one, each at its own time. Everything that a
 * timer starts comes to rest before the next timer fires, so real work takes no virtual time.
 */
export function createVirtualClock(options: {
  startAt?: number
  /** Whether real work (a query, a reply) is under way. */
  isBusy(): boolean
}) {
  const { startAt = Date.UTC(2030, 0, 1), isBusy } = options
  const timers = new Map<object, Timer>()
  let now = startAt

  async function rest(): Promise<void> {
    // Work may be passed from one turn of the event loop to the next, so one quiet turn does not mean that all work
    // has ended.
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (isBusy()) quiet = -1
    }
  }

  function nextBefore(end: number): [object, Timer] | undefined {
    let next: [object, Timer] | undefined
    for (const entry of timers) if (entry[1].at <= end && (!next || entry[1].at < next[1].at)) next = entry
    return next
  }

  return {
    now: () => now,

    /** A clock for one process: `kill` removes all of its timers at once, as the end of the process does. */
    forProcess(): Clock & { kill(): void } {
      const owner = {}
      let isKilled = false
      return {
        now: () => now,
        monotonic: () => now,
        setTimeout(callback, delayMs) {
          const handle = {}
          if (!isKilled) timers.set(handle, { at: now + Math.max(0, Math.ceil(delayMs)), callback, owner })
          return handle
        },
        clearTimeout: (handle) => void timers.delete(handle as object),
        kill() {
          isKilled = true
          for (const [handle, timer] of timers) if (timer.owner === owner) timers.delete(handle)
        },
      }
    },

    rest,

    async advance(ms: number): Promise<void> {
      const end = now + ms
      await rest()
      for (let next = nextBefore(end); next; next = nextBefore(end)) {
        const [handle, { at, callback }] = next
        timers.delete(handle)
        now = Math.max(now, at)
        callback()
        await rest()
      }
      now = end
    },
  }
}

export type VirtualClock = ReturnType<typeof createVirtualClock>

const QUIET_TURNS = 3
