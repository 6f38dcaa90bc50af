import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  isSpanContextValid,
  type Link,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.js'
import type { SpanName } from './instruments.js'

/**
 * Spans with attributes from fixed sets and our own ids: no secret, no address, no message of an error.
 *
 * A read and a handler run after the delivery was answered, often for several of them at once, so their spans are not
 * its children but linked to it. The links are kept in memory, of the latest 1,000 deliveries: what another process
 * received, or what is handled much later, has a span without a link. A column for it would cost every delivery.
 */
export function createSpans() {
  let deliveries: LRUCache<string, SpanContext> | undefined

  function linksTo(names: readonly (string | null)[]): Link[] {
    for (const name of names) {
      const delivery = name === null ? undefined : deliveries?.get(name)
      if (delivery) return [{ context: delivery }]
    }
    return []
  }

  /** Whether an SDK takes spans: behind the API's proxy stands something else than its own silent provider. */
  function isOn(): boolean {
    const provider = trace.getTracerProvider()
    return !(provider instanceof ProxyTracerProvider) || provider.getDelegate() !== SILENT
  }

  return {
    isOn,

    /** Runs `call` in a span. `outcomeOf` gives the attribute `outcome`; what rejects has the outcome `failed`. */
    async run<T>(
      name: SpanName,
      options: {
        attributes?: Attributes
        /** Of deliveries: ids of entries or of subscriptions; the first that is known is linked. */
        linkedTo?: readonly (string | null)[]
        outcomeOf?(result: T): string
      },
      call: () => Promise<T>,
    ): Promise<T> {
      const { attributes = {}, linkedTo = [], outcomeOf } = options
      const kind = name === 'handle' ? SpanKind.CONSUMER : SpanKind.INTERNAL
      const span = trace
        .getTracer('marketplace-webhooks')
        .startSpan(`marketplace_webhooks.${name}`, { kind, attributes, links: linksTo(linkedTo) })
      if (!isSpanContextValid(span.spanContext())) return call()
      try {
        const result = await context.with(trace.setSpan(context.active(), span), call)
        if (outcomeOf) span.setAttribute('outcome', outcomeOf(result))
        return result
      } catch (error) {
        span.setAttribute('outcome', 'failed')
        span.setStatus({ code: SpanStatusCode.ERROR })
        throw error
      } finally {
        span.end()
      }
    },

    /** Keeps the active span as the delivery of these, for links. */
    remember(names: readonly (string | null)[]) {
      const span = trace.getActiveSpan()
      if (!span) return
      deliveries ??= new LRUCache({ max: 2_000 })
      for (const name of names) if (name !== null) deliveries.set(name, span.spanContext())
    },
  }
}

const SILENT = new ProxyTracerProvider().getDelegate()

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

/**
 * The same clock, whose timers belong to no trace: the loops are woken by deliveries and calls, and would otherwise work on
 * inside the trace of whichever came last.
 */
export function untracedTimers(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimeout(callback, delayMs, keepAlive) {
      const run = () => {
        let hasBegun = false
        const begin = () => {
          hasBegun = true
          return callback()
        }
        try {
          return context.with(ROOT_CONTEXT, begin)
        } catch (error) {
          if (hasBegun) throw error
          return callback()
        }
      }
      return clock.setTimeout(run, delayMs, keepAlive)
    },
    clearTimeout: (handle) => clock.clearTimeout(handle),
  }
}
