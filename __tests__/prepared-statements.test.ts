import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { systemClock } from '../lib/clock.js'
import type { PostgresClient } from '../lib/postgres/connection.js'
import type { PostgresPool } from '../lib/postgres/pool.js'
import { settings } from '../lib/postgres/transactions.js'
import { postgresStore, storeFor } from '../lib/store-option.js'
import { sleep } from '../lib/waiting.js'
import { onCleanUp } from './support/clean-up.js'
import { eventOf } from './support/events.js'
import { subscriptions } from './support/many-subscriptions.js'
import { engine } from './support/one-postgres.js'

describe('statements on PostgreSQL', () => {
  it('are prepared on a connection that often runs them', async () => {
    const { work, prepared, stored } = await opened()
    await work(4)
    expect(await prepared()).toEqual([])
    await work(4)
    const kinds = (await prepared()).map(({ from_sql }) => from_sql)
    // Those of a delivery are in one message; the driver prepares the others.
    expect(new Set(kinds)).toEqual(new Set([true, false]))
    await work(4)
    expect(await stored()).toBe(12)
  })

  it('K33 that accept deliveries are planned anew every second, so that they do not go on reading all of a table that has grown', async () => {
    const { pool, work, accept, plans } = await opened()
    await work(1)
    await pool.query('analyze')
    for (let i = 0; i < 10; i++) await accept('s1')
    await pool.query(`set search_path = marketplace_webhooks; ${subscriptions('more', '1', 5_000)}`)
    await sleep(1_100, systemClock)
    await accept('s1')
    const scans = (await plans()).flatMap(scansOf)
    expect(scans.length).toBeGreaterThan(0)
    for (const scan of scans) expect(scan).toHaveProperty('Index Cond')
  })

  it('K33 that do not accept deliveries are planned each time', async () => {
    const { work, prepared } = await opened()
    // Five runs as texts, then five more before PostgreSQL would keep a plan.
    await work(15)
    const others = (await prepared()).filter(({ from_sql }) => !from_sql)
    expect(others.length).toBeGreaterThan(0)
    for (const { generic_plans } of others) expect(generic_plans).toBe('0')
  })

  it.each([
    ['the app resets the connections of its pool', ({ pool }: Opened) => pool.query('deallocate all')],
    [
      'a migration changes a column that statements return',
      ({ pool }: Opened) =>
        pool.query(
          'alter table marketplace_webhooks.subscriptions alter column subscription_uid type varchar(300)',
        ),
    ],
    [
      'a pooler gives the connection to another client of the process',
      async ({ lendAsAnother }: Opened) => lendAsAnother(),
    ],
  ])('K32 are sent as texts, and store everything, after %s', async (_what, lose) => {
    const lab = await opened()
    await lab.work(8)
    await lose(lab)
    const left = namesOf(await lab.prepared())
    await lab.work(8)
    expect(namesOf(await lab.prepared())).toEqual(left)
    expect(await lab.stored()).toBe(16)
  })
})

type Opened = Awaited<ReturnType<typeof opened>>

/** A store over a pool of one connection. */
async function opened() {
  const pool = new pg.Pool({ connectionString: await engine.freshAddress(), max: 1 })
  onCleanUp(() => pool.end())
  let lent = (client: pg.PoolClient) => client
  const ownPool: PostgresPool = {
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect(callback) {
      pool.connect((error, client) => callback(error, client && (lent(client) as unknown as PostgresClient)))
    },
    options: { max: 1 },
  }
  const store = storeFor(postgresStore(ownPool), systemClock)
  onCleanUp(() => store.close())
  await store.open()
  let count = 0
  const rowsOf = async (text: string) => (await pool.query(text)).rows
  // A worker has lived through its start.
  await pool.query(`update marketplace_webhooks.handlers set ready = 1 where topic = 'worker'`)
  return {
    pool,
    /** From now on the store gets the same connection as another object. */
    lendAsAnother() {
      const others = new WeakMap<pg.PoolClient, pg.PoolClient>()
      lent = (client) => {
        const other = others.get(client) ?? new Proxy(client, { get: memberOf })
        others.set(client, other)
        return other
      }
    },
    /** Accepts a record, which requests a read of a subscription that is known. */
    accept: (subscriptionUid: string) =>
      store.accept([{ ...eventOf('s1'), refresh: { kind: 'known', subscriptionUid, businessUid: 'b1' } }]),
    /** The plans that the connection has for statements of deliveries. */
    async plans() {
      const plans: PlanNode[] = []
      for (const { name } of await rowsOf('select name from pg_prepared_statements where from_sql')) {
        await pool.query(`begin; ${settings('marketplace_webhooks', 'kept')}`)
        const [row] = await rowsOf(`explain (format json) execute ${name}('[]')`)
        plans.push(row['QUERY PLAN'][0].Plan)
        await pool.query('rollback')
      }
      return plans
    },
    /** Accepts events, and looks up subscriptions, one after the other. Each event requests a read of a business. */
    async work(times: number) {
      for (let i = 0; i < times; i++) {
        const event = eventOf(`s${++count}`)
        await store.accept([{ ...event, refresh: { kind: 'business', businessUid: 'b1', install: null } }])
        await store.subscriptionsOf('b1')
      }
    },
    prepared: () => rowsOf('select name, from_sql, generic_plans from pg_prepared_statements order by name'),
    stored: async () => (await rowsOf('select 1 from marketplace_webhooks.journal')).length,
  }
}

const namesOf = (statements: { name: string }[]) => statements.map(({ name }) => name)

/** A member of a connection, bound to it. */
function memberOf(client: pg.PoolClient, name: string | symbol) {
  const member = Reflect.get(client, name)
  return typeof member === 'function' ? member.bind(client) : member
}

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  Plans?: PlanNode[]
}

/** The nodes of a plan that read subscriptions. */
function scansOf(node: PlanNode): PlanNode[] {
  const isScan = node['Relation Name'] === 'subscriptions' && node['Node Type'].includes('Scan')
  return [...(isScan ? [node] : []), ...(node.Plans ?? []).flatMap(scansOf)]
}
