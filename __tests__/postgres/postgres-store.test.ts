import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { postgresStore } from '../../lib/store-option.js'
import { onCleanUp } from '../support/clean-up.js'
import { engine, listeners, sqlAt, terminateAll } from '../support/engines/one-postgres.js'
import { openedStore } from '../support/engines/open-store.js'
import { eventOf } from '../support/events.js'
import { internals } from '../support/internals.js'
import { createScene } from '../support/scene.js'
import { buy } from '../support/scenes/purchases.js'
import { until } from '../support/until.js'

describe('a marketplace on PostgreSQL', () => {
  it('stores what PostgreSQL cannot: NUL and lone surrogates in a state and in the error of a handler', async () => {
    const { platform, marketplace } = await createScene({
      store: await engine.freshAddress(),
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
      platform: {
        async fetch(input, init) {
          const response = await fetch(input, init)
          const text = await response.text()
          const odd = text.replaceAll('"purchased"', '"pur\\u0000chas\\ud800ed"')
          return new Response(odd, { status: response.status, headers: response.headers })
        },
      },
    })
    marketplace.onPurchaseChange(() => {
      throw new Error(`odd \0 text \ud800`)
    })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const entry = await until('the change is dead', async () => {
      const [dead] = await marketplace.journal.list({ status: 'dead' })
      return dead
    })
    expect(entry).toMatchObject({ kind: 'change', error: expect.stringMatching(/odd .* text/s) })
    expect(await marketplace.explain('b1')).toMatchObject({
      entitled: false,
      known: true,
      reason: 'not_purchased',
      subscriptions: [{ pending: false }],
    })
  })
})

describe('a schema that the app names', () => {
  it('contains all tables, and the other schema stays unchanged', async () => {
    const address = await engine.freshAddress()
    const storeIn = (schema: string) => openedStore(postgresStore({ connectionString: address, schema }))
    const [billing, other] = [await storeIn('billing'), await storeIn('Other_1')]
    await billing.accept([eventOf('s1')])
    expect([await billing.counts(), await other.counts()]).toMatchObject([
      { subscriptions: 1 },
      { subscriptions: 0 },
    ])
    expect([await billing.listEntries({}), await other.listEntries({})]).toMatchObject([
      [{ kind: 'event' }],
      [],
    ])
    const rows = await sqlAt<{ schema: string; tables: string }>(
      address,
      `select table_schema as schema, string_agg(table_name, ',' order by table_name) as tables
        from information_schema.tables where table_schema not in ('information_schema', 'pg_catalog')
        group by 1 order by 1`,
    )
    expect(rows.map(({ schema }) => schema)).toEqual(['Other_1', 'billing'])
    for (const { tables } of rows) expect(tables).toContain('journal')
  })

  it.each(['with space', '"quoted"', 'a;drop', ''])('is refused at once if its name is %j', (schema) => {
    expect(() => postgresStore({ connectionString: 'postgres://localhost/x', schema })).toThrow(
      expect.objectContaining({ code: 'config_invalid' }),
    )
  })
})

describe('a pool that the app passes', () => {
  it('stays open and unchanged, and an idle connection that breaks ends nothing', async () => {
    const address = await engine.freshAddress()
    const pool = new pg.Pool({ connectionString: address, max: 4 })
    onCleanUp(() => pool.end())
    const { platform, marketplace } = await createScene({ store: postgresStore(pool) })
    await buy(platform, marketplace, 'b1')
    await listeners(1, address)

    // Without a listener of the app, the next line would end the process.
    await terminateAll(address)
    await until('the marketplace works again', async () => (await marketplace.health()).status === 'ok')
    await listeners(1, address)
    await marketplace.close()
    expect([pool.ended, pool.ending, pool.listenerCount('error')]).toEqual([false, false, 0])
    await until('every connection is returned', () => pool.idleCount === pool.totalCount)
    expect(pool.totalCount).toBeGreaterThan(0)
    // All are taken at once, because otherwise the pool would return the same one again and again.
    const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()))
    for (const client of clients) {
      const { rows } = await client.query(`select array(select pg_listening_channels()) as channels,
        current_setting('search_path') as path, current_setting('statement_timeout') as timeout`)
      expect(rows).toEqual([{ channels: [], path: '"$user", public', timeout: '0' }])
      client.release()
    }
    pool.on('error', () => {})
  })

  it('may parse numbers and times in any way', async () => {
    const connectionString = await engine.freshAddress()
    const types = { getTypeParser: () => (value: string) => ({ parsed: value }) }
    const pool = new pg.Pool({ connectionString, max: 4, types: types as never })
    onCleanUp(() => pool.end())
    const { platform, marketplace } = await createScene({ store: postgresStore(pool) })
    await buy(platform, marketplace, 'b1')
    expect((await marketplace.health()).counts).toMatchObject({ subscriptions: 1 })
  })

  it.each([2, '2'])('may have %j connections, and not one: nobody could ask about a commit', async (max) => {
    const config = { connectionString: await engine.freshAddress() }
    const pool = new pg.Pool({ ...config, max } as pg.PoolConfig)
    onCleanUp(() => pool.end())
    const { platform, marketplace } = await createScene({ store: postgresStore(pool) })
    await buy(platform, marketplace, 'b1')
    const ofOne = new pg.Pool({ ...config, max: typeof max === 'string' ? '1' : 1 } as pg.PoolConfig)
    expect(() => postgresStore(ofOne)).toThrow(
      expect.objectContaining({
        code: 'config_invalid',
        message: 'Cannot use PostgreSQL: pool: expected a pool of 2 connections or more',
      }),
    )
    await ofOne.end()
  })
})
