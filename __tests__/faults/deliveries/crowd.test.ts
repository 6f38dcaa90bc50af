import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import { refusedBusinesses } from '../../../lib/operations/health/problems-of-counts.js'
import { COUNTED_UP_TO, type ReadClaim } from '../../../lib/store/port/store.js'
import type { Query } from '../../../lib/store/sql/sql.js'
import { createSubscriptionCounts } from '../../../lib/store/subscriptions/counts.js'
import { claimOne } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { planOfPostgres, rowsOf } from '../../support/engines/postgres-plan.js'
import { type PlanStep, walksOf } from '../../support/engines/sqlite-plan.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql, type StoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { ADDRESSES, answering, purchaseOf } from '../../support/platform/answering.js'
import { openMarketplace } from '../../support/scene.js'
import { subscriptions } from '../../support/scenes/many-subscriptions.js'
import { until } from '../../support/until.js'

const MANY = 10_000

const STATISTICS = {
  // SQLite creates these statistics only if an operator asks for them.
  SQLite: ['none', 'fresh'],
  PostgreSQL: ['none', 'of few rows', 'of a quiet time', 'fresh'],
} as const

describe.each(ENGINE_NAMES)('with tens of thousands of other rows, on %s', (engineName) => {
  const engine = useEngine(engineName)

  it.each(STATISTICS[engineName])(
    'G6 no statement about subscriptions visits more rows than it needs (statistics: %s)',
    async (statistics) => {
      const address = await engine.freshAddress()
      const lab = await openStoreWithSql(address)
      const { store, sql } = lab
      if (engineName === 'PostgreSQL') await sql('alter table subscriptions set (autovacuum_enabled = false)')
      if (statistics === 'of a quiet time') await beQuiet(lab, address)
      await store.accept(Array.from({ length: 8 }, (_, i) => eventOf(`s${i}`)))
      if (statistics === 'of few rows') await sql('analyze')
      const now = Date.now()
      await sql(subscriptions('given up', 'null', MANY, `${now} - n`))
      await sql(subscriptions('made up', `${now + HOUR}`, MANY, `${now} - n`, `'platform_refused'`))
      await sql(subscriptions('read', `${now + HOUR}`, MANY, now, 'null', 0))
      await sql(subscriptions('overdue', '1', MANY, now, 'null', 0))
      const readAt = `case when subscription_uid like 'read %' then ${now} else 1 end`
      await sql(`update subscriptions set state = 'purchased', read_at = ${readAt} where unread = 0`)
      await sql('update subscriptions set owed_since = requested_at where settled_generation = 0')
      if (statistics === 'fresh') await sql('analyze')
      const business = { kind: 'business', businessUid: 'b1', install: null } as const
      const claim = (await claimOne(store, { leaseMs: HOUR, except: [], urgencies: [1] })) as ReadClaim
      const works: [string, () => Promise<unknown>, most?: number][] = [
        ['subscriptionsOf', () => store.subscriptionsOf('business 77')],
        ['claimReads', () => claimOne(store, { leaseMs: HOUR, except: ['b1'], urgencies: [0, 2, 3, 4, 1] })],
        ['requestRefresh', () => store.requestRefresh(business)],
        ['accept', () => store.accept([eventOf('s1', 'b9'), eventOf('new')])],
        ['renewRead', () => store.renewRead(claim, HOUR)],
        [
          'finishRead',
          () =>
            store.finishRead(claim, {
              settled: false,
              failure: 'token_refused',
              progress: null,
              nextInMs: HOUR,
            }),
        ],
        ['readOthers', () => store.readOthers(claim, { which: 'failing', pauseMs: 0, limit: 20 }), 2_100],
        [
          'prune',
          () => store.prune({ eventsMs: HOUR, changesMs: HOUR, actionsMs: HOUR, deadMs: HOUR }),
          100_500,
        ],
        ['counts', () => store.counts(HOUR), 7 * COUNTED_UP_TO],
      ]
      const asked: [name: string, most: number, query: Query][] = []
      for (const [name, work, most = 500] of works) {
        for (const query of await lab.queriesOf(work)) {
          if (/subscriptions/.test(query.text) && !/journal/.test(query.text)) asked.push([name, most, query])
        }
      }
      for (const [name, most, query] of asked) {
        if (engineName === 'SQLite') {
          const plan = (await lab.explain('explain query plan', query)) as unknown as PlanStep[]
          const scans = plan.filter(({ detail }) =>
            /^SCAN subscriptions(?! USING (COVERING )?INDEX)/.test(detail),
          )
          expect([name, query.text, scans, walksOf(query, plan)]).toEqual([name, query.text, [], []])
          continue
        }
        const plan = await planOfPostgres(lab, query)
        const scans = plan.filter((node) => node['Node Type'] === 'Seq Scan')
        const rows = plan.filter((node) => node['Relation Name']).reduce((sum, node) => sum + rowsOf(node), 0)
        expect([name, query.text, scans.length]).toEqual([name, query.text, 0])
        expect([name, query.text, rows <= most]).toEqual([name, query.text, true])
      }
    },
    60_000,
  )

  it('E22 a requested read begins at once beside very many overdue reconciles, imports and forged rows', async () => {
    const lab = await openStoreWithSql(await engine.freshAddress())
    const { store, sql } = lab
    const overdue = Number(process.env.OVERDUE ?? MANY)
    for (let batch = 0; batch < overdue / MANY; batch++) {
      await sql(subscriptions(`overdue ${batch}`, '1', MANY, 1, 'null', 0, 4))
      await sql(subscriptions(`import ${batch}`, '1', MANY / 10, 1, 'null', 1, 2))
      await sql(subscriptions(`made up ${batch}`, '1', MANY / 10, 1, 'null', 1, 1))
    }
    await sql(subscriptions('asked', `${Date.now() + HOUR}`, 5, 1, 'null', 0, 4))
    const begun: [string, number][] = []
    openMarketplace(ADDRESSES, {
      store: storeOption(store),
      platform: answering(async (uid) => {
        begun.push([uid, performance.now()])
        await new Promise((resolve) => setTimeout(resolve, 100))
        return [purchaseOf(uid, `business ${uid.split(' ').at(-1)}`)]
      }),
      reads: { concurrency: 4 },
    })
    await until('the refresher is busy', () => begun.length >= 20)
    const waits: number[] = []
    for (let i = 1; i <= 5; i++) {
      const asked = performance.now()
      await store.accept([eventOf(`asked ${i}`, `business ${i}`)])
      waits.push(
        (await until('the subscription is read', () => begun.find(([uid]) => uid === `asked ${i}`)))[1] -
          asked,
      )
    }
    if (process.env.OVERDUE)
      process.stdout.write(`${engineName}: waits of ${waits.map(Math.round).join(', ')} ms\n`)
    const reads = (what: string) => begun.filter(([uid]) => uid.startsWith(what)).length
    for (const what of ['overdue', 'import', 'made up']) expect([what, reads(what) > 0]).toEqual([what, true])
    // Behind the overdue ones it would begin after minutes.
    expect(Math.max(...waits)).toBeLessThan(5_000)
  }, 120_000)

  it('E24 a purchase is among the next few reads although ten thousand forged rows wait for theirs', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    await sql(subscriptions('made up', '1', MANY, 1, 'null', 1, 1))
    // The oldest forged row, which must not wait for ever either.
    await sql(`update subscriptions set refresh_at = 0 where subscription_uid = 'made up 7777'`)
    await store.accept([eventOf('purchased', 'customer')])
    const begun: string[] = []
    openMarketplace(ADDRESSES, {
      store: storeOption(store),
      platform: answering(async (uid) => {
        begun.push(uid)
        await new Promise((resolve) => setTimeout(resolve, 20))
        return []
      }),
      reads: { concurrency: 4 },
    })
    await until('some rows are read', () => begun.length >= 40)
    expect(begun.slice(0, 8)).toContain('purchased')
    expect(begun.slice(0, 8)).toContain('made up 7777')
    const later = begun.length
    await store.accept([eventOf('purchased later', 'another customer')])
    await until('the purchase is read', () => begun.includes('purchased later'))
    const readBefore = begun.indexOf('purchased later') - later
    // These were already leased, or leased by the claim under way.
    expect(readBefore).toBeLessThanOrEqual(32)
  }, 60_000)

  it('E25 a few refusals among very many reads are not reported as all', async () => {
    const { engine: sqlEngine, sql } = await openStoreWithSql(await engine.freshAddress())
    await sql(subscriptions('read', `${Date.now() + HOUR}`, 100, 1, 'null', 0))
    await sql(`update subscriptions set state = 'purchased'`)
    const refuse = (codes: string, where: string) =>
      sql(
        `update subscriptions set failure = ${codes}, failing_since = ${codes === "'platform_timeout'" ? 'null' : 1} where ${where}`,
      )
    await refuse(`'platform_refused'`, `subscription_uid like 'read 1%'`)
    const counts = createSubscriptionCounts(sqlEngine, 10)
    const problems = async () => refusedBusinesses(await sqlEngine.read(counts))
    expect(await problems()).toEqual([])
    await refuse(`'platform_timeout'`, 'failure is null')
    expect(await problems()).toEqual([])
    await refuse(`'token_refused'`, `failure = 'platform_timeout' and subscription_uid <> 'read 99'`)
    // Which of the two refusals is counted first is the database's choice.
    expect(await problems()).toMatchObject([{ code: expect.stringMatching(/^(reads|tokens)_refused$/) }])
  })

  it('E25 the count of refused reads goes further than that of other reads, so that it shows whether they are most', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    await sql(subscriptions('read', `${Date.now() + HOUR}`, 3_000, 1, 'null', 0))
    await sql(`update subscriptions set state = 'purchased'`)
    await sql(
      `update subscriptions set failure = 'token_refused', failing_since = 1 where subscription_uid like 'read 1%'`,
    )
    expect(refusedBusinesses(await store.counts())).toEqual([])
    await sql(
      `update subscriptions set failure = 'token_refused', failing_since = 1 where subscription_uid like 'read 2%'`,
    )
    expect(await store.counts()).toMatchObject({ active: 3_000, subscriptions: 1_000, refused: 2_222 })
    expect(refusedBusinesses(await store.counts())).toMatchObject([{ code: 'tokens_refused' }])
  })

  it('E27 a question about a business, and a request, concern what was read and few of the others', async () => {
    const lab = await openStoreWithSql(await engine.freshAddress())
    const { store, sql } = lab
    await store.accept([eventOf('s1')])
    const claim = (await claimOne(store, { leaseMs: HOUR, except: [], urgencies: [1, 2] })) as ReadClaim
    const record = { uid: 's1', business_uid: 'b1', purchasable_uid: 'p', purchase_state: 'purchased' }
    const found = { record, state: 'purchased', gone: null }
    await store.finishRead(claim, { found, settled: true, failure: null, progress: null, nextInMs: HOUR })
    await sql(subscriptions('made up', `${Date.now() + HOUR}`))
    await sql(`update subscriptions set business_uid = 'b1'`)
    const known = await store.subscriptionsOf('b1')
    expect(known).toHaveLength(21)
    expect(known.filter(({ state }) => state === 'purchased').map((each) => each.subscriptionUid)).toEqual([
      's1',
    ])
    await store.requestRefresh({
      kind: 'business',
      businessUid: 'b1',
      install: { installed: false, at: null },
    })
    const requested = await sql<{ uid: string }>(
      'select subscription_uid as uid from subscriptions where uninstalled_at is not null',
    )
    expect(requested.map(({ uid }) => uid).sort()).toEqual(
      known.map(({ subscriptionUid }) => subscriptionUid).sort(),
    )
    await sql(`update subscriptions set unread = 0`)
    expect(await store.subscriptionsOf('b1')).toHaveLength(1_000)
  })

  /** Makes the statistics of a time when many subscriptions were read, and no read was due or requested. */
  async function beQuiet({ sql }: StoreWithSql, address: string) {
    await sql(subscriptions('quiet', `${Date.now() + HOUR}`, MANY, 1, 'null', 0))
    await sql('update subscriptions set settled_generation = 1')
    await engine.server().sql('vacuum analyze', [], new URL(address).pathname.slice(1))
  }
})
