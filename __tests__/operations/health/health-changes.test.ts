import { describe, expect, it } from '@jest/globals'
import { type Clock, MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { problemOf } from '../../../lib/base/health.js'
import { type Health, PROBLEMS } from '../../../lib/index.js'
import { createHealthChanges } from '../../../lib/operations/health/health-changes.js'
import { problemOfTurnedAway } from '../../../lib/operations/health/problems-of-counts.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import type { LogFields } from '../../../lib/telemetry/logger.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { storeOption } from '../../support/engines/store-option.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { captureDebug, quietWarnings } from '../../support/output.js'
import { startScraping } from '../../support/processes/exposition.js'
import { createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { looks, until } from '../../support/until.js'

const DELIVERY = sampleDelivery('application/installed')

describe('onHealthChange', () => {
  it('K60 gets each change of the status or of the codes once, with the health before, and no change of the numbers', async () => {
    const { marketplace, counted, edges, jump } = await watched()
    const steps: [object, string | undefined][] = [
      [{}, undefined],
      [{ dead: 2 }, 'ok > degraded entries_dead'],
      [{ dead: 3 }, undefined],
      [{ dead: 3, oldestRequestMs: 5 * MINUTE }, 'degraded > degraded requests_overdue entries_dead'],
      [{ dead: 3, oldestRequestMs: 9 * MINUTE }, undefined],
      [{ oldestRequestMs: 9 * MINUTE }, 'degraded > degraded requests_overdue'],
      [{}, 'degraded > ok '],
      [{}, undefined],
    ]
    for (const [counts, edge] of steps) {
      counted(counts)
      jump(5 * MINUTE)
      await marketplace.health()
      await marketplace.health()
      expect([counts, edges.splice(0)]).toEqual([counts, edge === undefined ? [] : [edge]])
    }
  })

  it('K60 gets no end of the marketplace: who closes it knows', async () => {
    const calls: unknown[] = []
    const closed: Health = { status: 'failing', problems: [problemOf('closed', 'closed')], counts: null }
    const changes = createHealthChanges({
      check: async () => closed,
      telemetry: { hasLogger: true, report: (...said) => calls.push(said), failure: () => {} },
      clock: systemClock,
    })
    changes.onHealthChange(() => calls.push('called'))
    expect(await changes.health()).toBe(closed)
    changes.close()
    expect(calls).toEqual([])
  })

  it('K60 is called without a call of health(), until it is removed or the marketplace is closed', async () => {
    const { marketplace, counted, edges, checks, unsubscribe } = await watched()
    counted({ dead: 1 })
    await until('the change is reported', () => edges.length === 1)
    unsubscribe()
    unsubscribe()
    const removed: string[] = []
    const again = marketplace.onHealthChange(({ status }) => removed.push(status))
    counted({})
    await until('the next change is reported', () => removed.length === 1)
    again()
    marketplace.onHealthChange(({ status }) => removed.push(status))
    const closing = marketplace.close()
    expect((await marketplace.health()).status).toBe('failing')
    await closing
    const before = checks()
    await marketplace.health()
    await looks(3)
    expect([edges.length, removed, checks()]).toEqual([1, ['ok'], before])
  })

  it('K60 costs nothing while nobody listens, and one check every 10 s for any number of listeners', async () => {
    const timers: { callback(): void; ms: number }[] = []
    const clock: Clock = {
      ...systemClock,
      setTimeout: (callback, ms) => timers.push({ callback, ms }),
      clearTimeout() {},
    }
    let checks = 0
    const check = async (): Promise<Health> => {
      checks++
      return { status: 'ok', problems: [], counts: null }
    }
    const telemetry = { hasLogger: false, report() {}, failure() {} }
    const { onHealthChange } = createHealthChanges({ check, telemetry, clock })
    expect(timers).toEqual([])
    const removals = Array.from({ length: 5 }, () => onHealthChange(() => {}))
    for (let i = 1; i <= 3; i++) {
      expect(timers).toMatchObject([{ ms: 10 * SECOND }])
      timers.pop()?.callback()
      await new Promise((resolve) => setImmediate(resolve))
      expect(checks).toBe(i)
    }
    for (const remove of removals) remove()
    timers.pop()?.callback()
    await new Promise((resolve) => setImmediate(resolve))
    expect(timers).toEqual([])
  })

  it('L48 is logged with the meaning of a problem whose message quotes names of deliveries', async () => {
    const lines: string[] = []
    const telemetry = {
      hasLogger: true,
      report: (_level: string, _fields: object, message: string) => void lines.push(message),
      failure() {},
    }
    const problems = [
      ...problemOfTurnedAway({ refused: 1, deleted: 0, counted: [['canary created', 2]] }),
      problemOf('other_items_only', 'all are for the item canary'),
    ]
    const check = async (): Promise<Health> => ({ status: 'degraded', problems, counts: null })
    const { health, close } = createHealthChanges({ check, telemetry, clock: systemClock })
    const found = await health()
    close()
    expect(found.problems.map(({ message }) => message).join()).toMatch(/canary.*canary/)
    expect(lines).toHaveLength(1)
    for (const { code } of problems) expect(lines[0]).toContain(PROBLEMS[code].means)
    expect(lines[0]).not.toContain('canary')
  })

  it('K60 takes a listener that throws or rejects, and still calls the others', async () => {
    quietWarnings()
    const logged = captureDebug()
    const { marketplace, counted } = await watched()
    marketplace.onHealthChange(() => {
      throw new Error('no pager')
    })
    marketplace.onHealthChange((() => Promise.reject(new Error('no network'))) as () => void)
    const statuses: string[] = []
    marketplace.onHealthChange(({ status }) => statuses.push(status))
    counted({ dead: 1 })
    expect((await marketplace.health()).status).toBe('degraded')
    expect(statuses).toEqual(['degraded'])
    // Without the text, which may repeat what was received.
    expect(logged.join()).toMatch(
      /listeners A listener of onHandlerError or onHealthChange failed: Error, whose message .*health-changes\.test/,
    )
    expect(() => marketplace.onHealthChange('no function' as never)).toThrow(
      expect.objectContaining({ code: 'argument_invalid' }),
    )
  })
})

describe('K70 a problem that appears and ends', () => {
  it('is a gauge of its code and a line of the log', async () => {
    quietWarnings()
    const { scrape } = await startScraping()
    const lines: [string, LogFields, string][] = []
    const logger = {
      info: (fields: LogFields, message: string) => lines.push(['info', fields, message]),
      warn: (fields: LogFields, message: string) => lines.push(['warn', fields, message]),
      error: (fields: LogFields, message: string) => lines.push(['error', fields, message]),
    }
    const { clock, jump } = jumpingClock()
    let accepts = false
    const { marketplace, deliver } = await createScene({
      worker: false,
      clock,
      logger,
      verifyDelivery: () => accepts,
    })
    await marketplace.start()
    const gauges = async () => {
      jump(6 * SECOND)
      const series = [...(await scrape())].filter(([name]) => name.includes('health_problem'))
      expect(series).toHaveLength(Object.keys(PROBLEMS).length)
      return series.flatMap(([name, value]) => (value === 0 ? [] : [/code="(\w+)"/.exec(name)?.[1]]))
    }
    expect(await gauges()).toEqual([])
    for (let i = 0; i < 3; i++) await deliver(DELIVERY)
    expect(await gauges()).toEqual(['deliveries_refused'])
    await marketplace.health()
    accepts = true
    for (let i = 0; i < 5; i++) await deliver(DELIVERY)
    expect(await gauges()).toEqual([])
    expect(lines.filter(([, fields]) => 'status' in fields)).toEqual([
      [
        'warn',
        { status: 'degraded', problems: 'deliveries_refused' },
        expect.stringContaining('403 delivery_refused. Check verifyDelivery'),
      ],
      ['info', { status: 'ok' }, 'Health is ok again'],
    ])
  })
})

async function watched() {
  // The checks that come every 10 s come at once.
  const { clock: jumping, jump } = jumpingClock()
  const clock: Clock = {
    ...jumping,
    setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms === 10 * SECOND ? 1 : ms),
  }
  const inner = createSqlStore(createSqliteEngine({ path: ':memory:', clock }), clock)
  let extra = {}
  let checks = 0
  const store = {
    ...inner,
    counts: async () => {
      checks++
      return { ...(await inner.counts()), ...extra }
    },
  }
  const marketplace = openMarketplace(await startPlatform(), {
    store: storeOption(store),
    clock,
    worker: false,
  })
  await marketplace.start()
  const edges: string[] = []
  const unsubscribe = marketplace.onHealthChange(({ status, problems }, before) =>
    edges.push(`${before.status} > ${status} ${problems.map(({ code }) => code).join(' ')}`),
  )
  return {
    jump,
    marketplace,
    edges,
    unsubscribe,
    checks: () => checks,
    counted(counts: object) {
      extra = counts
    },
  }
}
