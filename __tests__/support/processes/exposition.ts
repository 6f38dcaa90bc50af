import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { metrics } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { onCleanUp } from '../clean-up.js'

/**
 * Registers an SDK for metrics until the end of the test. The result scrapes them over HTTP from the exporter for
 * Prometheus.
 */
export async function startScraping() {
  const reader = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  })
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
  onCleanUp(() => metrics.disable())
  const server = createServer((req, res) => reader.getMetricsRequestHandler(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanUp(() => new Promise((resolve) => server.close(resolve)))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`
  return {
    reader,
    /** The series by name and labels: `name{a="b"}`. */
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
