import { type Context, context, createContextKey, type Meter, metrics } from '@opentelemetry/api'
import createDebug from 'debug'
import { type Clock, SECOND } from './clock.js'
import { MarketplaceError, messageOf } from './errors.js'
import { type WarningCode, warn } from './warnings.js'

/**
 * Debug lines (`DEBUG=marketplace-webhooks:*`), process warnings, and OpenTelemetry counters, which are silent without
 * an SDK. None of them carries an address, a secret, a token or a body, and none of them throws: a logger or an SDK
 * that fails must not stop the work it reports.
 */
export function createTelemetry({ clock }: { clock: Pick<Clock, 'monotonic'> }) {
  const counters = new Map<string, ReturnType<Meter['createCounter']>>()
  const loggers = new Map<string, createDebug.Debugger>()
  const lines = new Map<string, { until: number; withheld: number }>()
  const warned = new Set<string>()

  function write(area: string, className: string, message: string) {
    const logger = loggers.get(area) ?? createDebug(`marketplace-webhooks:${area}`)
    loggers.set(area, logger)
    if (!logger.enabled) return
    const now = clock.monotonic()
    const key = `${area}:${className}`
    const last = lines.get(key)
    if (last && last.until > now) {
      last.withheld++
      return
    }
    const withheld = last?.withheld ? ` (${last.withheld} more of these before)` : ''
    lines.set(key, { until: now + 10 * SECOND, withheld: 0 })
    logger('%s%s', message, withheld)
  }

  function add(name: CounterName, attributes: Record<string, string>) {
    let counter = counters.get(name)
    if (!counter) {
      // Asked for late: a meter from before the SDK was registered stays silent (API 1.10 has no proxy for it).
      counter = metrics.getMeter('marketplace-webhooks').createCounter(`marketplace_webhooks.${name}`)
      counters.set(name, counter)
    }
    counter.add(1, attributes)
  }

  /** One line per class in ten seconds; the next says how many were withheld. */
  const log = quiet(write)
  /** Counts under `marketplace_webhooks.<name>`; attributes come from fixed sets, never from what is received. */
  const count = quiet(add)

  return {
    log,
    count,

    /** A failure that nobody waits for: counted and logged by its code. */
    failure(area: string, error: unknown) {
      const code = error instanceof MarketplaceError ? error.code : 'unexpected'
      count('failures', { area, code })
      log(area, code, `${nameOf(error)}: ${messageOf(error)}`)
    },

    /** For the developer, also where debug is off; once per code and class. */
    warn(code: WarningCode, why?: string, className = '') {
      const key = `${code}:${className}`
      if (warned.has(key)) return
      warned.add(key)
      warn(code, why)
    },
  }
}

export type Telemetry = ReturnType<typeof createTelemetry>
type CounterName = 'deliveries' | 'notices' | 'reads' | 'changes' | 'handled' | 'failures'

function quiet<Arguments extends unknown[]>(call: (...given: Arguments) => void) {
  return (...given: Arguments): void => {
    try {
      call(...given)
    } catch {
      // The logger or the SDK is the app's own; there is nobody left to report it to.
    }
  }
}

function nameOf(error: unknown): string {
  try {
    return String((error as { name?: unknown } | null)?.name ?? 'not an Error')
  } catch {
    return 'not an Error'
  }
}

// The key that OpenTelemetry's SDK looks for (`suppressTracing` of @opentelemetry/core, which is not a dependency here).
const SUPPRESS_TRACING = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

/**
 * Runs `call` where instrumentation records nothing: the token call carries the client secret in its address, and
 * instrumentations of fetch write addresses into spans.
 */
export function untraced<T>(call: () => T): T {
  const suppressed: Context = context.active().setValue(SUPPRESS_TRACING, true)
  return context.with(suppressed, call)
}
