import { describe, expect, it } from '@jest/globals'
import type { CompiledQuery } from 'kysely'
import type { ReadClaim, Store } from '../lib/store/store.js'
import { ENGINE_NAMES, useEngine } from './support/engines.js'
import { eventOf } from './support/events.js'
import { createScene } from './support/scene.js'
import { openStoreWithSql, type StoreWithSql } from './support/store-with-sql.js'
import { until } from './support/until.js'

const MANY = 10_000
const HOUR = 3_600_000
const STATISTICS = {
  // Nobody but an operator makes any.
  SQLite: ['none', 'fresh'],
  PostgreSQL: ['none', 'of before', 'fresh'],
} as const

describe.each(ENGINE_NAMES)('with ten thousands of rows in front, on %s', (engineName) => {
  const engine = useEngine(engineName)

  it.each(STATISTICS[engineName])(
    'G6 a claim of a read costs what it did (statistics: %s)',
    async (statistics) => {
      await costsTheSame({
        statistics,
        index: 'subscriptions_due',
        claim: (store) => store.claimRead({ leaseMs: HOUR, except: ['busy'], lane: 'new' }),
        crowd: [subscriptions('given up', 'null'), subscriptions('later', `${Date.now() + HOUR}`)],
      })
    },
  )

  it('a question about a business looks at no more than a thousand, and at those first that were read', async () => {
    const lab = await openStoreWithSql(await engine.freshAddress())
    const { store, sql } = lab
    await store.accept([eventOf('s1')])
    const claim = (await store.claimRead({ leaseMs: HOUR, except: [], lane: 'new' })) as ReadClaim
    const record = { uid: 's1', business_uid: 'b1', purchasable_uid: 'p', purchase_state: 'purchased' }
    const found = { record, state: 'purchased', gone: null, confirmed: true }
    await store.finishRead(claim, { found, settled: true, failure: null, progress: null, nextInMs: HOUR })
    await sql(subscriptions('made up', `${Date.now() + HOUR}`))
    await sql(`update subscriptions set business_uid = 'b1'`)
    const known = await store.subscriptionsOf('b1')
    expect(known).toHaveLength(1_000)
    expect(known.filter(({ state }) => state === 'purchased').map((each) => each.subscriptionUid)).toEqual([
      's1',
    ])
  })

  async function costsTheSame(options: {
    statistics: 'none' | 'of before' | 'fresh'
    index: string
    claim(store: Store): Promise<unknown>
    crowd: string[]
  }) {
    const { statistics, index, claim, crowd } = options
    const lab = await openStoreWithSql(await engine.freshAddress())
    const { store, sql } = lab
    if (engineName === 'PostgreSQL')
      for (const table of ['subscriptions', 'journal'])
        await sql(`alter table ${table} set (autovacuum_enabled = false)`)
    await store.accept(Array.from({ length: 8 }, (_, i) => eventOf(`s${i}`)))
    if (statistics === 'of before') await sql('analyze')
    const queries = await lab.queriesOf(() => claim(store))
    const query = queries.find((each) => /with due as/.test(each.sql)) as CompiledQuery
    // The claimed ones are due again.
    await sql(`update subscriptions set refresh_at = 1, lease_token = null where lease_token is not null`)
    const isPostgres = engineName === 'PostgreSQL'
    const alone = isPostgres ? costOf(await planOf(lab, query)) : undefined
    for (const statement of crowd) await sql(statement)
    if (statistics === 'fresh') await sql('analyze')
    if (!alone) return goesByIndex(await lab.explain('explain query plan', query), index)

    const plan = await planOf(lab, query)
    const crowded = costOf(plan)
    expect(plan.map((node) => node['Node Type'])).not.toContain('Seq Scan')
    expect(plan.map((node) => node['Index Name'])).toContain(index)
    // An index of 10,000 rows has a level or two more than one of 8.
    expect(crowded.rows).toBeLessThanOrEqual(alone.rows + 30)
    expect(crowded.pages).toBeLessThanOrEqual(alone.pages + 60)
  }
})

