import {
  type Attributes,
  type Counter,
  createNoopMeter,
  type Histogram,
  type Meter,
  metrics,
  type ObservableGauge,
} from '@opentelemetry/api'
import {
  type CounterName,
  DURATION_BUCKETS,
  type GaugeName,
  type HistogramName,
  INSTRUMENTS,
} from './instruments.js'
import { VERSION } from './version.js'

/** A record has a value for each value of the attribute `code`. */
export type GaugeValues = Partial<Record<GaugeName, number | Readonly<Record<string, number>>>>

/**
 * The instruments of the table, created once an SDK is registered. A meter made before that would stay silent (the API has
 * no proxy for it), so each use compares the provider. Without an SDK, a call costs that comparison.
 */
export function createMetrics() {
  let provider: unknown
  let isSilent = true
  let counters = new Map<CounterName, Counter>()
  let histograms = new Map<HistogramName, Histogram>()
  let readGauges: (() => Promise<GaugeValues>) | undefined
  let stopGauges = () => {}

  /** Whether an SDK takes metrics. */
  function isOn(): boolean {
    const current = metrics.getMeterProvider()
    if (current !== provider) {
      provider = current
      isSilent = true
      const meter = metrics.getMeter('marketplace-webhooks', VERSION)
      isSilent = meter === createNoopMeter()
      if (!isSilent) begin(meter)
    }
    return !isSilent
  }

  function begin(meter: Meter) {
    counters = new Map()
    histograms = new Map()
    const gauges = new Map<GaugeName, ObservableGauge>()
    for (const [key, instrument] of Object.entries(INSTRUMENTS)) {
      const { kind, unit, description } = instrument
      const name = `marketplace_webhooks.${key}`
      if (kind === 'counter') {
        const counter = meter.createCounter(name, { unit, description })
        const zeros = 'zeros' in instrument ? combinations(instrument.zeros) : []
        for (const attributes of zeros) counter.add(0, attributes)
        counters.set(key as CounterName, counter)
      } else if (kind === 'gauge')
        gauges.set(key as GaugeName, meter.createObservableGauge(name, { unit, description }))
      else {
        const advice = { explicitBucketBoundaries: DURATION_BUCKETS }
        histograms.set(key as HistogramName, meter.createHistogram(name, { unit, description, advice }))
      }
    }
    stopGauges()
    const all = [...gauges.values()]
    const observe: Parameters<Meter['addBatchObservableCallback']>[0] = async (result) => {
      // Without values, this collection has no gauges.
      const values = await readGauges?.().catch(() => undefined)
      for (const [name, gauge] of gauges) {
        const value = values?.[name]
        if (typeof value === 'number') result.observe(gauge, value)
        else for (const code in value) result.observe(gauge, value[code] as number, { code })
      }
    }
    meter.addBatchObservableCallback(observe, all)
    stopGauges = () => meter.removeBatchObservableCallback(observe, all)
  }

  return {
    isOn,
    count(name: CounterName, attributes: Attributes) {
      if (isOn()) counters.get(name)?.add(1, attributes)
    },
    record(name: HistogramName, ms: number, attributes: Attributes = {}) {
      if (isOn()) histograms.get(name)?.record(ms / 1_000, attributes)
    },
    /** Sets the function that reads the gauges at each collection. It should cache the values for some seconds. */
    gauges(read: () => Promise<GaugeValues>) {
      readGauges = read
      isOn()
    },
    close() {
      stopGauges()
      readGauges = undefined
    },
  }
}

/** Each combination of one value of each attribute. */
function combinations(values: Readonly<Record<string, readonly string[]>>): Attributes[] {
  return Object.entries(values).reduce<Attributes[]>(
    (all, [name, each]) => all.flatMap((before) => each.map((value) => ({ ...before, [name]: value }))),
    [{}],
  )
}
