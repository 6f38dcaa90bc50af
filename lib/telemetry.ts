import { type Context, context, createContextKey, type Meter, metrics } from '@opentelemetry/api'
import createDebug from 'debug'
import { type Clock, SECOND } from './clock.js'
import { MarketplaceError } from './errors.js'

/**
 * What the package tells of itself: debug lines (`DEBUG=marketplace-webhooks:*`) and OpenTelemetry counters, which
 * are silent without an SDK. Neither ever carries an address, a secret, a token or a body.
 */
export function createTelemetry({ clock }: { clock: Clock }) {
  const counters = new Map<string, ReturnType<Meter['createCounter']>>()
  const loggers = new Map<string, createDebug.Debugger>()
  const lines = new Map<string, { until: number; withheld: number }>()
  const warned = new Set<string>()

  /** One line per class in ten seconds; the next says how many were withheld. */
  function log(area: string, className: string, message: string) {
    const logger = loggers.get(area) ?? createDebug(`marketplace-webhooks:${area}`)
    loggers.set(area, logger)
    if (!logger.enabled) return
    const key = `${area}:${className}`
    const last = lines.get(key)
    if (last && last.until > clock.now()) {
      last.withheld++
      return
    }
    const withheld = last?.withheld ? ` (${last.withheld} more of these before)` : ''
    lines.set(key, { until: clock.now() + 10 * SECOND, withheld: 0 })
    logger('%s%s', message, withheld)
  }

  /** Counts under `marketplace_webhooks.<name>`; attributes come from fixed sets, never from what is received. */
  function count(name: CounterName, attributes: Record<string, string>) {
    let counter = counters.get(name)
    if (!counter) {
      // Asked for late: a meter from before the SDK was registered stays silent (API 1.10 has no proxy for it).
      counter = metrics.getMeter('marketplace-webhooks').createCounter(`marketplace_webhooks.${name}`)
      counters.set(name, counter)
    }
    counter.add(1, attributes)
  }

  return {
    log,
    count,

    /** A failure that nobody waits for: counted and logged by its code. */
    failure(area: string, error: unknown) {
      const code = error instanceof MarketplaceError ? error.code : 'unexpected'
      count('failures', { area, code })
      const { name, message } =
        error instanceof Error ? error : new Error('something that is no error was thrown')
      log(area, code, `${name}: ${message}`)
    },

    /** For the developer, once per class, also where debug is off. */
    warn(className: string, message: string) {
      if (warned.has(className)) return
      warned.add(className)
      process.emitWarning(message, { type: 'MarketplaceWarning', code: className })
    },
  }
}

export type Telemetry = ReturnType<typeof createTelemetry>
type CounterName = 'deliveries' | 'notices' | 'reads' | 'changes' | 'handled' | 'failures'

// The key that OpenTelemetry's SDK looks for (`suppressTracing` of @opentelemetry/core, which is no dependency here).
const SUPPRESS_TRACING = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

/**
 * Runs `call` where instrumentation records nothing: the token call carries the client secret in its address, and
 * instrumentations of fetch write addresses into spans.
 */
export function untraced<T>(call: () => T): T {
  const suppressed: Context = context.active().setValue(SUPPRESS_TRACING, true)
  return context.with(suppressed, call)
}
