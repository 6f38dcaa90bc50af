import type { Clock } from '../../../lib/clock.js'

/**
 * The time of a simulated world. It stands still until `advance`, then jumps from one timer to the next. Everything
 * that a timer starts comes to rest before the next timer fires, so a run is the same every time.
 */
export function createTime(options: { startAt?: number; isBusy(): boolean }) {
  const { startAt = Date.UTC(2030, 0, 1), isBusy } = options
  const heap: Due[] = []
  let now = startAt
  let count = 0

  function at(time: number, run: () => void): Due {
    const due: Due = { at: Math.max(now, Math.ceil(time)), order: count++, run }
    push(heap, due)
    return due
  }

  async function rest(): Promise<void> {
    // All work of the package is microtasks here, but a group commit begins in the next turn of the event loop.
    do await new Promise(setImmediate)
    while (isBusy())
  }

  return {
    now: () => now,
    after: (delayMs: number, run: () => void): Due => at(now + Math.max(0, delayMs), run),
    sleep: (ms: number): Promise<void> => new Promise((resolve) => void at(now + ms, resolve)),
    rest,

    async advance(ms: number): Promise<void> {
      const end = now + ms
      await rest()
      for (let next = heap[0]; next && next.at <= end; next = heap[0]) {
        pop(heap)
        if (!next.run) continue
        now = next.at
        next.run()
        await rest()
      }
      now = end
    },
  }
}

export type Time = ReturnType<typeof createTime>

/** `run` is undefined after the timer was cancelled. */
export interface Due {
  at: number
  order: number
  run: (() => void) | undefined
}

/** The clock of one process: it is off by `skewMs`, and `enter` decides when its callbacks run. */
export function clockOf(time: Time, skewMs: number, enter: (run: () => void) => void): Clock {
  return {
    now: () => time.now() + skewMs,
    monotonic: () => time.now(),
    setTimeout: (callback, delayMs) => time.after(delayMs, () => enter(callback)),
    clearTimeout(handle) {
      if (handle) (handle as Due).run = undefined
    },
  }
}

function isBefore(a: Due, b: Due): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

function push(heap: Due[], due: Due) {
  let i = heap.length
  while (i > 0) {
    const parent = (i - 1) >> 1
    const above = heap[parent] as Due
    if (isBefore(above, due)) break
    heap[i] = above
    i = parent
  }
  heap[i] = due
}

function pop(heap: Due[]) {
  const last = heap.pop() as Due
  if (heap.length === 0) return
  let i = 0
  for (;;) {
    let child = 2 * i + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Due, heap[child] as Due)) child++
    if (isBefore(last, heap[child] as Due)) break
    heap[i] = heap[child] as Due
    i = child
  }
  heap[i] = last
}
