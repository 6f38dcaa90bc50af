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
import type { SpanName } from './instruments.js'

/**
 * Spans with attributes from fixed sets and our own ids: no secret, no address, no error message.
 *
 * Spans of reads and handlers are linked to the span of their delivery, and are not its children. Links to the latest
 * 1,000 deliveries are held in memory; see docs/decisions/spans-are-linked.md.
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

  /** Whether an SDK takes spans: the API's proxy then delegates to another provider than its own silent one. */
  function isOn(): boolean {
    const provider = trace.getTracerProvider()
    return !(provider instanceof ProxyTracerProvider) || provider.getDelegate() !== SILENT
  }

  return {
    isOn,

    /** Runs `call` in a span. `outcomeOf` gives the attribute `outcome`; a rejected call has the outcome `failed`. */
    async run<T>(
      name: SpanName,
      options: {
        attributes?: Attributes
        /** Ids of entries or subscriptions of a delivery. The first one with a remembered span is linked. */
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

    /** Remembers the active span under these ids, for links. */
    remember(names: readonly (string | null)[]) {
      const span = trace.getActiveSpan()
      if (!span) return
      // Each delivery has two ids: its entry and its subscription.
      deliveries ??= new LRUCache({ max: 2_000 })
      for (const name of names) if (name !== null) deliveries.set(name, span.spanContext())
    },
  }
}

const SILENT = new ProxyTracerProvider().getDelegate()

// The key that OpenTelemetry's SDK looks for (`suppressTracing` of @opentelemetry/core, which is not a dependency here).
const SUPPRESS_TRACING = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

/**
 * Runs `call` without instrumentation: the address of the token call contains the client secret, and instrumentation of
 * fetch writes addresses into spans.
 */
export function untraced<T>(call: () => T): T {
  const suppressed: Context = context.active().setValue(SUPPRESS_TRACING, true)
  return context.with(suppressed, call)
}

/**
 * Runs the callback of a timer outside any trace. Deliveries and calls wake the loops, which would otherwise run inside the
 * trace of the latest one.
 */
export function outsideTraces(callback: () => unknown): unknown {
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
