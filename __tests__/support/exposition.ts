import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { metrics } from '@opentelemetry/api'
import {
  type DataPoint,
  DataPointType,
  type Histogram,
  MeterProvider,
  MetricReader,
} from '@opentelemetry/sdk-metrics'
import { onCleanUp } from './clean-up.js'

class ScrapedReader extends MetricReader {
  override async onShutdown() {}
  override async onForceFlush() {}
}

/** An SDK for metrics, registered until the test is over, and its scrapes over HTTP in the text format of Prometheus. */
export async function startScraping() {
  const reader = new ScrapedReader()
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
  onCleanUp(() => metrics.disable())
  const server = createServer(async (_req, res) => {
    const { resourceMetrics } = await reader.collect()
    const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics)
    res.setHeader('content-type', 'text/plain; version=0.0.4').end(all.flatMap(exposed).join('\n'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanUp(() => new Promise((resolve) => server.close(resolve)))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`
  return {
    reader,
    /** Series by name and labels: `name{a="b"}`. */
    async scrape(): Promise<Map<string, number>> {
      const text = await (await fetch(url)).text()
      const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
      return new Map(
        series.map((line) => {
          const at = line.lastIndexOf(' ')
          return [line.slice(0, at), Number(line.slice(at + 1))]
        }),
      )
    },
  }
}

type Metric = Awaited<ReturnType<MetricReader['collect']>>['resourceMetrics']['scopeMetrics'][0]['metrics'][0]

/** As the exporter for Prometheus names things: underscores, `_seconds`, `_total`. */
function exposed(metric: Metric): string[] {
  const { name, unit } = metric.descriptor
  const isCounter = metric.dataPointType === DataPointType.SUM
  const full = `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}${isCounter ? '_total' : ''}`
  if (metric.dataPointType === DataPointType.HISTOGRAM) {
    return [
      `# TYPE ${full} histogram`,
      ...metric.dataPoints.flatMap(({ value, attributes }: DataPoint<Histogram>) => {
        let sum = 0
        const buckets = value.buckets.counts.map((count, i) => {
          sum += count
          return `${full}_bucket${labels({ ...attributes, le: value.buckets.boundaries[i] ?? '+Inf' })} ${sum}`
        })
        return [
          ...buckets,
          `${full}_sum${labels(attributes)} ${value.sum}`,
          `${full}_count${labels(attributes)} ${value.count}`,
        ]
      }),
    ]
  }
  const points = metric.dataPoints as DataPoint<number>[]
  return [
    `# TYPE ${full} ${isCounter ? 'counter' : 'gauge'}`,
    ...points.map(({ value, attributes }) => `${full}${labels(attributes)} ${value}`),
  ]
}

function labels(attributes: object): string {
  const pairs = Object.entries(attributes).map(([name, value]) => `${name}="${value}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}
