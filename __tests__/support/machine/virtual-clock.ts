import { type Clock, MINUTE, SECOND } from '../../../lib/base/clock.js'

const LOOK_ON_MS = 3 * SECOND
/** How often, and for how long, real work is waited for when no timer is left. */
const REAL_WAITS = 3_000
const REAL_WAIT_MS = 10

/**
 * A clock that stands still until `advance`, which runs the timers one by one, each at its own time. Everything that a
 * timer starts comes to rest before the next timer fires, so real work takes no virtual time, and a run is the same
 * every time.
 *
 * With `dozeMs` the clock jumps by up to that when nothing is under way, but never past a timer of the world, so a month
 * takes seconds although the package polls every second. The timers of processes in between fire late, as on a machine
 * that slept.
 */
export function createVirtualClock(
  options: {
    startAt?: number
    /** What a monotonic clock shows at the start. A value far from the wall clock's reveals code that mixes the two. */
    bootedAt?: number
    /** Whether real work is under way, beside that of `standStillFor`. */
    isBusy?(): boolean
    /** Work may be passed from one turn of the event loop to the next: it has ended after this many quiet turns. */
    quietTurns?: number
    dozeMs?: number | undefined
    /**
     * After an event that a caller attends, a jump is at most this part of the time since, but at least `leastMs`. So
     * retries are late by that.
     */
    attentive?: { part: number; leastMs: number }
  } = {},
) {
  const { startAt = Date.UTC(2030, 0, 1), bootedAt = startAt, isBusy = () => false } = options
  const { quietTurns = 3, dozeMs, attentive = { part: 0.2, leastMs: 5 * SECOND } } = options
  const ofWorld = createTimers()
  const ofProcesses = createTimers()
  let passed = 0
  let order = 0
  /** How far the wall clock of the processes' machine has been set forward or back. */
  let leapt = 0
  let underWay = 0
  let realCalls = 0
  let closelyUntil = 0
  let attended = { from: 0, until: 0 }
  /** How long that machine was suspended in all, and since when it is now. */
  let slept = 0
  let asleepSince: number | undefined

  function add(timers: Timers, delayMs: number, run: () => void): Timer {
    const timer = { at: passed + Math.max(0, Math.ceil(delayMs)), order: order++, run }
    timers.add(timer)
    return timer
  }

  async function rest(): Promise<void> {
    for (let quiet = 0; quiet < quietTurns; quiet++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (realCalls > 0 || isBusy()) quiet = -1
    }
  }

  /** The timers that hold the next one, if it is due by `end`. */
  function next(end: number): Timers | undefined {
    const [own, others] = [ofWorld.first(), ofProcesses.first()]
    const timers = own && (!others || isBefore(own, others)) ? ofWorld : ofProcesses
    return (timers.first()?.at ?? Number.POSITIVE_INFINITY) <= end ? timers : undefined
  }

  async function fire(timer: Timer): Promise<void> {
    passed = Math.max(passed, timer.at)
    const { run } = timer
    timer.run = undefined
    if (!run) return
    run()
    await rest()
  }

  const fireFirst = (timers: Timers) => fire(timers.take() as Timer)

  /** Advances to `until`. All timers of processes that were due by then fire at that time, each once. */
  async function doze(until: number) {
    passed = until
    const due: Timer[] = []
    for (let first = ofProcesses.first(); first && first.at <= until; first = ofProcesses.first())
      due.push(ofProcesses.take() as Timer)
    for (const timer of due) await fire(timer)
  }

  function longestDoze(longest: number): number {
    if (passed >= attended.until) return longest
    return Math.max(attentive.leastMs, (passed - attended.from) * attentive.part)
  }

  async function advance(ms: number): Promise<void> {
    const end = passed + ms
    await rest()
    for (let timers = next(end); timers; timers = next(end)) {
      if (timers === ofWorld || dozeMs === undefined || underWay > 0 || passed < closelyUntil) {
        await fireFirst(timers)
        continue
      }
      const wakeAt = Math.min(end, ofWorld.first()?.at ?? end, passed + longestDoze(dozeMs))
      await doze(Math.max((timers.first() as Timer).at, wakeAt))
    }
    passed = Math.max(passed, end)
  }

  return {
    /** The true date, which everybody but the processes' machine has. */
    now: () => startAt + passed,
    /** The time since the start. */
    passed: () => passed,
    after: (delayMs: number, run: () => void) => add(ofWorld, delayMs, run),
    sleep: (ms: number) => new Promise<void>((resolve) => void add(ofWorld, ms, resolve)),
    rest,
    advance,
    /** How long until the next timer of a process; null without one. */
    nextInMs() {
      const first = ofProcesses.first()
      return first ? first.at - passed : null
    },

    /** Counts the call of a database or a server as real work until it settles: meanwhile time stands still. */
    async standStillFor<T>(call: Promise<T>): Promise<T> {
      realCalls++
      try {
        return await call
      } finally {
        realCalls--
      }
    },

    /** Counts `work` as under way until it settles: meanwhile the clock does not doze. */
    async follow<T>(work: Promise<T>): Promise<T> {
      underWay++
      try {
        return await work
      } finally {
        underWay--
      }
    },

    /** Advances the time until `work` settles. */
    async until<T>(work: Promise<T>, limitMs = 10 * MINUTE): Promise<T> {
      let isSettled = false
      const settle = () => {
        isSettled = true
      }
      work.then(settle, settle)
      const end = passed + limitMs
      await rest()
      // Without a timer only real work is under way, of which `isBusy` may not know, such as that of a thread that starts.
      for (let waited = 0; !isSettled; ) {
        const timers = next(end)
        if (timers) await fireFirst(timers)
        else if (waited++ > REAL_WAITS) throw new Error(`a call did not end within ${limitMs} ms`)
        else await new Promise((resolve) => setTimeout(resolve, REAL_WAIT_MS))
      }
      return work
    },

    /** Sets the wall clock of the processes' machine. */
    leap(ms: number) {
      leapt += ms
    },

    /** Goes from timer to timer for `ms`, because reactions are measured in seconds. */
    lookClosely(ms = 5 * SECOND) {
      closelyUntil = Math.max(closelyUntil, passed + ms)
    },

    /** From now on for `ms` the clock takes small jumps, because reactions are measured in minutes. */
    attend(ms: number) {
      attended = { from: passed, until: Math.max(attended.until, passed + ms) }
    },

    /** After a reaction of the app in an attended time: another one may follow within seconds. */
    lookOn() {
      if (passed < attended.until) closelyUntil = Math.max(closelyUntil, passed + LOOK_ON_MS)
    },

    /** Suspends the machine for `ms`: the wall clock goes on, the monotonic one stands still, and no timer of a process fires. */
    async suspend(ms: number) {
      const end = passed + ms
      await rest()
      asleepSince = passed
      for (let first = ofWorld.first(); first && first.at <= end; first = ofWorld.first())
        await fireFirst(ofWorld)
      passed = end
      ofProcesses.delay(ms)
      asleepSince = undefined
      slept += ms
    },
    isSuspended: () => asleepSince !== undefined,

    /** A clock for one process. `enter` decides when its callbacks run, and its wall clock is off by `skewMs`. */
    forProcess({
      skewMs = 0,
      enter = (run: () => void) => run(),
    } = {}): Clock & { kill(): void; revive(): void } {
      let isDead = false
      let life = 0
      return {
        now: () => startAt + passed + leapt + skewMs,
        monotonic: () => bootedAt + (asleepSince ?? passed) - slept,
        setTimeout(callback, delayMs) {
          if (isDead) return {}
          const own = life
          return add(ofProcesses, delayMs, () => own === life && enter(callback))
        },
        clearTimeout(handle) {
          if (handle) (handle as Timer).run = undefined
        },
        /** Ends all of its timers, as the end of the process does. */
        kill() {
          isDead = true
          life++
        },
        /** Lets a killed process set timers again: it is dead in its world, but the test still has to close it. */
        revive() {
          isDead = false
        },
      }
    },
  }
}

export type VirtualClock = ReturnType<typeof createVirtualClock>

/** `run` is undefined after the timer was cancelled. */
interface Timer {
  at: number
  order: number
  run: (() => void) | undefined
}

type Timers = ReturnType<typeof createTimers>

/** Timers in the order of their times, as a heap. */
function createTimers() {
  const heap: Timer[] = []

  function take(): Timer | undefined {
    const top = heap[0]
    const last = heap.pop()
    if (!last || heap.length === 0) return top
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timer, heap[child] as Timer)) child++
      const below = heap[child]
      if (!below || isBefore(last, below)) break
      heap[i] = below
      i = child
    }
    heap[i] = last
    return top
  }

  return {
    take,
    /** The next one that was not cancelled. */
    first(): Timer | undefined {
      while (heap[0] && !heap[0].run) take()
      return heap[0]
    },
    add(timer: Timer) {
      let i = heap.push(timer) - 1
      while (i > 0) {
        const parent = (i - 1) >> 1
        const above = heap[parent] as Timer
        if (isBefore(above, timer)) break
        heap[i] = above
        i = parent
      }
      heap[i] = timer
    },
    delay(ms: number) {
      for (const timer of heap) timer.at += ms
    },
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
