import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import type { Store } from '../../lib/store/port/store.js'
import { storeFor } from '../../lib/store-option.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { storeOption } from '../support/engines/store-option.js'
import { internals } from '../support/internals.js'
import { quietWarnings } from '../support/output.js'
import { startScraping } from '../support/processes/exposition.js'
import { createScene } from '../support/scene.js'
import { until } from '../support/until.js'

const [GUIDE = '', ALERTS_FILE = ''] = ['prometheus.md', 'alerts.yml'].map((file) =>
  readFileSync(join(__dirname, '..', '..', 'docs', file), 'utf8'),
)
const RULES = [
  ...ALERTS_FILE.matchAll(
    /- alert: (\w+)\n\s+expr: (.+)\n\s+for: (\d+m)\n\s+labels: (.+)\n\s+annotations:\n\s+summary: (.+)\n\s+description: (.+)/g,
  ),
]
const ALERTS = Object.fromEntries(RULES.map(([, name, expr]) => [name as string, expr as string]))

describe('docs/alerts.yml', () => {
  it('has seven alerts, each with its meaning and the next step', () => {
    expect(Object.keys(ALERTS)).toHaveLength(7)
    expect(ALERTS_FILE.match(/- alert:/g)).toHaveLength(7)
  })

  it('fires one when no instance reports metrics', () => {
    const firing = Object.keys(ALERTS).filter((name) => fires(ALERTS[name] as string, new Map()))
    expect(firing).toEqual(['MarketplaceMetricsMissing'])
  })

  it('fires each other alert on a real scrape of its problem, and none while all is well', async () => {
    quietWarnings()
    const { scrape } = await startScraping()
    const inner = storeFor('sqlite::memory:', systemClock)
    let isFull = false
    const store: Store = {
      ...inner,
      accept: (events) => (isFull ? Promise.reject(new Error('full')) : inner.accept(events)),
      // The age is as after ten minutes; the counts are real.
      async counts() {
        const counts = await inner.counts()
        const { oldestPendingMs: pending, oldestRequestMs: requested } = counts
        const aged = (ms: number | null) => (ms === null ? null : ms + 600_001)
        return { ...counts, oldestPendingMs: aged(pending), oldestRequestMs: aged(requested) }
      },
    }
    const { platform, marketplace, deliver, app } = await createScene({
      store: storeOption(store),
      handlers: { retryDelaysMs: [], concurrency: 1 },
      ...internals({ acceptTimeoutMs: 500, pollMs: 20 }),
    })
    app.get('/paid', marketplace.requireEntitlement({ businessUid: () => 'b1' }))
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    marketplace.onPurchaseChange(() => {})
    await marketplace.settled()
    const calm = await scrape()
    // `increase` needs each series that an alert names before its first failure.
    const counted = ALERTS_FILE.matchAll(/increase\((\w+\{[^}]*\})/g)
    const atZero = [...counted].map(([, series]) => [series, calm.get(series as string)])
    expect(atZero.length).toBeGreaterThan(0)
    expect(atZero.map(([, value]) => value)).toEqual(atZero.map(() => 0))
    expect(Object.keys(ALERTS).filter((name) => fires(ALERTS[name] as string, calm))).toEqual([])

    marketplace.on('application/installed', () => {
      throw new Error('never')
    })
    await deliver(sampleDelivery('application/installed'))
    await until(
      'the entry is dead',
      async () => (await marketplace.journal.list({ status: 'dead' })).length > 0,
    )
    marketplace.on('application/uninstalled', () => new Promise(() => {}))
    for (const business_id of ['b3', 'b4'])
      await deliver(sampleDelivery('application/uninstalled', { business_id }))
    platform.faults.add({ on: 'read', kind: 'status', status: 429, retryAfter: 600 })
    platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await platform.settled()
    isFull = true
    await deliver(sampleDelivery('application/installed'))
    const firing = async () => {
      const series = await scrape()
      return Object.keys(ALERTS).filter((name) => fires(ALERTS[name] as string, series))
    }
    await until('all alerts fire', async () => (await firing()).length === 6)
  })

  it('fires alerts on ages under the names of the collector too, which appends the unit', () => {
    const byCollector = new Map([
      ['marketplace_webhooks_entries_oldest_pending_age_seconds', 601],
      ['marketplace_webhooks_subscriptions_oldest_request_age_seconds', 601],
      ['marketplace_webhooks_health_problem{code="closed"}', 0],
    ])
    expect(Object.keys(ALERTS).filter((name) => fires(ALERTS[name] as string, byCollector))).toEqual([
      'MarketplaceReadsUnanswered',
      'MarketplaceEntriesPendingLong',
    ])
  })

  it('names only series of a real scrape, like docs/prometheus.md', async () => {
    const { scrape } = await startScraping()
    const { marketplace, deliver, app, url, platform } = await createScene()
    app.get(
      '/paid',
      marketplace.requireEntitlement({ businessUid: () => 'b1' }),
      (_req, res) => void res.end(),
    )
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    await fetch(`${url}/paid`)
    const series = [...(await scrape()).keys()].map((each) => each.replace(/\{.*/, ''))
    const named = [...`${GUIDE}${ALERTS_FILE}`.matchAll(/marketplace_webhooks_\w+/g)].map(([name]) => name)
    expect(new Set(named).size).toBe(7)
    expect(
      [...new Set(named)].filter(
        (name) => !series.some((each) => each === name || each.startsWith(`${name}_`)),
      ),
    ).toEqual([])
  })
})

/**
 * Whether an alert fires. Alerts have one of few forms: `absent(name)`, `max(name) > n`, the same by a label or with a pattern for
 * the name, and `sum(increase(name{label}[5m])) > n` of a counter that began at 0.
 */
function fires(expr: string, series: Map<string, number>): boolean {
  const [, missing] = /^absent\((\w+)\)$/.exec(expr) ?? []
  if (missing) return ![...series.keys()].some((each) => each.replace(/\{.*/, '') === missing)
  const [, call, pattern, name, label, least] =
    /^(max|sum\(increase)(?: by \(\w+\) )?\((?:\{__name__=~"([^"]+)"\}|(\w+)(\{[^}]*\})?)(?:\[5m\]\))?\) > (\d+)$/.exec(
      expr,
    ) ?? []
  if (!call) throw new Error(`an expression of another form: ${expr}`)
  const isNamed = new RegExp(`^(?:${pattern ?? name})$`)
  const values = [...series].filter(
    ([each]) => isNamed.test(each.replace(/\{.*/, '')) && (label === undefined || each.includes(label)),
  )
  const sum = values.reduce((total, [, value]) => total + value, 0)
  const most = Math.max(...values.map(([, value]) => value))
  return (call === 'max' ? most : sum) > Number(least)
}
