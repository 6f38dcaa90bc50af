import { expect, it } from '@jest/globals'
import type { Store } from '../../../lib/store/port/store.js'
import { EVERY_TOPIC, eventOf, handling } from '../../support/conformance/lab.js'
import { useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

const MANY = 20_000
/** The index of a small table has a root only. */
const MAX_PAGES = 100

const engine = useEngine('PostgreSQL')

it('K33 a plan that PostgreSQL keeps since the tables were small reads no more rows when they are large', async () => {
  const lab = await openStoreWithSql(await engine.freshAddress())
  await handling(lab.store, EVERY_TOPIC)
  const asked = await lab.queriesOf(() => acceptAllKinds(lab.store))
  const kept = asked.filter(({ keepsPlan }) => keepsPlan)
  expect(kept.map(({ text }) => /^\s*insert into (\w+)/.exec(text)?.[1]).sort()).toEqual([
    'journal',
    'lanes',
    'subscriptions',
  ])

  await lab.engine.write(async (trx) => {
    const sql = async <Row>(text: string) => (await trx.query({ text, values: [] })) as Row[]
    for (const name of ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin'])
      await sql(`set local enable_${name} = on`)
    await sql('set local plan_cache_mode = force_generic_plan')
    // The first run makes the plan, which nothing in this transaction invalidates.
    for (const [i, { text }] of kept.entries()) {
      await sql(`prepare kept_${i} as ${text}`)
      await sql(`execute kept_${i}('[]')`)
    }
    for (const crowd of CROWDS) await sql(crowd)
    for (const [i, { text, values }] of kept.entries()) {
      const [row] = await sql<Record<string, unknown>>(
        `explain (analyze, buffers, timing off, format json) execute kept_${i}('${values[0]}')`,
      )
      const [{ Plan }] = JSON.parse(String(row?.['QUERY PLAN'])) as [{ Plan: PlanNode }]
      const read = allOf(Plan).filter((node) => node['Node Type'] !== 'ModifyTable')
      const rows = Math.max(0, ...read.filter((node) => node['Relation Name']).map(rowsOf))
      const pages = Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
      expect({ text, rows, pages, isSmall: rows <= EVERY_TOPIC.length && pages <= MAX_PAGES }).toMatchObject({
        isSmall: true,
      })
    }
  })
}, 60_000)

/** Every kind of refresh request, so that a statement that joins may not claim that it keeps its plan. */
function acceptAllKinds(store: Store): Promise<unknown> {
  const of = { subscriptionUid: 's1', businessUid: 'b1' }
  const refreshes = [
    { kind: 'subscription', ...of, purchasableUid: null, announces: 'end' },
    { kind: 'stored', ...of },
    { kind: 'business', businessUid: 'b1', install: null },
  ] as const
  return store.accept(refreshes.map((refresh) => ({ ...eventOf('s1'), refresh })))
}

const numbers = `generate_series(1, ${MANY}) as numbers(n)`
const CROWDS = [
  `insert into subscriptions (subscription_uid, business_uid, generation, settled_generation, requested_at, refresh_at,
      urgency, cause, unread, verifying, lapses, quiet_until_read, created_at)
    select 'many ' || n, 'b1', 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1 from ${numbers}`,
  `insert into lanes (key, topic, due_at, lapses) select 'many ' || n, 'event:x', 1, 0 from ${numbers}`,
  `insert into journal (id, kind, name, topic, key, payload, status, attempts, received_at)
    select 'many ' || n, 'event', 'x', 'event:x', 'many ' || n, '{}', 'pending', 0, 1 from ${numbers}`,
]

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: PlanNode[]
}

function allOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(allOf)]
}

function rowsOf(node: PlanNode): number {
  return (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
}
