import { inspect } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { postgresStore } from '../../lib/store-option.js'
import { onCleanUp } from '../support/clean-up.js'
import { databaseOf, engine, heedWarnings } from '../support/engines/one-postgres.js'
import { openedStore, storeOf } from '../support/engines/open-store.js'
import { POSTGRES_PASSWORD } from '../support/engines/postgres-installation.js'
import { freePort } from '../support/engines/tcp-proxy.js'
import { eventOf, notice } from '../support/events.js'
import { createScene } from '../support/scene.js'
import { buy } from '../support/scenes/purchases.js'
import { until } from '../support/until.js'

describe('a role that did not create the tables', () => {
  it('K23 gets the missing SQL in the error, and works after that SQL was run, without a restart', async () => {
    const { address, sql, createTables } = await withRole('app')
    const early = storeOf(address)
    const error = await early.open().catch((reason) => reason)
    expect(error).toMatchObject({ code: 'store_unavailable' })
    expect(error.message).toMatch(/the role app may not create the missing tables.*authorization "app"/s)
    expect(error.message).toContain(grantsFor(address))

    await createTables()
    const refused = await early.open().catch((reason) => reason)
    expect(refused).toMatchObject({ code: 'store_unavailable' })
    expect(refused.message).toMatch(/the role app has no rights on its tables/)
    const [, grants = ''] = refused.message.split(/as their owner:\n/)
    expect(grants).toBe(grantsFor(address))

    await sql(grants)
    const { platform, marketplace } = await createScene({ store: address })
    await buy(platform, marketplace, 'b1')
    await early.open()
    expect(await early.counts()).toMatchObject({ subscriptions: 1 })
    expect((await marketplace.health()).status).toBe('ok')
  })

  it.each(['usage on schema marketplace_webhooks', 'update on marketplace_webhooks.journal'])(
    'K23 gets the SQL even if only %s is missing',
    async (right) => {
      const { address, sql, createTables } = await withRole('app')
      await createTables()
      const store = storeOf(address)
      await sql(grantsFor(address))
      await sql(`revoke ${right} from app`)
      await expect(store.open()).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining(grantsFor(address)),
      })
      await sql(`grant ${right} to app`)
      await store.open()
    },
  )

  it('K23 gets it also when a right is revoked while it runs', async () => {
    const { address, sql, createTables } = await withRole('app')
    await createTables()
    const store = storeOf(address)
    await sql(grantsFor(address))
    await store.open()
    await sql('revoke insert on marketplace_webhooks.journal from app')
    await expect(store.accept([eventOf('s1')])).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(grantsFor(address)),
    })
    // On one line, as in a log.
    expect(await store.problem()).toContain(grantsFor(address).replaceAll('\n', ' '))
    await sql(grantsFor(address))
    await store.accept([eventOf('s1')])
  })

  it('K23 has its name and the schema quoted in the SQL', () => {
    const store = postgresStore({ connectionString: 'postgres://localhost/x', schema: 'Other_1' })
    expect(store.grants('my "app"')).toContain('grant usage on schema "Other_1" to "my ""app""";')
  })

  it('may create its own schema if it may create schemas in the database', async () => {
    const { address, sql } = await withRole('tenant')
    await sql('create schema marketplace_webhooks authorization tenant')
    const store = storeOf(address)
    await store.open()
    expect(await store.counts()).toMatchObject({ subscriptions: 0 })
  })

  async function withRole(name: string) {
    const own = await engine.freshAddress()
    const database = databaseOf(own)
    const server = engine.server()
    await server.sql(`create role ${name} login password '${POSTGRES_PASSWORD}'`)
    onCleanUp(() => server.sql(`drop owned by ${name}; drop role ${name}`, [], database))
    const address = new URL(own)
    address.username = name
    return {
      address: address.href,
      sql: (text: string) => server.sql(text, [], database),
      /** Another role opens the database first, so it owns the tables. */
      createTables: async () => (await openedStore(own)).close(),
    }
  }
})

describe('a database that cannot be used', () => {
  it.each<[what: string, broken: (address: URL) => unknown, words: RegExp]>([
    [
      'a wrong password',
      (url) => (url.password = 'wrong-canary'),
      /the user name or the password is wrong, or the address has no password/,
    ],
    [
      'a role that does not exist',
      (url) => (url.username = 'nobody-here'),
      /the user name or the password is wrong, or the address has no password/,
    ],
    [
      'a database that does not exist',
      (url) => (url.pathname = '/missing'),
      /the database does not exist.*create it/,
    ],
    ['a server that is down', (url) => (url.port = `${closedPort}`), /ECONNREFUSED/],
    ['a host that does not exist', (url) => (url.hostname = 'db.invalid'), /ENOTFOUND|EAI_AGAIN/],
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

  it('is reported for an address without a password, with what to write', async () => {
    const address = new URL(await engine.freshAddress())
    address.password = ''
    heedWarnings()
    await expect(storeOf(address.href).open()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('write postgres://user:password@host/database, or set PGPASSWORD'),
    })
  })

  it('is used as soon as it exists, without a restart', async () => {
    const address = await engine.freshAddress()
    await engine.server().stop('fast')
    const { platform, marketplace, deliver } = await createScene({ store: address })
    expect((await deliver(notice('b1', 's1'))).status).toBe(503)
    await engine.server().start()
    await until('a delivery is accepted', async () => (await deliver(notice('b1', 's1'))).status === 200)
    platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await until('the marketplace works', () => marketplace.isEntitled('b2'))
  })

  let closedPort = 0
})

/** The SQL that gives the role `app` its rights. */
function grantsFor(connectionString: string): string {
  return postgresStore({ connectionString }).grants('app')
}
