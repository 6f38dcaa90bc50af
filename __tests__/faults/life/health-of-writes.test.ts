import { describe, expect, it } from '@jest/globals'
import { SECOND, systemClock } from '../../../lib/base/clock.js'
import type { Store } from '../../../lib/store/port/store.js'
import { sql } from '../../../lib/store/sql/sql.js'
import { postgresStore, storeFor } from '../../../lib/store-option.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { POSTGRES_PASSWORD } from '../../support/engines/postgres-installation.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { quietWarnings } from '../../support/output.js'
import { createScene, OUR_ITEM, type Scene } from '../../support/scene.js'
import { until } from '../../support/until.js'

const TABLES = ['journal', 'lanes', 'subscriptions']

describe('K62 a role that may not insert any more', () => {
  const engine = useEngine('PostgreSQL')

  it.each(['journal', 'subscriptions'])(
    'into %s: the health fails and the instance is not ready until it may again, without a delivery',
    async (table) => {
      const { address, sql, grants } = await withRole(`writer_${table}`)
      const { marketplace, deliver, jump } = await createScene({ store: address, worker: false })
      await marketplace.start()
      expect(await marketplace.health()).toMatchObject({ status: 'ok' })
      await sql(`revoke insert on marketplace_webhooks.${table} from writer_${table}`)
      const delivery = sampleDelivery('purchasable_subscription/update', { purchasable_uid: OUR_ITEM })
      expect((await deliver(delivery)).status).toBe(503)
      await expectFailing({ marketplace, jump }, /grant /, () => sql(grants))
    },
  )

  async function withRole(name: string) {
    const own = await engine.freshAddress()
    const database = new URL(own).pathname.slice(1)
    const server = engine.server()
    await server.sql(`create role ${name} login password '${POSTGRES_PASSWORD}'`)
    onCleanUp(() => server.sql(`drop owned by ${name}; drop role ${name}`, [], database))
    const connectionString = server.url(database)
    const owner = storeFor(connectionString, systemClock)
    await owner.open()
    await owner.close()
    const sql = (text: string) => server.sql(text, [], database)
    const grants = postgresStore({ connectionString }).grants(name)
    await sql(grants)
    const address = new URL(own)
    address.username = name
    return { address: address.href, sql, grants }
  }
})

describe.each(ENGINE_NAMES)('K69 a database on %s that becomes read-only', (name) => {
  const engine = useEngine(name)

  it('makes the health fail and the instance not ready, until it can be written again, without a delivery', async () => {
    quietWarnings()
    const { clock, jump } = jumpingClock()
    const address = await engine.freshAddress()
    const { store, engine: ofStore } = await openStoreWithSql(address, { clock })
    const { marketplace, deliver } = await createScene({ store: storeOption(store), clock, worker: false })
    expect((await deliver(sampleDelivery('application/installed'))).status).toBe(200)
    await writable(false)
    await until(
      'a delivery is refused',
      async () => (await deliver(sampleDelivery('application/installed'))).status === 503,
    )
    await expectFailing({ marketplace, jump }, /read-?only/, () => writable(true))

    async function writable(isWritable: boolean) {
      if (name === 'SQLite') {
        await ofStore.read((db) => sql.raw(`pragma query_only = ${isWritable ? 'off' : 'on'}`).execute(db))
        return
      }
      const database = new URL(address).pathname.slice(1)
      const mode = isWritable ? 'off' : 'on'
      await engine.server().sql(`alter database ${database} set default_transaction_read_only = ${mode}`)
      await engine
        .server()
        .sql('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [database])
    }
  })
})

describe.each(ENGINE_NAMES)('K62 on %s', (name) => {
  const engine = useEngine(name)

  it.each(TABLES)(
    'a failure at %s lasts until a probe has written there, also while calls write that do not touch it; the probe leaves nothing',
    async (table) => {
      const { clock, jump } = jumpingClock()
      const { store, sql } = await openStoreWithSql(await engine.freshAddress(), { clock })
      await store.handleTopics({ topics: ['event:a'], rescueMs: 0, retireMs: 1e9 })
      await sql(name === 'SQLite' ? `alter table ${table} rename to away` : postgresTrigger(table))
      const event = { businessUid: 'b', subscriptionUid: 's', payload: '{}', issues: null }
      const accept = () =>
        store.accept([
          {
            ...event,
            id: 'e',
            kind: 'event',
            name: 'a',
            key: 'k',
            refresh: { kind: 'subscription', subscriptionUid: 's', businessUid: 'b', purchasableUid: null },
          },
        ])
      const broken = name === 'SQLite' ? `no such table: ${table}` : 'the table is broken'
      await expect(accept()).rejects.toThrow(broken)
      for (let i = 0; i < 10; i++) {
        await LESS[table]?.(store, `less ${i}`)
        expect(await store.problem()).toContain(broken)
        jump(3_000)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      await sql(
        name === 'SQLite'
          ? `alter table away rename to ${table}`
          : `drop trigger broken on marketplace_webhooks.${table}`,
      )
      await until('the problem has ended', async () => {
        jump(1_000)
        return (await store.problem()) === null
      })
      expect(await rows()).toBe(table === 'journal' ? 0 : 10)

      async function rows() {
        const counts = await Promise.all(
          TABLES.map((each) => sql<{ n: number }>(`select count(*) as n from ${tableOf(each)}`)),
        )
        return counts.reduce((sum, [row]) => sum + Number(row?.n), 0)
      }
    },
  )

  const tableOf = (table: string) => (name === 'SQLite' ? table : `marketplace_webhooks.${table}`)
})

/** Writes an action or accepts a request, neither of which touches the table. */
const LESS: Record<string, (store: Store, id: string) => Promise<unknown>> = {
  subscriptions: (store, id) => store.recordAction({ id, name: 'a', businessUid: 'b', payload: '{}' }),
  lanes: (store, id) =>
    store.requestRefresh({
      kind: 'subscription',
      subscriptionUid: id,
      businessUid: 'b',
      purchasableUid: null,
    }),
}

const postgresTrigger = (table: string) => `
  create function broken() returns trigger language plpgsql as
    $$ begin raise exception using errcode = '53100', message = 'the table is broken'; end $$;
  create trigger broken before insert on marketplace_webhooks.${table} for each row execute function broken()`

/** Health is failing without a pause until `mend`, and then ok without a delivery. */
async function expectFailing(
  { marketplace, jump }: Pick<Scene, 'marketplace' | 'jump'>,
  words: RegExp,
  mend: () => Promise<unknown>,
) {
  for (let i = 0; i < 5; i++) {
    const problems = [{ code: 'store_write_failed', message: expect.stringMatching(words) }]
    expect(await marketplace.health()).toMatchObject({ status: 'failing', problems })
    expect((await marketplace.readiness()).ready).toBe(false)
    jump(5 * SECOND)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  await mend()
  await until('health is ok', async () => {
    jump(2 * SECOND)
    return (await marketplace.health()).status === 'ok'
  })
  expect((await marketplace.readiness()).ready).toBe(true)
}
