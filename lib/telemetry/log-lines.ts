import createDebug from 'debug'
import { type Clock, SECOND } from '../base/clock.js'
import type { createLog, LogLevel } from './logger.js'

/** The shortest time between two lines of one class. */
const EVERY_MS = 10 * SECOND

/**
 * Returns a function that writes a debug line, and passes it to the app's logger. Of one class it writes at most a line
 * in ten seconds; the next one has the number of withheld lines.
 */
export function createLogLines(sink: ReturnType<typeof createLog>, clock: Pick<Clock, 'monotonic'>) {
  const loggers = new Map<string, createDebug.Debugger>()
  const lines = new Map<string, { until: number; withheld: number }>()

  return function write(area: string, className: string, message: string, level: LogLevel = 'debug') {
    const debug = loggers.get(area) ?? createDebug(`marketplace-webhooks:${area}`)
    loggers.set(area, debug)
    if (!debug.enabled && !sink) return
    const now = clock.monotonic()
    const key = `${area}:${className}`
    const last = lines.get(key)
    if (last && last.until > now) {
      last.withheld++
      return
    }
    const withheld = last?.withheld ? ` (${last.withheld} more before this one)` : ''
    lines.set(key, { until: now + EVERY_MS, withheld: 0 })
    sink?.(level, { area, code: className }, message + withheld)
    debug('%s%s', message, withheld)
  }
}
