import type { Clock } from './clock.js'
import { createLine } from './line.js'

/** Resolves after `ms`, or as soon as `signal` aborts. */
export function sleep(ms: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      clock.clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}

/** The result of `promise`, or after `ms` a rejection with what `onLate` returns. The work behind it goes on. */
export async function withDeadline<T>(
  promise: Promise<T>,
  ms: number,
  clock: Clock,
  onLate: () => unknown,
): Promise<T> {
  let timer: unknown
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimeout(() => reject(onLate()), ms)
  })
  return Promise.race([promise, late]).finally(() => clock.clearTimeout(timer))
}

/**
 * The result of `promise`, or a rejection as soon as `signal` aborts, even if the promise itself ignores the signal.
 * The work behind it goes on for other callers; its later result is dropped.
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  let onAbort = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(new DOMException('given up', 'AbortError'))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Deadlines that are all the same time ahead, behind one timer: most work ends long before its own, and a timer for
 * each costs more than the rest of a short call.
 */
export function createDeadlines(ms: number, clock: Clock) {
  const waiting = createLine<{ at: number; onLate(): void; end(): void }>()
  let timer: unknown

  function arm() {
    const next = waiting.first()
    timer = next && clock.setTimeout(run, Math.max(0, next.at - clock.monotonic()))
  }

  function run() {
    timer = undefined
    const now = clock.monotonic()
    for (let next = waiting.first(); next && next.at <= now; next = waiting.first()) {
      next.end()
      next.onLate()
    }
    arm()
  }

  return {
    /** Calls `onLate` after `ms`; returns a function that calls it off. */
    set(onLate: () => void): () => void {
      const deadline = { at: clock.monotonic() + ms, onLate, end() {} }
      deadline.end = waiting.add(deadline)
      if (timer === undefined) arm()
      return deadline.end
    },
    /** Lets go of the timer while no deadline is open: until then it stays armed, since the next call is likely soon. */
    rest() {
      if (waiting.first()) return
      clock.clearTimeout(timer)
      timer = undefined
    },
  }
}

/** Between two slices of work the app's event loop has its turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
