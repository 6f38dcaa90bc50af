import { spread } from '../../base/backoff.js'
import type { Clock } from '../../base/clock.js'

/** Wake-ups within this time after a look share the next one: a look costs some queries, a flood of wake-ups none. */
const REST_MS = 10
/** After a look that found no work the rest is as many times as long as the look: most deliveries make no work due. */
const RESTS_PER_LOOK = 10
const MAX_REST_MS = 100
/** The time of a wake-up that is due already. */
const NOW = Number.NEGATIVE_INFINITY

/** When a loop looks for work: at its wake-ups, and after `pollMs` without one. All times are monotonic. */
export function createLookTimes(options: { pollMs: number; clock: Clock; look(): void }) {
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
