import type { Clock } from '../../base/clock.js'
import type { Telemetry } from '../../telemetry/telemetry.js'

/** Measures calls. */
export function createDurations({ isMeasuring, record }: Telemetry, clock: Clock) {
  /** The result of `call`. Records its duration in a histogram if an SDK takes metrics. */
  return function timed<T>(
    name: 'accept.duration' | 'read.duration' | 'handler.duration',
    call: () => Promise<T>,
    attributesOf: (result: T | undefined) => Record<string, string>,
  ): Promise<T> {
    if (!isMeasuring()) return call()
    const beganAt = clock.monotonic()
    const end = (result?: T) => record(name, clock.monotonic() - beganAt, attributesOf(result))
    const called = call()
    called.then(end, () => end())
    return called
  }
}

export type Durations = ReturnType<typeof createDurations>