describe.each(ENGINE_NAMES)('G14 after months of deliveries on %s', (engineName) => {
  const engine = useEngine(engineName)
  const DAY = 24 * HOUR

  it('the sweeper keeps to the keeping times, and leaves what is owed', async () => {
    const lab = await openStoreWithSql(await engine.freshAddress())
    const { sql } = lab
    const now = Date.now()
    await sql(journal('done', 'done', now - 8 * DAY, 3_000))
    await sql(journal('young', 'done', now - 6 * DAY, 200))
    await sql(journal('dead', 'dead', now - 31 * DAY, 1_000))
    await sql(journal('fresh dead', 'dead', now - 29 * DAY, 20))
    await sql(journal('owed', 'waiting', now - 80 * DAY, 20, 'change'))
    await sql(journal('told', 'done', now - 91 * DAY, 1_000, 'change'))
    await sql(journal('told lately', 'done', now - 89 * DAY, 20, 'change'))
    await sql(subscriptions('made up', 'null', 1_000, now - 31 * DAY))
    const { marketplace } = await createScene({ store: lab.store })
    await marketplace.start()
    const count = async (table: string) =>
      Number((await sql<{ rows: number }>(`select count(*) as rows from ${table}`))[0]?.rows)
    await until('what is over is gone', async () => (await count('journal')) === 260, 15_000)
    await until('so are made-up subscriptions', async () => (await count('subscriptions')) === 0, 15_000)
    const left = await sql<{ word: string; rows: number }>(
      `select name as word, count(*) as rows from journal group by name order by name`,
    )
    expect(left.map(({ word, rows }) => [word, Number(rows)])).toEqual([
      ['fresh dead', 20],
      ['owed', 20],
      ['told lately', 20],
      ['young', 200],
    ])
  }, 40_000)
})

/** What the plan of PostgreSQL did, node by node. */
async function planOf({ explain }: StoreWithSql, query: CompiledQuery): Promise<PlanNode[]> {
  const [row] = await explain('explain (analyze, buffers, timing off, format json)', query)
  const [{ Plan }] = JSON.parse(String(row?.['QUERY PLAN'])) as [{ Plan: PlanNode }]
  return allOf(Plan)
}

/** Rows that it looked at in tables, and pages. */
function costOf(plan: PlanNode[]) {
  const [top] = plan as [PlanNode]
  return {
    rows: plan.filter((node) => node['Relation Name']).reduce((sum, node) => sum + rowsOf(node), 0),
    pages: top['Shared Hit Blocks'] + top['Shared Read Blocks'],
  }
}

/** SQLite does not count: its plan says how each table is gone through. */
function goesByIndex(plan: Record<string, unknown>[], index: string) {
  const steps = plan.map(({ detail }) => String(detail))
  expect(steps.filter((step) => /^SCAN (subscriptions|journal|leased|earlier)\b/.test(step))).toEqual([])
  expect(steps.filter((step) => /TEMP B-TREE FOR ORDER BY/.test(step))).toEqual([])
  expect(steps.find((step) => step.includes(`USING INDEX ${index} `))).toMatch(/(refresh_at|due_at)</)
}

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: PlanNode[]
}

function allOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(allOf)]
}

function rowsOf(node: PlanNode): number {
  const each =
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return each * node['Actual Loops']
}

const NUMBERS = (count: number) =>
  `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})`

function subscriptions(word: string, refreshAt: string, count = MANY, requestedAt = 1): string {
  return `insert into subscriptions
    (subscription_uid, business_uid, wanted, done, requested_at, refresh_at, lane, lapses, created_at)
    ${NUMBERS(count)} select '${word} ' || n, 'business ' || n, 1, 0, ${requestedAt}, ${refreshAt}, 'new', 0, 1 from numbers`
}

function journal(word: string, status: string, at: number, count: number, kind = 'event'): string {
  return `insert into journal
    (id, kind, name, topic, key, payload, status, attempts, received_at, settled_at)
    ${NUMBERS(count)} select '${word} ' || n, '${kind}', '${word}', '${kind}', '${word} ' || n, '{}', '${status}', 0, ${at}, ${at}
    from numbers`
}
