import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import type { Hint } from '../../../lib/store/port/store.js'
import { postgresStore } from '../../../lib/store-option.js'
import { onCleanUp } from '../../support/clean-up.js'
import { ENGINE_NAMES, type EngineName, useEngine } from '../../support/engines/engines.js'
import { engine } from '../../support/engines/one-postgres.js'
import { openedStore, storeOf } from '../../support/engines/open-store.js'
import { itWhereShared } from '../../support/engines/sharing.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { startProxy } from '../../support/engines/tcp-proxy.js'
import { notice } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { childSettings, loadReceiver } from '../../support/receiving/receiver-process.js'
import { createScene, deliver, openMarketplace, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('several processes on %s', (engineName) => {
  const own = engineName === 'SQLite' ? useEngine(engineName) : engine
  const itShared = itWhereShared(engineName)

  itShared(
    'G1 never have two current leases of one item while three of them work',
    async () => {
      const { address, platform, sql } = await lab()
      for (const statement of watchLeases(engineName)) await sql(statement)
      const receivers = Array.from({ length: 3 }, () =>
        loadReceiver(childSettings(platform, address, { reportsFinishes: true })),
      )
      await Promise.all(receivers.map((each) => each.begin()))
      // Some reads take longer than a lease, which is then renewed.
      platform.faults.add({ on: 'read', kind: 'slow', ms: [0, 1_300] })
      const businesses = Array.from({ length: 30 }, (_, i) => `b${i}`)
      const uids = businesses.map(
        (business_uid) => platform.purchase({ business_uid, payment: 'succeeded' }).uid,
      )
      for (let round = 0; round < 3; round++) {
        await Promise.all(
          businesses.map((business, i) =>
            deliver(
              (receivers[(i + round) % 3] as (typeof receivers)[0]).target(),
              notice(business, uids[i] as string),
            ),
          ),
        )
      }
      await until(
        'all work is done',
        async () => {
          const [row] = await sql<{ owed: number }>(
            `select (select count(*) from subscriptions where generation > settled_generation)
              + (select count(*) from journal where status = 'pending') as owed`,
          )
          return Number(row?.owed) === 0
        },
        15_000,
      )
      const leases = await sql<{ what: string; ended: number; taken: number }>('select * from leases')
      expect(leases.filter(({ ended, taken }) => Number(ended) > Number(taken))).toEqual([])
      expect(leases.filter(({ what }) => what === 'read').length).toBeGreaterThanOrEqual(businesses.length)
      expect(leases.filter(({ what }) => what === 'entry').length).toBeGreaterThanOrEqual(businesses.length)
      for (const { finishes } of receivers) expect(finishes.length).toBeGreaterThan(0)
      // A process that is frozen for a second loses its lease, and another claimer takes the item.
      const late = receivers.flatMap(({ finishes }) => finishes.filter(({ isHeld }) => !isHeld))
      expect(late.length).toBeLessThanOrEqual(leases.filter(({ ended }) => Number(ended) > 0).length)
    },
    60_000,
  )

  itShared(
    'G11 make one migration when five open an empty database at once',
    async () => {
      const address = await own.freshAddress()
      const platform = await startPlatform()
      const receivers = Array.from({ length: 5 }, () =>
        loadReceiver(childSettings(platform, address, { works: false })),
      )
      await Promise.all(receivers.map((each) => each.begin()))
      const replies = await Promise.all(
        receivers.map((each, i) => deliver(each.target(), notice('b1', `s${i}`))),
      )
      expect(replies.map(({ status }) => status)).toEqual(receivers.map(() => 200))
      const { store, sql } = await openStoreWithSql(address)
      expect(await sql('select version from marketplace_schema')).toHaveLength(1)
      expect(await store.counts()).toMatchObject({ subscriptions: 5 })
      expect(await store.listEntries({})).toHaveLength(5)
    },
    60_000,
  )

  it('G11 with old code work on the schema of a later version', async () => {
    const { address, sql, store } = await lab()
    for (const table of ['subscriptions', 'journal', 'lanes', 'handlers', 'searches']) {
      await sql(`alter table ${table} add column of_a_later_version text`)
      await sql(`create index ${table}_later on ${table} (of_a_later_version)`)
    }
    await sql('update marketplace_schema set version = 1000')
    await store.close()
    const { platform, marketplace } = await createScene({ store: address })
    const handled: unknown[] = []
    marketplace.onPurchaseChange((change) => void handled.push(change.to))
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'))
    platform.paymentIssue(uid)
    await until('both changes are handled', () => handled.length === 2)
    expect(handled).toEqual(['purchased', 'suspended'])
    expect(await marketplace.health()).toMatchObject({ status: 'ok' })
    await marketplace.close()
    const after = await openStoreWithSql(address)
    expect(await after.sql('select version from marketplace_schema')).toMatchObject([{ version: 1_000 }])
  })

  /** A migrated database, and a platform. */
  async function lab() {
    const address = await own.freshAddress()
    const platform = await startPlatform()
    const opened = await openStoreWithSql(address)
    return { address, platform, ...opened }
  }
})

describe('instances on PostgreSQL', () => {
  it('G11 that are opened at once on an empty database all open, repeatedly', async () => {
    for (let round = 0; round < 10; round++) {
      const address = await engine.freshAddress()
      const stores = await Promise.all(Array.from({ length: 5 }, () => openedStore(address)))
      await Promise.all(stores.map((store) => store.counts()))
      await Promise.all(stores.map((store) => store.close()))
    }
  })

  it('G8 whose listening connection is half open detect it within 15 s, and keep polling until then', async () => {
    const address = await engine.freshAddress()
    const proxy = await startProxy({ to: engine.server().port })
    // Unused connections are closed at once, so only the listening one stays.
    const pool = new pg.Pool({ connectionString: proxy.through(address), idleTimeoutMillis: 1, max: 5 })
    pool.on('error', () => {})
    onCleanUp(() => pool.end())
    const platform = await startPlatform()
    const store = storeOf(postgresStore(pool))
    const listening = openMarketplace(platform, { store: storeOption(store), ...internals({ pollMs: 300 }) })
    // Another process of the same app, whose notifications the test sends.
    const { baseUrl, authUrl } = platform
    const scene = await createScene({ store: address, worker: false, platform: { baseUrl, authUrl } })
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await scene.deliver(notice('b1', uid))
    await until('the marketplace works', () => listening.isEntitled('b1'))
    let listens = 0
    proxy.onData('to server', (bytes) => {
      if (/listen "marketplace_webhooks"/.test(bytes.toString('latin1'))) listens++
    })
    await until('no other connection is open', () => {
      if (proxy.connections() !== 1) return false
      proxy.halfOpen()
      return true
    })
    const begun = Date.now()
    const received: Hint[] = []
    store.subscribe((hint) => void received.push(hint))

    platform.paymentIssue(uid)
    await scene.deliver(notice('b1', uid))
    await until('a poll has looked for work', async () => !(await listening.isEntitled('b1')), 8_000)
    expect(listens).toBe(0)
    await until('another connection listens', () => listens > 0, 15_000 - (Date.now() - begun))

    // It also receives a notification, which a poll alone would not show.
    const isOfAny = (hint: Hint) => hint.kind === 'requested' && hint.businessUid === null
    await until('the connection has received its own message', () => received.some(isOfAny))
    platform.confirmPayment(uid)
    received.length = 0
    await scene.deliver(notice('b1', uid))
    await until('the notification has arrived', () =>
      received.some((hint) => hint.kind === 'requested' && hint.businessUid === 'b1'),
    )
    await until('the business has access', () => listening.isEntitled('b1'))
  })
})

const NOW = {
  SQLite: "cast(unixepoch('subsec') * 1000 as integer) + 1",
  PostgreSQL: '(extract(epoch from clock_timestamp()) * 1000)::bigint',
}

/** Statements that make the database record every lease taken, and when the previous lease was to end. */
function watchLeases(engine: EngineName): string[] {
  const watched = [
    ['read', 'subscriptions', 'refresh_at'],
    ['entry', 'lanes', 'due_at'],
  ] as const
  return [
    'create table leases (what text, ended bigint, taken bigint)',
    ...watched.flatMap(([what, table, end]) => {
      const insert = `insert into leases values
        ('${what}', case when old.lease_token is null then 0 else old.${end} end, ${NOW[engine]})`
      if (engine === 'SQLite')
        return `create trigger ${table}_leases after update on ${table}
          when new.lease_token is not null and new.lease_token is not old.lease_token begin ${insert}; end`
      return [
        `create function ${table}_leases() returns trigger language plpgsql as $$ begin
          if new.lease_token is not null and new.lease_token is distinct from old.lease_token then ${insert}; end if;
          return null; end $$`,
        `create trigger ${table}_leases after update on ${table} for each row execute function ${table}_leases()`,
      ]
    }),
  ]
}
