import type { Clock } from '../base/clock.js'
import { ownCode } from '../base/errors.js'
import { messageFor, type WarningCode, warn } from '../base/warnings.js'
import {
  createLine,
  createLog,
  createLogLines,
  type LogFields,
  type Logger,
  type LogLevel,
  type LogLine,
} from './logger.js'
import { createMetrics } from './metrics.js'
import { createSaid, type Received } from './received.js'
import { createSpans } from './spans.js'

/**
 * Debug lines (`DEBUG=marketplace-webhooks:*`), the app's logger, process warnings, and the metrics and spans of
 * OpenTelemetry, which are silent without an SDK. None of them contains an address, a secret, a token or a body, and none
 * of them throws: a failing logger or SDK must not stop the work it reports. Whatever fails, lines and warnings are
 * bounded in number: by their class and the time, and by their code.
 */
export function createTelemetry({
  clock,
  logger,
  words,
  secrets = [],
}: {
  clock: Pick<Clock, 'monotonic'>
  logger?: Logger | undefined
  /** Names of events and states, which errors may quote: see `createSaid`. */
  words?: readonly string[] | undefined
  /** No line and no warning has one of them, see `createLine`. */
  secrets?: readonly string[] | undefined
}) {
  const metrics = createMetrics()
  const spans = createSpans()
  const line = createLine(secrets)
  const sink = createLog(logger, line)
  const said = createSaid(words)
  /** The classes of each code that a warning was emitted for. */
  const warned = new Map<WarningCode, Set<string>>()

  const log = quiet(createLogLines(sink, line, clock))
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

    /**
     * A failure in the background, counted and logged by its code. `received` returns what the code of the
     * app was given which has failed; it is called only for a line that is written.
     */
    failure(area: FailureArea, error: unknown, received?: () => Received) {
      const code = ownCode(error)
      count('failures', { area, code: code ?? 'unexpected' })
      log(area, code ?? 'unexpected', lineOf, 'error')

      function lineOf(): LogLine {
        const { message, stack } = said(error, received?.())
        // Our own messages say what cannot be done.
        return { message: code ? message : `${FAILED[area]}: ${message}`, stack }
      }
    },

    /**
     * A process warning for the developer, also without `DEBUG`; once per code and class. After `MOST_CLASSES` classes of a
     * code one more warning says that further ones are suppressed.
     */
    warn: quiet((code: WarningCode, why?: string | (() => LogLine), className: string = '') => {
      const classes = warned.get(code) ?? new Set()
      const key = className.slice(0, 200)
      if (classes.size > MOST_CLASSES || classes.has(key)) return
      warned.set(code, classes.add(key))
      const { message, stack } =
        classes.size > MOST_CLASSES ? LAST : typeof why === 'function' ? why() : { message: why }
      sink?.('warn', { code, ...(stack ? { stack } : {}) }, messageFor(code, message))
      warn(code, message && line(message))
    }),

    said,

    /** To the app's logger only. */
    report(level: LogLevel, fields: LogFields, message: string) {
      sink?.(level, fields, message)
    },
    hasLogger: sink !== undefined,

    close: quiet(metrics.close),
  }
}

export type Telemetry = ReturnType<typeof createTelemetry>

/** What has failed in the background, by the part of the package that has noticed it. */
const FAILED = {
  receiving: 'A delivery was refused with 503, because verifyDelivery or the store failed',
  handling: 'The look for entries to handle failed',
  reading: 'The look for subscriptions to read failed',
  searching: 'The look for businesses to search failed',
  sweeping: 'The deletion of what is older than its retention failed',
  listeners: 'A listener of onHandlerError or onHealthChange failed',
  opening: 'The store cannot be opened',
  timers: 'A timer failed',
}
type FailureArea = keyof typeof FAILED

/** The most classes of one code that a warning is emitted for: a class may be made while the app runs. */
const MOST_CLASSES = 20
const LAST: { message: string; stack?: undefined } = {
  message: `Further warnings of this kind are suppressed in this process, after ${MOST_CLASSES} that differ; health() and the log still show that it fails`,
}

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
