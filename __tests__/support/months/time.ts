import { DAY, MINUTE, SECOND } from './durations.js'

/**
 * The longest jump of the clock when no work is under way. The timers in between fire late, as on a machine that slept.
 */
const DOZE_MS = 30 * MINUTE
/** After an event that a caller attends, a jump is at most this part of the time since. So retries are late by that. */
const ATTENTIVE_PART = 0.2
const ATTENTIVE_LEAST_MS = 5 * SECOND
const LOOK_ON_MS = 3 * SECOND
/** How often, and for how long, real work is waited for when nothing else is under way. */
const REAL_WAITS = 3_000
const REAL_WAIT_MS = 10
/** A monotonic clock starts at any value. A value far from the wall clock's reveals code that mixes the two. */
const BOOTED_MS = 12 * DAY

interface Timer {
  at: number
  order: number
  run(): void
  isOfApp: boolean
}

export type Time = ReturnType<typeof createTime>

/**
 * The time of a world. It stands still while real work is under way, and goes from timer to timer while simulated work
 * is under way. Otherwise it dozes: it jumps by up to `DOZE_MS`, but never past an event of the world. So a month takes
 * seconds, although the package polls every second.
 */
export function createTime(options: { isBusy(): boolean; dozeMs?: number }) {
  const { isBusy, dozeMs = DOZE_MS } = options
  const startedAt = Date.UTC(2030, 0, 1)
  const timers = new Set<Timer>()
  let passed = 0
  /** How far the wall clock has been set forward or back. */
  let leapt = 0
  let order = 0
  let underWay = 0
  let closelyUntil = 0
  let attended = { from: 0, until: 0 }
  /** How long the machine was suspended in all, and since when it is now. */
  let slept = 0
  let asleepSince: number | undefined

  function add(delayMs: number, run: () => void, isOfApp: boolean): Timer {
    const timer = { at: passed + Math.max(0, Math.ceil(delayMs)), order: order++, run, isOfApp }
    timers.add(timer)
    return timer
  }

  async function rest(): Promise<void> {
    for (let quiet = 0; quiet < 2; quiet++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (isBusy()) quiet = -1
    }
  }

  function next(until: number, isWanted: (timer: Timer) => boolean = () => true): Timer | undefined {
    let first: Timer | undefined
    for (const timer of timers) {
      if (timer.at > until || !isWanted(timer)) continue
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer
    }
    return first
  }

  async function fire(timer: Timer) {
    timers.delete(timer)
    passed = Math.max(passed, timer.at)
    timer.run()
    await rest()
  }

  /** Advances to `until`. All timers of the app that were due by then fire at that time, each once. */
  async function doze(until: number) {
    passed = until
    const due = [...timers].filter(({ at, isOfApp }) => isOfApp && at <= until)
    for (const timer of due.sort((a, b) => a.at - b.at || a.order - b.order)) {
      if (timers.has(timer)) await fire(timer)
    }
  }

  function longestDoze(): number {
    return passed < attended.until
      ? Math.max(ATTENTIVE_LEAST_MS, (passed - attended.from) * ATTENTIVE_PART)
      : dozeMs
  }

  async function advance(ms: number): Promise<void> {
    const end = passed + ms
    await rest()
    for (let timer = next(end); timer; timer = next(end)) {
      if (!timer.isOfApp || underWay > 0 || passed < closelyUntil) await fire(timer)
      else {
        const ofWorld = next(end, ({ isOfApp }) => !isOfApp)?.at ?? end
        await doze(Math.max(timer.at, Math.min(end, ofWorld, passed + longestDoze())))
      }
    }
    passed = Math.max(passed, end)
  }

  return {
    /** The time since the world began. */
    passed: () => passed,
    /** The true date, which everybody but the app's machine has. */
    date: () => startedAt + passed,
    /** Sets the wall clock of the app's machine. */
    leap(ms: number) {
      leapt += ms
    },
    after: (delayMs: number, run: () => void) => add(delayMs, run, false),
    sleep: (ms: number) => new Promise<void>((resolve) => void add(ms, resolve, false)),
    advance,
    rest,

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

    /**
     * Suspends the machine of the app for `ms`: the wall clock goes on, the monotonic one stands still, and no timer of
     * the app fires.
     */
    async suspend(ms: number) {
      const end = passed + ms
      await rest()
      asleepSince = passed
      for (let timer = next(end, ({ isOfApp }) => !isOfApp); timer; ) {
        await fire(timer)
        timer = next(end, ({ isOfApp }) => !isOfApp)
      }
      passed = end
      for (const timer of timers) if (timer.isOfApp) timer.at += ms
      asleepSince = undefined
      slept += ms
    },
    isSuspended: () => asleepSince !== undefined,

    /** Counts `work` as under way until it settles. */
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
      // Without a timer only real work is under way, of which the disk may not know, such as that of a thread that starts.
      for (let waited = 0; !isSettled; ) {
        const timer = next(end)
        if (timer) await fire(timer)
        else if (waited++ > REAL_WAITS) throw new Error(`a call did not end within ${limitMs} ms`)
        else await new Promise((resolve) => setTimeout(resolve, REAL_WAIT_MS))
      }
      return work
    },

    /** The clock of one process. `kill` removes all of its timers, as the end of the process does. */
    clockOfProcess() {
      const own = new Set<Timer>()
      let isDead = false
      return {
        now: () => startedAt + passed + leapt,
        monotonic: () => BOOTED_MS + (asleepSince ?? passed) - slept,
        setTimeout(callback: () => void, delayMs: number): unknown {
          if (isDead) return {}
          const timer = add(
            delayMs,
            () => {
              own.delete(timer)
              callback()
            },
            true,
          )
          own.add(timer)
          return timer
        },
        clearTimeout(handle: unknown) {
          own.delete(handle as Timer)
          timers.delete(handle as Timer)
        },
        kill() {
          isDead = true
          for (const timer of own) timers.delete(timer)
        },
        /** Lets a killed process set timers again: it is dead in its world, but the test still has to close it. */
        revive() {
          isDead = false
        },
      }
    },
  }
}
