import { type Clock, createAgingTime, SECOND } from '../../base/clock.js'
import { type HealthProblem, problemOf } from '../../base/health.js'
import type { ReadResult } from '../../platform/read-result.js'

/** Pauses all reads after a rate limit or refused credentials, because every other read would get the same reply. */
export function createReadPause(clock: Clock) {
  const age = createAgingTime(clock)
  let until = Number.NEGATIVE_INFINITY
  let why: HealthProblem | undefined
  /** Until a read gets another answer: the next one may follow hours after the pause. */
  let areCredentialsRefused = false

  const isOn = () => age() < until

  return {
    isOn,

    after(result: ReadResult) {
      if (result.kind !== 'outage') areCredentialsRefused = result.kind === 'credentials_refused'
      const forMs = pauseMs(result)
      if (forMs === 0) return
      until = Math.max(until, age() + forMs)
      why =
        result.kind === 'throttled'
          ? problemOf('reads_throttled', 'reads are paused: the platform limits our rate')
          : problemOf('credentials_refused', "the platform refuses the app's credentials")
    },

    problems: (): HealthProblem[] => (why && (isOn() || areCredentialsRefused) ? [why] : []),
  }
}

function pauseMs(result: ReadResult): number {
  if (result.kind === 'throttled') return result.retryAfterMs ?? SECOND
  return result.kind === 'credentials_refused' ? 10 * SECOND : 0
}
