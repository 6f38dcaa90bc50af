import { metrics } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { onCleanUp } from '../clean-up.js'
import { serve } from '../serving.js'

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
  const url = await serve((req, res) => reader.getMetricsRequestHandler(req, res))
  return {
    reader,
    /** The series by name and labels: `name{a="b"}`. */
    async scrape(): Promise<Map<string, number>> {
      const text = await (await fetch(`${url}/metrics`)).text()
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
