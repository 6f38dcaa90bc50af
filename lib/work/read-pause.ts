import { type Clock, SECOND } from '../clock.js'
import type { ReadResult } from '../platform/read-result.js'

/** Pauses all reads after a rate limit or refused credentials, because every other read would get the same reply. */
export function createReadPause(clock: Clock) {
  let until = Number.NEGATIVE_INFINITY
  let why = ''

  const isOn = () => clock.monotonic() < until

  return {
    isOn,

    after(result: ReadResult) {
      const forMs = pauseMs(result)
      if (forMs === 0) return
      until = Math.max(until, clock.monotonic() + forMs)
      why =
        result.kind === 'throttled'
          ? 'the platform limits our rate'
          : "the platform refuses the app's credentials"
    },

    problems: (): string[] => (isOn() ? [`reads are paused: ${why}`] : []),
  }
}

function pauseMs(result: ReadResult): number {
  if (result.kind === 'throttled') return result.retryAfterMs ?? SECOND
  return result.kind === 'credentials_refused' ? 10 * SECOND : 0
}
