import { inspect } from 'node:util'
import { describe, expect, it, jest } from '@jest/globals'
import pg from 'pg'
import { claimOne } from '../lib/adapter/lab.js'
import { newId } from '../lib/ids.js'
import { postgresStore } from '../lib/index.js'
import { sql } from '../lib/store/sql.js'
import { type Hint, type ReadClaim, type Store, subscriptionKey } from '../lib/store/store.js'
import { onCleanUp } from './support/clean-up.js'
import { useEngine } from './support/engines.js'
import { eventOf, notice } from './support/events.js'
import { POSTGRES_PASSWORD } from './support/postgres.js'
import { createScene, OUR_ITEM, openMarketplace } from './support/scene.js'
import { openStoreWithSql } from './support/store-with-sql.js'
import { freePort } from './support/tcp-proxy.js'
import { createTransactionPooler } from './support/transaction-pooler.js'
import { until } from './support/until.js'

const engine = useEngine('PostgreSQL')

describe('a marketplace on PostgreSQL', () => {
  it('admits a buyer and denies a former one', async () => {
    const scene = await createScene({ store: await engine.freshAddress() })
    const changes: unknown[] = []
    scene.marketplace.onPurchaseChange(
      (change) => void changes.push([change.from, change.to, change.entitled]),
    )
    await scene.platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => scene.marketplace.isEntitled('b1'))
    await until('the change is handled', () => changes.length === 1)
    expect(changes).toEqual([[null, 'purchased', true]])
    expect((await scene.marketplace.health()).status).toBe('ok')
    expect((await scene.marketplace.journal.list()).length).toBeGreaterThan(1)
  })

  it('stores what PostgreSQL cannot: NUL and lone surrogates in a state and in the error of a handler', async () => {
    const { platform, marketplace } = await createScene({
      store: await engine.freshAddress(),
      worker: { pollMs: 50, handlerRetryDelaysMs: [] },
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
    platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
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

describe('a schema of the app\u2019s own', () => {
  it('holds all tables, and leaves the other schema alone', async () => {
    const address = await engine.freshAddress()
    const database = new URL(address).pathname.slice(1)
    const stores = ['billing', 'Other_1'].map((schema) => postgresStore(address, { schema }))
    for (const store of stores) {
      onCleanUp(() => store.close())
      await store.open()
    }
    await stores[0]?.accept([eventOf('s1')])
    expect(await stores[0]?.counts()).toMatchObject({ subscriptions: 1 })
    expect(await stores[0]?.listEntries({})).toHaveLength(1)
    expect(await stores[1]?.counts()).toMatchObject({ subscriptions: 0 })
    expect(await stores[1]?.listEntries({})).toEqual([])
    const rows = await engine.server().sql<{ schema: string; tables: string }>(
      `select table_schema as schema, string_agg(table_name, ',' order by table_name) as tables
        from information_schema.tables where table_schema not in ('information_schema', 'pg_catalog')
        group by 1 order by 1`,
      [],
      database,
    )
    expect(rows.map(({ schema }) => schema)).toEqual(['Other_1', 'billing'])
    for (const { tables } of rows) expect(tables).toContain('journal')
  })

  it.each(['with space', '"quoted"', 'a;drop', ''])('is refused at once when its name is %j', (schema) => {
    expect(() => postgresStore('postgres://localhost/x', { schema })).toThrow(
      expect.objectContaining({ code: 'config_invalid' }),
    )
  })
})

describe('a role that did not create the tables', () => {
  it('K23 gets the missing SQL in the error, and works once it was run, without a restart', async () => {
    const { address, database, sql } = await withRole('app')
    const early = postgresStore(address)
    onCleanUp(() => early.close())
    const error = await early.open().catch((reason) => reason)
    expect(error).toMatchObject({ code: 'store_unavailable' })
    expect(error.message).toMatch(/the role app may not create the missing tables.*authorization "app"/s)
    expect(error.message).toContain(early.grants('app'))

    const owner = postgresStore(engine.server().url(database))
    await owner.open()
    await owner.close()
    const refused = await early.open().catch((reason) => reason)
    expect(refused).toMatchObject({ code: 'store_unavailable' })
    expect(refused.message).toMatch(/the role app has no rights on its tables/)
    const [, grants = ''] = refused.message.split(/as their owner:\n/)
    expect(grants).toBe(early.grants('app'))

    await sql(grants)
    const { platform, marketplace } = await createScene({ store: address })
    platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'))
    await early.open()
    expect(await early.counts()).toMatchObject({ subscriptions: 1 })
    expect((await marketplace.health()).status).toBe('ok')
  })

  it.each(['usage on schema marketplace_webhooks', 'update on marketplace_webhooks.journal'])(
    'K23 gets it also when only %s is missing',
    async (right) => {
      const { address, database, sql } = await withRole('app')
      const owner = postgresStore(engine.server().url(database))
      await owner.open()
      await owner.close()
      const store = postgresStore(address)
      onCleanUp(() => store.close())
      await sql(store.grants('app'))
      await sql(`revoke ${right} from app`)
      await expect(store.open()).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining(store.grants('app')),
      })
      await sql(`grant ${right} to app`)
      await store.open()
    },
  )

  it('K23 has its name and the schema quoted in the SQL', () => {
    const store = postgresStore('postgres://localhost/x', { schema: 'Other_1' })
    expect(store.grants('my "app"')).toContain('grant usage on schema "Other_1" to "my ""app""";')
  })

  it('may create its own schema when it may create schemas in the database', async () => {
    const { address, sql } = await withRole('tenant')
    await sql('create schema marketplace_webhooks authorization tenant')
    const store = postgresStore(address)
    onCleanUp(() => store.close())
    await store.open()
    expect(await store.counts()).toMatchObject({ subscriptions: 0 })
  })

  async function withRole(name: string) {
    const own = await engine.freshAddress()
    const database = new URL(own).pathname.slice(1)
    const server = engine.server()
    await server.sql(`create role ${name} login password '${POSTGRES_PASSWORD}'`)
    onCleanUp(() => server.sql(`drop owned by ${name}; drop role ${name}`, [], database))
    const address = new URL(own)
    address.username = name
    return { address: address.href, database, sql: (text: string) => server.sql(text, [], database) }
  }
})

describe('a database that cannot be used', () => {
  it.each<[what: string, broken: (address: URL) => unknown, words: RegExp]>([
    ['a wrong password', (url) => (url.password = 'wrong-canary'), /the user name or the password is wrong/],
    [
      'a role that is not there',
      (url) => (url.username = 'nobody-here'),
      /the user name or the password is wrong/,
    ],
    [
      'a database that is not there',
      (url) => (url.pathname = '/missing'),
      /the database does not exist.*create it/,
    ],
    ['a server that is down', (url) => (url.port = `${closedPort}`), /ECONNREFUSED/],
    ['a host that is not there', (url) => (url.hostname = 'db.invalid'), /ENOTFOUND|EAI_AGAIN/],
  ])('is reported for %s, without the password', async (_what, broken, words) => {
    closedPort = await freePort()
    const address = new URL(await engine.freshAddress())
    broken(address)
    const warnings = heedWarnings()
    const { marketplace, deliver } = await createScene({ store: address.href })
    const error = await marketplace.start().catch((reason) => reason)
    expect(error).toMatchObject({ name: 'MarketplaceError', code: 'store_unavailable', retryable: true })
    expect(error.message).toMatch(words)
    const reply = await deliver(notice('b1', 's1'))
    expect(reply.status).toBe(503)
    expect(await marketplace.isEntitled('b1')).toBe(false)
    const health = await marketplace.health()
    expect(health.status).toBe('failing')
    await until('the warning appears', () => warnings.length > 0)
    const everything = [error, health, warnings, reply.body, marketplace]
    const seen = inspect(everything, {
      depth: Number.POSITIVE_INFINITY,
      showHidden: true,
      maxStringLength: null,
    })
    expect(seen).not.toContain(decodeURIComponent(address.password))
  })

  it('is used as soon as it exists, without a restart', async () => {
    const address = await engine.freshAddress()
    await engine.server().stop('fast')
    const { platform, marketplace, deliver } = await createScene({ store: address })
    expect((await deliver(notice('b1', 's1'))).status).toBe(503)
    await engine.server().start()
    await until('a delivery is taken', async () => (await deliver(notice('b1', 's1'))).status === 200, 10_000)
    platform.purchase({ business_uid: 'b2', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('it works', () => marketplace.isEntitled('b2'), 10_000)
  })

  let closedPort = 0
})

describe('a process that was frozen in the middle of a transaction', () => {
  it('runs it again, on another connection', async () => {
    const { engine: sqlEngine, store } = await openStoreWithSql(await engine.freshAddress())
    const backends: number[] = []
    await sqlEngine.write(async (trx) => {
      const rows = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx)
      backends.push(rows[0]?.pid as number)
      // The database's farewell is not read: the next query goes to a closed connection.
      if (backends.length === 1) standStill(2_300)
      await sql`select 1`.execute(trx)
    })
    expect(new Set(backends).size).toBe(2)
    expect(await store.counts()).toMatchObject({ pending: 0 })
  })
})

describe('two instances', () => {
  it('see each other’s changes within a second', async () => {
    const address = await engine.freshAddress()
    const { platform, marketplace: here } = await createScene({ store: address })
    const there = openMarketplace(platform, { store: address, worker: false })
    const { uid } = platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('both let it in', async () => (await here.isEntitled('b1')) && there.isEntitled('b1'))
    await listeners(2, address)
    const laterMs: number[] = []
    for (const trigger of ['paymentIssue', 'confirmPayment', 'paymentIssue', 'confirmPayment'] as const) {
      const expected = trigger === 'confirmPayment'
      // Remembered, so that only a hint can end it sooner than in five seconds.
      expect(await there.isEntitled('b1')).toBe(!expected)
      platform[trigger](uid)
      await until('the change is seen here', async () => (await here.isEntitled('b1')) === expected)
      const seenAt = Date.now()
      await until('and there', async () => (await there.isEntitled('b1')) === expected, 4_000)
      laterMs.push(Date.now() - seenAt)
    }
    // A machine that is busy may make some wait.
    expect(Math.min(...laterMs)).toBeLessThan(1_000)
  })

  it('notify each other of every decision and its business, also without a delivery', async () => {
    const address = await engine.freshAddress()
    const [here, there] = [postgresStore(address), postgresStore(address)] as const
    for (const store of [here, there]) {
      onCleanUp(() => store.close())
      await store.open()
    }
    const business = 'business 1 % ü'
    await here.accept([eventOf('s1', business)])
    const claimed = await claim(here)
    await listeners(2, address)
    const received: Hint[] = []
    there.subscribe((hint) => void received.push(hint))
    await until('earlier notifications have passed', async () => {
      await here.requestRefresh({ kind: 'business', businessUid: 'nobody', install: null })
      return received.some((hint) => hint.kind === 'requested' && hint.businessUid === 'nobody')
    })
    received.length = 0
    await finish(here, claimed, 'purchased')
    await until('the decision arrives', () => received.some(({ kind }) => kind === 'decided'), 2_000)
    expect(received).toContainEqual({ kind: 'decided', businessUid: business, superseded: true })
  })

  it('deliver the final truth in the last change when they decide two subscriptions of one business at once', async () => {
    const address = await engine.freshAddress()
    const stores = [postgresStore(address), postgresStore(address)] as const
    for (const store of stores) {
      onCleanUp(() => store.close())
      await store.open()
    }
    for (let round = 0; round < 15; round++) {
      const business = `b${round}`
      const uids = [`a${round}`, `z${round}`]
      for (const uid of uids) {
        await stores[0].accept([eventOf(uid, business)])
        await finish(stores[0], await claim(stores[0]), 'purchased')
        await stores[0].accept([eventOf(uid, business)])
      }
      const claims = await Promise.all(
        stores.map((store) => until('it is due', () => claim(store).catch(() => undefined))),
      )
      await Promise.all(stores.map((store, i) => finish(store, claims[i] as ReadClaim, 'suspended')))
      const changes = await stores[0].listEntries({ kind: 'change', businessUid: business })
      expect(changes.map(({ payload }) => (payload as { entitled: boolean }).entitled)).toEqual([
        false,
        true,
        true,
        true,
      ])
    }
  })

  async function claim(store: Store): Promise<ReadClaim> {
    const claimed = await claimOne(store, { leaseMs: 60_000, except: [], urgencies: [0, 1] })
    if (!claimed) throw new Error('nothing is due')
    return claimed
  }

  function finish(store: Store, claimed: ReadClaim, state: string) {
    const { subscriptionUid: uid, businessUid: business_uid } = claimed.subscription
    const record = { uid, business_uid, purchasable_uid: 'p', purchase_state: state }
    return store.finishRead(claimed, {
      found: { record, state, gone: null },
      settled: true,
      failure: null,
      progress: null,
      nextInMs: 600_000,
      changes: [
        {
          id: newId(Date.now()),
          key: subscriptionKey(uid),
          businessUid: business_uid,
          payload: (subscriptions) =>
            JSON.stringify({ entitled: subscriptions.some((each) => each.state === 'purchased') }),
        },
      ],
    })
  }
})

describe('behind a pooler in transaction mode', () => {
  it('everything works, each instance detects once that notifications do not arrive, and changes show within five seconds', async () => {
    const address = await engine.freshAddress()
    const warnings = heedWarnings()
    const { platform, marketplace } = await createScene({ store: createTransactionPooler(address) })
    const asked = openMarketplace(platform, { store: createTransactionPooler(address), worker: false })
    const handled: unknown[] = []
    marketplace.onPurchaseChange((change) => void handled.push(change.to))
    const { uid } = platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'))
    platform.paymentIssue(uid)
    await until('both changes are handled', () => handled.length === 2)
    expect(handled).toEqual(['purchased', 'suspended'])
    expect((await marketplace.health()).status).toBe('ok')
    const missing = () => warnings.filter(([, options]) => options?.code === 'listen_unavailable')
    await until('it is found out', () => missing().length === 2, 10_000)

    expect(await asked.isEntitled('b1')).toBe(false)
    platform.confirmPayment(uid)
    await until('the change is seen', () => marketplace.isEntitled('b1'))
    // Five seconds from before the change, and a query.
    await until('and by the other, that only answers', () => asked.isEntitled('b1'), 5_200)
    // Of each instance one.
    expect(missing()).toHaveLength(2)
    expect(await marketplace.health()).toMatchObject({ status: 'ok' })
  }, 30_000)
})

describe('a pool of the app\u2019s own', () => {
  it('stays open and unchanged, and an idle connection that breaks ends nothing', async () => {
    const address = await engine.freshAddress()
    const pool = new pg.Pool({ connectionString: address, max: 4 })
    onCleanUp(() => pool.end())
    const { platform, marketplace } = await createScene({ store: pool })
    platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'))
    await listeners(1, address)

    // Without a listener of the app's own, the next line would end the process.
    await terminateAll(address)
    await until('it goes on', async () => (await marketplace.health()).status === 'ok', 10_000)
    await listeners(1, address)
    await marketplace.close()
    expect([pool.ended, pool.ending, pool.listenerCount('error')]).toEqual([false, false, 0])
    await until('it has given back every connection', () => pool.idleCount === pool.totalCount)
    expect(pool.totalCount).toBeGreaterThan(0)
    // All of them at once: the pool would hand out the same one again and again.
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
    const { platform, marketplace } = await createScene({ store: pool })
    platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'))
    expect((await marketplace.health()).counts).toMatchObject({ subscriptions: 1 })
  })

  it('may have one connection', async () => {
    const pool = new pg.Pool({ connectionString: await engine.freshAddress(), max: 1 })
    onCleanUp(() => pool.end())
    const { platform, marketplace } = await createScene({ store: pool })
    platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'), 10_000)
  })
})

/** Waits until so many connections to the database listen. */
async function listeners(count: number, address: string) {
  await until('they listen', async () => {
    const rows = await engine.server().sql(
      `select 1 from pg_stat_activity where datname = $1
        and (query like 'listen %' or query like '%pg_listening_channels%')`,
      [new URL(address).pathname.slice(1)],
    )
    return rows.length >= count
  })
}

function standStill(ms: number) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Collects the warnings of the process from now on. */
function heedWarnings(): [message: unknown, options?: { code?: string }][] {
  const spy = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onCleanUp(() => spy.mockRestore())
  return spy.mock.calls as never
}

function terminateAll(address: string) {
  return engine
    .server()
    .sql('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
      new URL(address).pathname.slice(1),
    ])
}
