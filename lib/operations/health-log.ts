import { type Clock, SECOND } from '../clock.js'
import type { Telemetry } from '../telemetry/telemetry.js'

interface HealthShape {
  status: 'ok' | 'degraded' | 'failing'
  problems: readonly string[]
}

const EVERY_MS = 30 * SECOND
const LEVELS = { ok: 'info', degraded: 'warn', failing: 'error' } as const

/**
 * Reports each change of health to the app's logger, if there is one. It checks every 30 s, and at each call of `health`.
 * A problem whose numbers alone have changed counts as the same problem.
 */
export function createHealthLog<Health extends HealthShape>(options: {
  health(): Promise<Health>
  telemetry: Pick<Telemetry, 'hasLogger' | 'report'>
  clock: Clock
}) {
  const { health, telemetry, clock } = options
  /** The health last reported: its status and problems, without their numbers. */
  let reported = 'ok'
  let timer: unknown
  let isClosed = false

  async function ask(): Promise<Health> {
    const found = await health()
    const { status, problems } = found
    const kind = [status, ...problems].join('\n').replace(/\d+/g, '#')
    if (kind !== reported && !isClosed) {
      reported = kind
      const summary = status === 'ok' ? 'ok again' : `${status}: ${problems.join('; ')}`
      telemetry.report(LEVELS[status], { status }, `Health is ${summary}`)
    }
    return found
  }

  function watch() {
    if (!isClosed) timer = clock.setTimeout(() => ask().finally(watch), EVERY_MS)
  }
  if (telemetry.hasLogger) watch()

  return {
    health: ask,
    close() {
      isClosed = true
      clock.clearTimeout(timer)
    },
  }
}
