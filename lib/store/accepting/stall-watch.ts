import { type Clock, SECOND } from '../../base/clock.js'

/** A commit takes less, unless the store does not answer. */
const STALLED_MS = SECOND
const STEPS = 10

/**
 * Tells whether nothing was committed for a second although something waits for it. The second passes in steps, each in a
 * turn of the event loop of its own. So a flood that keeps the event loop busy, which delays the end of a commit, does not
 * look like a store that does not answer.
 */
export function createStallWatch(clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>) {
  let steps = 0
  let timer: unknown

  function takeStep() {
    steps++
    timer = clock.setTimeout(takeStep, STALLED_MS / STEPS)
  }

  return {
    /** Something waits for a commit. */
    begin() {
      timer ??= clock.setTimeout(takeStep, STALLED_MS / STEPS)
    },
    committed() {
      steps = 0
    },
    /** Nothing waits. */
    end() {
      clock.clearTimeout(timer)
      timer = undefined
      steps = 0
    },
    isStalled: () => steps >= STEPS,
  }
}
