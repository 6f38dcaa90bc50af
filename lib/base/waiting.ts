import { type Clock, SECOND } from './clock.js'

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

/** Resolves when `promise` has ended, or after `ms`: with whether it has. The work behind it continues. */
export async function endsWithin(promise: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const ended = new AbortController()
  const end = () => ended.abort()
  promise.then(end, end)
  await sleep(ms, clock, ended.signal)
  return ended.signal.aborted
}

/** How often a caller checks for work that another process may have finished without a notification. */
const RECHECK_MS = SECOND / 4

/**
 * The pause between two looks at something that changes, in this process or another. `wait(ms)` resolves as soon as
 * `end()` is called (true), or after `ms`, at most `everyMs` (false).
 */
export function createRecheck(clock: Clock, everyMs = RECHECK_MS) {
  let end = () => {}
  return {
    end: () => end(),
    wait: (ms: number) =>
      new Promise<boolean>((resolve) => {
        const timer = clock.setTimeout(() => resolve(false), Math.min(ms, everyMs))
        end = () => {
          clock.clearTimeout(timer)
          resolve(true)
        }
      }),
  }
}

/** The result of `promise`, or after `ms` a rejection with what `onLate` returns. The work behind it continues. */
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
 * The work behind it continues for other callers, and its later result is dropped.
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  let onAbort = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(new DOMException('the caller no longer waits', 'AbortError'))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Gives the event loop of the app its turn between two slices of work. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Whether the result of a function of the app is a promise, also one of another library. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/** The longest slice of background work. Timers and requests of the app wait no longer than this. */
const SLICE_MS = 5

export interface Slices {
  /**
   * Nothing to wait for while the present slice lasts. After it a promise that resolves in the next turn of the event
   * loop, where the next slice begins.
   */
  yieldIfOver(): Promise<void> | undefined
}

/**
 * Divides work into small slices. Work whose promises resolve at once never leaves the microtask queue and blocks the
 * process, so it awaits `yieldIfOver()` between its steps. A slice begins with the first step in a turn of the event loop.
 */
export function createSlices(clock: Pick<Clock, 'monotonic'>): Slices {
  let beganAt: number | undefined
  let nextSlice: Promise<void> | undefined

  return {
    yieldIfOver() {
      const now = clock.monotonic()
      if (beganAt !== undefined) return now - beganAt > SLICE_MS ? nextSlice : undefined
      beganAt = now
      nextSlice = nextTurn().then(() => {
        beganAt = undefined
      })
      return undefined
    },
  }
}
