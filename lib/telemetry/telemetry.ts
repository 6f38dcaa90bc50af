import type { Clock } from '../base/clock.js'
import { MarketplaceError, thrownText } from '../base/errors.js'
import { messageFor, type WarningCode, warn } from '../base/warnings.js'
import { createLog, createLogLines, type LogFields, type Logger, type LogLevel } from './logger.js'
import { createMetrics } from './metrics.js'
import { createSpans } from './spans.js'

/**
 * Debug lines (`DEBUG=marketplace-webhooks:*`), the app's logger, process warnings, and the metrics and spans of
 * OpenTelemetry, which are silent without an SDK. None of them contains an address, a secret, a token or a body, and none
 * of them throws: a failing logger or SDK must not stop the work it reports.
 */
export function createTelemetry({
  clock,
  logger,
}: {
  clock: Pick<Clock, 'monotonic'>
  logger?: Logger | undefined
}) {
  const metrics = createMetrics()
  const spans = createSpans()
  const sink = createLog(logger)
  const warned = new Set<string>()

  const log = quiet(createLogLines(sink, clock))
  /** Counts under `marketplace_webhooks.<name>`. Attributes come from fixed sets, never from received data. */
  const count = quiet(metrics.count)
  const remember = quiet(spans.remember)

  const isTracing = orFalse(spans.isOn)

  return {
    log,
    count,
    /** A duration in ms, for a histogram. */
    record: quiet(metrics.record),
    gauges: quiet(metrics.gauges),
    isTracing,
    /** Whether an SDK takes metrics, so that costly measurements can be left out without one. */
    isMeasuring: orFalse(metrics.isOn),
    /** See `createSpans`. If the SDK fails before `call` has begun, `call` runs without a span. */
    span<T>(...[name, options, call]: Parameters<typeof spans.run<T>>): Promise<T> {
      if (!isTracing()) return call()
      let begun: Promise<T> | undefined
      const once = () => {
        begun = call()
        return begun
      }
      return spans.run(name, options, once).catch((error: unknown) => {
        if (!begun) return once()
        // The result of the call counts, even if the SDK failed after it.
        return begun.catch(() => {
          throw error
        })
      })
    },
    rememberDelivery(names: readonly (string | null)[]) {
      if (isTracing()) remember(names)
    },

    /** A failure in the background, counted and logged by its code. */
    failure(area: string, error: unknown) {
      const code = error instanceof MarketplaceError ? error.code : 'unexpected'
      count('failures', { area, code })
      log(area, code, thrownText(error, 1_000), 'error')
    },

    /** A process warning for the developer, also without `DEBUG`; once per code and class. */
    warn(code: WarningCode, why?: string, className = '') {
      const key = `${code}:${className}`
      if (warned.has(key)) return
      warned.add(key)
      sink?.('warn', { code }, messageFor(code, why))
      warn(code, why)
    },

    /** To the app's logger only. */
    report(level: LogLevel, fields: LogFields, message: string) {
      sink?.(level, fields, message)
    },
    hasLogger: sink !== undefined,

    close: quiet(metrics.close),
  }
}

export type Telemetry = ReturnType<typeof createTelemetry>

function quiet<Arguments extends unknown[]>(call: (...given: Arguments) => void) {
  return (...given: Arguments): void => {
    try {
      call(...given)
    } catch {
      // The logger or the SDK of the app failed, and there is no other place to report it.
    }
  }
}

/** The result of a question to the SDK; false if the SDK fails. */
function orFalse(question: () => boolean) {
  return (): boolean => {
    try {
      return question()
    } catch {
      return false
    }
  }
}
