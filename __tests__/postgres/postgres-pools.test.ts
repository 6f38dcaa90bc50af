import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { postgresStore } from '../../lib/index.js'
import type { PostgresClient } from '../../lib/postgres/connection.js'
import type { Store } from '../../lib/store/port/store.js'
import { onCleanUp } from '../support/clean-up.js'
import { engine } from '../support/engines/one-postgres.js'
import { openedStore, storeOf } from '../support/engines/open-store.js'
import { createTransactionPooler } from '../support/engines/transaction-pooler.js'
import { eventOf } from '../support/events.js'

describe('a pool of the app', () => {
  it('with a pipeline gets all statements of a batch of deliveries before the first answer', async () => {
    const { store, sent } = await opened({ pipeline: true })
    await acceptAtOnce(store, 1)
    sent.length = 0
    await acceptAtOnce(store, 100)
    expect(sent.filter(isOfBatch)).toEqual([
      ...Array(4).fill(expect.stringMatching(/^sends /)),
      ...Array(4).fill(expect.stringMatching(/^gets /)),
    ])
    const before = sent.slice(0, sent.findIndex(isOfBatch))
    expect(before).toContainEqual(expect.stringMatching(/^sends begin/))
    expect(await storedIn(store)).toBe(101)
  })

  it('without a pipeline gets one statement after the other, and stores the same', async () => {
    const { store, sent } = await opened({})
    await acceptAtOnce(store, 100)
    const ofBatch = sent.filter(isOfBatch).slice(-8)
    expect(ofBatch.map((each) => each.split(' ')[0])).toEqual(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? 'sends' : 'gets')),
    )
    expect(await storedIn(store)).toBe(100)
  })

  it('C26 stores the others of a batch when one event cannot be stored, in a pipeline too', async () => {
    const { store } = await opened({ pipeline: true })
    const odd = { ...eventOf('odd'), payload: '"\u0000"' }
    const ended = await Promise.allSettled(
      [
        eventOf('s1'),
        { ...odd, key: 'k'.repeat(10_000) + Array.from({ length: 4_000 }, Math.random) },
        eventOf('s2'),
      ].map((event) => store.accept([event])),
    )
    expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await storedIn(store)).toBe(2)
    // The connection is not left inside of a transaction.
    await acceptAtOnce(store, 3)
    expect(await storedIn(store)).toBe(5)
  })
})

describe('a pool of the app of two connections', () => {
  it('opens also if its size is a text, as settings of the environment are', async () => {
    const { store } = await opened({ max: '2' })
    await acceptAtOnce(store, 3)
    expect(await storedIn(store)).toBe(3)
  })
})

describe('statements on PostgreSQL', () => {
  it.each([true, false])(
    'K33 are prepared once, and planned each time unless they only insert (pipeline: %s)',
    async (pipeline) => {
      const { store, pool } = await opened({ pipeline })
      for (let i = 0; i < 15; i++) await store.accept([eventOf(`s${i}`)])
      const { rows } = await pool.query(
        'select name, statement, calls, generic_plans from (select *, generic_plans + custom_plans as calls from pg_prepared_statements) as prepared',
      )
      const inserts = rows.filter(({ statement }) => /insert into journal/.test(statement))
      expect(inserts).toHaveLength(1)
      expect(Number(inserts[0].calls)).toBeGreaterThanOrEqual(14)
      for (const { statement, generic_plans } of rows.filter((each) => each.statement.includes('$1'))) {
        const onlyInserts = /^\s*insert into (journal|lanes|subscriptions)/.test(statement)
        expect([statement, Number(generic_plans) > 0]).toEqual([statement, onlyInserts])
      }
    },
  )

  it.each([
    ['the app resets the connections of its pool', 'deallocate all'],
    [
      'a migration changes a column that statements return',
      'alter table marketplace_webhooks.subscriptions alter column subscription_uid type varchar(300)',
    ],
  ])('K32 are prepared anew on another connection after %s', async (_what, statement) => {
    const { store, pool } = await opened({ pipeline: true })
    for (let i = 0; i < 3; i++) await store.accept([eventOf(`s${i}`)])
    await store.subscriptionsOf('b1')
    await pool.query(statement)
    for (let i = 3; i < 6; i++) await store.accept([eventOf(`s${i}`)])
    expect(await store.subscriptionsOf('b1')).toHaveLength(6)
    expect(await storedIn(store)).toBe(6)
  })
})

describe('K32 a pooler in transaction mode that loses prepared statements', () => {
  it('works with preparedStatements: false', async () => {
    const pool = createTransactionPooler(await engine.freshAddress())
    const store = await openedStore(postgresStore({ pool, preparedStatements: false }))
    for (let i = 0; i < 10; i++) await acceptAtOnce(store, 3)
    expect(await storedIn(store)).toBe(30)
  })

  it('is refused without that option, with the next step', async () => {
    const store = storeOf(postgresStore(createTransactionPooler(await engine.freshAddress())))
    const failing = async () => {
      await store.open()
      for (let i = 0; i < 10; i++) await store.accept([eventOf(`s${i}`)])
    }
    await expect(failing()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('preparedStatements: false'),
    })
  })
})

/** A store over a pool of two connections, which notes what it sends and gets. One at a time is in use. */
async function opened(config: { pipeline?: boolean; max?: string }) {
  const pool = new pg.Pool({
    connectionString: await engine.freshAddress(),
    max: 2,
    ...config,
  } as pg.PoolConfig)
  onCleanUp(() => pool.end())
  const sent: string[] = []
  const noting = (client: PostgresClient): PostgresClient => ({
    pipeline: client.pipeline === true,
    async query(query) {
      sent.push(`sends ${query.text.trim()}`)
      try {
        return await client.query(query)
      } finally {
        sent.push(`gets ${query.text.trim()}`)
      }
    },
    release: (destroy) => client.release(destroy),
    on: (event, listener) => client.on(event, listener),
    off: (event, listener) => client.off(event, listener),
  })
  const store = await openedStore(
    postgresStore({
      on: (event, listener) => pool.on(event, listener),
      off: (event, listener) => pool.off(event, listener),
      connect(callback) {
        pool.connect((error, client) =>
          callback(error, client && noting(client as unknown as PostgresClient)),
        )
      },
      options: { max: (config.max ?? 2) as number },
    }),
  )
  return { store, pool, sent }
}

async function acceptAtOnce(store: Store, count: number) {
  await Promise.all(Array.from({ length: count }, (_, n) => store.accept([eventOf(`s${n}`)])))
}

const storedIn = async (store: Store) => (await store.listEntries({ limit: 1_000 })).length

/** The settings of a batch, and its statements. */
function isOfBatch(text: string): boolean {
  return /( writes'|insert into)/.test(text)
}
