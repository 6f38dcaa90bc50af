import { describe, expect, it, jest } from '@jest/globals'
import { context, metrics, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { systemClock } from '../../lib/base/clock.js'
import { ERROR_CODES } from '../../lib/base/errors.js'
import type { Store } from '../../lib/store/port/store.js'
import { storeFor } from '../../lib/store-option.js'
import { INSTRUMENTS, SPANS } from '../../lib/telemetry/instruments.js'
import { createTelemetry } from '../../lib/telemetry/telemetry.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { onCleanUp } from '../support/clean-up.js'
import { storeOption } from '../support/engines/store-option.js'
import { quietWarnings } from '../support/output.js'
import { startScraping } from '../support/processes/exposition.js'
import { createScene } from '../support/scene.js'

describe('metrics', () => {
  it('have every instrument of the table, with its unit and description', async () => {
    const { reader } = await startScraping()
    const options = { platform: { findSubscriptions: () => [] } }
    const { marketplace, platform, deliver, app, url } = await createScene(options)
    quietWarnings()
    marketplace.onPurchaseChange(() => {})
    marketplace.onHandlerError(() => {})
    app.use('/paid', marketplace.requireEntitlement({ businessUid: () => 'b1' }))
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    await fetch(`${url}/paid`)
    await marketplace.businesses.refresh('b2')
    await deliver(sampleDelivery('application/installed'))
    createTelemetry({ clock: systemClock }).failure('timers', new Error('one'))
    const { resourceMetrics } = await reader.collect()
    const seen = resourceMetrics.scopeMetrics
      .flatMap((scope) => scope.metrics)
      .map(({ descriptor: { name, unit, description } }) => [name, unit, description])
    const table = Object.entries(INSTRUMENTS).map(([name, { unit, description }]) => [
      `marketplace_webhooks.${name}`,
      unit,
      description,
    ])
    expect([...new Set(seen.map(String))].sort()).toEqual(table.map(String).sort())
  })

  it('count from the moment an SDK is registered, even if that is after the first use', async () => {
    const telemetry = createTelemetry({ clock: systemClock })
    telemetry.count('reads', { outcome: 'found' })
    expect(telemetry.isMeasuring()).toBe(false)
    const { scrape } = await startScraping()
    telemetry.count('reads', { outcome: 'found' })
    expect(telemetry.isMeasuring()).toBe(true)
    const counted = [...(await scrape())].filter(([, value]) => value !== 0)
    expect(counted).toEqual([['marketplace_webhooks_reads_total{outcome="found"}', 1]])
  })

  it('begin at 0 with each combination of attributes that is known before', async () => {
    const { scrape } = await startScraping()
    expect(createTelemetry({ clock: systemClock }).isMeasuring()).toBe(true)
    const series = await scrape()
    for (const [name, instrument] of Object.entries(INSTRUMENTS)) {
      if (!('zeros' in instrument)) {
        expect(
          [...series.keys()].filter(
            (each) => /^\w+/.exec(each)?.[0] === `marketplace_webhooks_${name}_total`,
          ),
        ).toEqual([])
        continue
      }
      const own = [...series].filter(([each]) => each.startsWith(`marketplace_webhooks_${name}_total{`))
      for (const [attribute, values] of Object.entries(instrument.zeros))
        for (const value of values) {
          const label = `${attribute}="${value}"`
          expect(value in ERROR_CODES || instrument.attributes.includes(value)).toBe(true)
          expect([name, label, own.some(([each, count]) => each.includes(label) && count === 0)]).toEqual([
            ...[name, label, true],
          ])
        }
    }
    expect(series.get('marketplace_webhooks_handled_total{kind="change",outcome="dead"}')).toBe(0)
    const ofDeliveries = Object.keys(ERROR_CODES).filter((code) =>
      /^(body|content|delivery|method)_/.test(code),
    )
    expect([...INSTRUMENTS.deliveries.zeros.outcome].sort()).toEqual(
      ['received', 'secret_wrong', 'verification_failed', ...ofDeliveries].sort(),
    )
  })

  it('read gauges from counts that are loaded once in five seconds, and leave out unknown ones', async () => {
    const { scrape } = await startScraping()
    const inner = storeFor('sqlite::memory:', systemClock)
    let asked = 0
    const store: Store = {
      ...inner,
      counts() {
        asked++
        return inner.counts()
      },
    }
    const { marketplace, jump } = await createScene({ store: storeOption(store), worker: false })
    await marketplace.start()
    const series = await scrape()
    await scrape()
    await scrape()
    expect(asked).toBe(1)
    expect(series.get('marketplace_webhooks_entries_pending')).toBe(0)
    expect(series.get('marketplace_webhooks_schema_version')).toBeGreaterThanOrEqual(1)
    // Without a worker no reads happen, so none are paused.
    expect(series.has('marketplace_webhooks_reads_paused')).toBe(false)
    await marketplace.close()
    jump(6_000)
    expect((await scrape()).get('marketplace_webhooks_health_problem{code="closed"}')).toBe(0)
  })

  it('read each gauge from its own count', async () => {
    const { scrape } = await startScraping()
    const inner = storeFor('sqlite::memory:', systemClock)
    const ages = { oldestPendingMs: 6_000, oldestRequestMs: 7_000, oldestOverdueMs: 8_000 }
    const store: Store = {
      ...inner,
      counts: async () => ({
        ...(await inner.counts()),
        ...{ pending: 1, retrying: 2, dead: 3, requested: 4, givenUp: 5, ...ages },
      }),
      cleanUp: async () => ({ deadRows: 9, oldestTransactionMs: 10_000, oldestTransaction: 'a report' }),
    }
    const { marketplace } = await createScene({ store: storeOption(store), worker: false })
    await marketplace.start()
    const series = await scrape()
    const gauges = {
      ...{ entries_pending: 1, entries_retrying: 2, entries_dead: 3, entries_oldest_pending_age: 6 },
      ...{ subscriptions_requested: 4, subscriptions_given_up: 5 },
      ...{ subscriptions_oldest_request_age: 7, subscriptions_oldest_overdue_age: 8 },
      ...{ database_dead_rows: 9, database_oldest_transaction_age: 10 },
    }
    for (const [name, value] of Object.entries(gauges))
      expect([name, series.get(`marketplace_webhooks_${name}`)]).toEqual([name, value])
  })

  it('read no gauges once they are closed', async () => {
    const { scrape } = await startScraping()
    const telemetry = createTelemetry({ clock: systemClock })
    let asked = 0
    telemetry.gauges(async () => ({ 'entries.pending': ++asked }))
    await scrape()
    telemetry.close()
    await scrape()
    expect(asked).toBe(1)
  })

  it('give durations in seconds', async () => {
    const { scrape } = await startScraping()
    const telemetry = createTelemetry({ clock: systemClock })
    telemetry.record('read.duration', 1_500, { outcome: 'found' })
    const series = await scrape()
    expect(series.get('marketplace_webhooks_read_duration_sum{outcome="found"}')).toBe(1.5)
    expect(series.get('marketplace_webhooks_read_duration_bucket{outcome="found",le="1"}')).toBe(0)
    expect(series.get('marketplace_webhooks_read_duration_bucket{outcome="found",le="2.5"}')).toBe(1)
  })
})

describe('spans', () => {
  it('exist for accepting, reading and handling; the latter two are separate traces, linked to the delivery', async () => {
    const exporter = startTracing()
    const { marketplace, platform } = await createScene()
    marketplace.on('purchasable_subscription/create', () => trace.getActiveSpan()?.setAttribute('seen', true))
    marketplace.onPurchaseChange(() => {})
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    const spans = exporter.getFinishedSpans().filter(({ name }) => name.startsWith('marketplace_webhooks.'))
    const short = (name: string) => name.replace('marketplace_webhooks.', '')
    expect([...new Set(spans.map(({ name }) => short(name)))].sort()).toEqual(Object.keys(SPANS).sort())
    const accept = spans.find(({ name }) => short(name) === 'accept')?.spanContext()
    for (const span of spans.filter(({ name }) => short(name) !== 'accept')) {
      expect(span.links.map(({ context: { spanId } }) => spanId)).toEqual([accept?.spanId])
      expect(span.spanContext().traceId).not.toBe(accept?.traceId)
    }
    const handles = spans.filter(({ name }) => short(name) === 'handle')
    expect(handles.map(({ kind, attributes }) => [kind, attributes.kind, attributes.attempt]).sort()).toEqual(
      [
        [SpanKind.CONSUMER, 'change', 1],
        [SpanKind.CONSUMER, 'event', 1],
      ],
    )
    // The span is the active one while the handler runs.
    expect(handles.filter(({ attributes }) => attributes.seen)).toHaveLength(1)
    expect(spans.find(({ name }) => short(name) === 'read')?.attributes).toEqual({ outcome: 'found' })
    expect(JSON.stringify(spans.map(({ attributes }) => attributes))).not.toContain(uid)
  })

  it('record that a handler failed, but not its message', async () => {
    const exporter = startTracing()
    quietWarnings()
    const { marketplace, deliver } = await createScene({ handlers: { retryDelaysMs: [] } })
    marketplace.on('application/installed', () => {
      throw new Error('canary-message')
    })
    await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    const [span] = exporter.getFinishedSpans().filter(({ name }) => name.endsWith('.handle'))
    expect(span).toMatchObject({ attributes: { outcome: 'failed' }, events: [], status: { code: 2 } })
    expect(span?.status.message).toBeUndefined()
  })

  it('and metrics are off while the SDK fails, and the work goes on', async () => {
    const failing = () => fail('no SDK')
    jest.spyOn(trace, 'getTracerProvider').mockImplementation(failing)
    jest.spyOn(metrics, 'getMeterProvider').mockImplementation(failing)
    onCleanUp(() => jest.restoreAllMocks())
    const telemetry = createTelemetry({ clock: systemClock })
    expect([telemetry.isTracing(), telemetry.isMeasuring()]).toEqual([false, false])
    telemetry.count('reads', { outcome: 'found' })
    expect(await telemetry.span('accept', {}, async () => 'done')).toBe('done')
  })

  it('may throw: their work is done once, and its result counts', async () => {
    startTracing()
    const tracer = { startSpan: () => fail('no span') }
    jest.spyOn(trace, 'getTracer').mockReturnValue(tracer as never)
    onCleanUp(() => jest.restoreAllMocks())
    const { span } = createTelemetry({ clock: systemClock })
    let calls = 0
    expect(await span('accept', {}, async () => ++calls)).toBe(1)
    await expect(span('accept', {}, () => Promise.reject(new Error('its own')))).rejects.toThrow('its own')
    jest.restoreAllMocks()
    const broken = {
      ...trace.getTracer('x').startSpan('x'),
      end: () => fail('no end'),
      setAttribute: () => {},
    }
    const spanContext = () => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 })
    jest.spyOn(trace, 'getTracer').mockReturnValue({ startSpan: () => ({ ...broken, spanContext }) } as never)
    expect(await span('accept', {}, async () => ++calls)).toBe(2)
    expect(calls).toBe(2)
  })
})

function startTracing() {
  const exporter = new InMemorySpanExporter()
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  )
  onCleanUp(() => {
    context.disable()
    trace.disable()
    metrics.disable()
  })
  return exporter
}

function fail(message: string): never {
  throw new Error(message)
}
