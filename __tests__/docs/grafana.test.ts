import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { INSTRUMENTS } from '../../lib/telemetry/instruments.js'

interface Dashboard {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[]
}

const { panels }: Dashboard = JSON.parse(
  readFileSync(join(__dirname, '..', '..', 'docs', 'grafana.json'), 'utf8'),
)
const TARGETS = panels.flatMap(({ title, targets }) => targets.map((target) => ({ title, ...target })))

/** The ends of names in Prometheus. */
const ENDS: Readonly<Record<'counter' | 'histogram' | 'gauge', readonly string[]>> = {
  counter: ['_total'],
  histogram: ['_bucket', '_count', '_sum'],
  gauge: [''],
}

/** Each instrument by its names in Prometheus, without a unit. */
const BY_NAME: ReadonlyMap<string, (typeof INSTRUMENTS)[keyof typeof INSTRUMENTS]> = new Map(
  Object.entries(INSTRUMENTS).flatMap(([name, instrument]) =>
    ENDS[instrument.kind].map(
      (end) => [`marketplace_webhooks_${name.replaceAll('.', '_')}${end}`, instrument] as const,
    ),
  ),
)

describe('the dashboard for Grafana', () => {
  it.each(TARGETS)(
    'asks in "$title" for an instrument and its attributes: $expr',
    ({ expr, legendFormat }) => {
      const [, name = ''] = /(marketplace_webhooks_\w+)/.exec(expr.replace('(_seconds)?', '')) ?? []
      const instrument = BY_NAME.get(name)
      expect([...BY_NAME.keys()]).toContain(name)
      // The collector appends the unit of seconds, the exporter does not.
      expect(expr.includes('(_seconds)?')).toBe(instrument?.unit === 's')
      const attributes = instrument?.attributes.split('; ').map((each) => each.split(':')[0])
      const [, by = ''] = / by \((.*?)\)/.exec(expr) ?? []
      const labels = by.split(', ').filter((label) => label !== '' && label !== 'le')
      for (const label of labels) expect(attributes).toContain(label)
      expect([...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label)).toEqual(labels)
    },
  )
})
