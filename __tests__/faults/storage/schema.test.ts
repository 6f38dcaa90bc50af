import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { createMarketplace, type MarketplaceOptions } from '../../../lib/index.js'
import { MIGRATIONS } from '../../../lib/store/sql/migrations.js'
import { onCleanUp } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { internals } from '../../support/internals.js'
import { dumpOf, load, query, RELEASES } from '../../support/releases/load.js'
import {
  platformOf,
  RELEASE_ADDRESSES,
  RELEASE_APP,
  RELEASE_SECRET,
} from '../../support/releases/platform.js'
import { dumpOfThisVersion } from '../../support/releases/write.js'
import { until } from '../../support/until.js'

const NOW = { 'bakery-1': 'suspended', 'salon-1': 'purchased', 'gym-1': 'purchased' }

describe.each(ENGINE_NAMES)('K80 a database on %s', (name) => {
  const engine = useEngine(name)

  it.each(RELEASES)('of release %s is migrated, and nothing of it is lost', async (release) => {
    const address = await engine.freshAddress()
    await load(dumpOf(release, name), address)
    const isMigrated = (await versionOf(address)) !== MIGRATIONS.length
    await expectWhole(address, isMigrated ? [] : ['bakery', 'salon'])
  })

  it.each(RELEASES)('of release %s has the tables of a new one, once it is migrated', async (release) => {
    const [released, created] = [await engine.freshAddress(), await engine.freshAddress()]
    await load(dumpOf(release, name), released)
    for (const address of [released, created]) {
      const marketplace = open(address, { worker: false })
      await marketplace.start()
      await marketplace.close()
    }
    expect(await layoutOf(released)).toEqual(await layoutOf(created))
  })

  it('with more rows than one statement copies is migrated whole, in order', async () => {
    const address = await engine.freshAddress()
    await load(dumpOf('0.1.0', name), address)
    const many = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 10001)'
    await query(
      address,
      `insert into subscriptions (subscription_uid, business_uid, generation, settled_generation, urgency, unread, verifying,
        lapses, created_at) ${many} select 'many-' || i, 'many', 0, 0, 4, 1, 0, 0, 1 from n`,
    )
    await query(
      address,
      `insert into journal (id, kind, name, topic, key, payload, status, attempts, received_at, settled_at)
        ${many} select 'many-' || i, 'event', 'x', 'event:x', 'many', '{}', 'done', 0, i, i from n`,
    )
    const marketplace = open(address, { worker: false })
    await marketplace.start()
    await marketplace.close()
    const [counts] = await query(
      address,
      `select (select count(*) from subscriptions) as known, (select count(*) from journal) as entries,
        (select count(*) from journal as later join journal as earlier on later.seq = earlier.seq + 1
          where later.key = 'many' and earlier.key = 'many' and later.received_at <> earlier.received_at + 1) as disordered`,
    )
    expect(counts).toMatchObject(
      name === 'SQLite'
        ? { known: 10_004, entries: 10_007, disordered: 0 }
        : { known: '10004', entries: '10007', disordered: '0' },
    )
  }, 60_000)

  it('that is migrated keeps what no read brings back: who may have bought it, when it was installed and uninstalled', async () => {
    const address = await engine.freshAddress()
    await load(dumpOf('0.1.0', name), address)
    await query(
      address,
      `update subscriptions set candidate_business_uid = 'shop', install_at = 5, uninstalled_at = 6, quiet_until_read = 1,
        requested_at = 7, gone = 'deleted', created_at = 8 where subscription_uid = 'gym-1'`,
    )
    const marketplace = open(address, { worker: false })
    await marketplace.start()
    await marketplace.close()
    const [row] = await query(
      address,
      `select candidate_business_uid, gone, install_at, uninstalled_at, quiet_until_read, requested_at, owed_since, created_at
        from subscriptions where subscription_uid = 'gym-1'`,
    )
    const { candidate_business_uid, gone, ...times } = row as Record<string, unknown>
    expect({ candidate_business_uid, gone }).toEqual({ candidate_business_uid: 'shop', gone: 'deleted' })
    // PostgreSQL returns some of them as text.
    expect(Object.entries(times).map(([column, value]) => [column, Number(value)])).toEqual([
      ['install_at', 5],
      ['uninstalled_at', 6],
      ['quiet_until_read', 1],
      ['requested_at', 7],
      ['owed_since', 7],
      ['created_at', 8],
    ])
  })

  it('with changes that nobody ever handled has them as history, and with others as dead', async () => {
    const address = await engine.freshAddress()
    await load(dumpOf('0.1.0', name), address)
    const inVain = 'no handler was registered for it before its retention ended'
    await query(address, "update handlers set seen_at = 0, ready = 0 where topic = 'change'")
    await query(address, "insert into handlers (topic, seen_at, ready) values ('event:*', 1795468211675, 0)")
    for (const [kind, error] of [
      ['change', inVain],
      ['unrecognised', inVain],
      ['event', inVain],
      ['change', 'the handler fails'],
    ] as const)
      await query(
        address,
        `insert into journal (id, kind, name, topic, key, payload, status, attempts, error, received_at, settled_at)
          values ('${kind} ${error}', '${kind}', 'x', 'x', 'k', '{}', 'dead', 0, '${error}', 1795468212000, 1795468213000)`,
      )
    const marketplace = open(address, { worker: false })
    await marketplace.start()
    await marketplace.close()
    const rows = await query(
      address,
      "select id, status, error, settled_at is null as unsettled from journal where key = 'k' order by seq",
    )
    const no = name === 'SQLite' ? 0 : false
    expect(rows).toEqual([
      { id: `change ${inVain}`, status: 'unhandled', error: null, unsettled: no },
      { id: `unrecognised ${inVain}`, status: 'unhandled', error: null, unsettled: name !== 'SQLite' || 1 },
      { id: `event ${inVain}`, status: 'dead', error: inVain, unsettled: no },
      { id: 'change the handler fails', status: 'dead', error: 'the handler fails', unsettled: no },
    ])
  })

  it('that is new to this package, and in which the app has tables of the same names, is refused and stays as it is', async () => {
    for (const [made, table] of [
      ['create table journal (note text); create table instances (mine text)', 'journal'],
      ['create table subscriptions (id text)', 'subscriptions'],
    ] as const) {
      const address = await engine.freshAddress()
      await load(made, address)
      await expect(open(address).start()).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(new RegExp(`${table}"? already exists`)),
      })
      expect(await tablesOf(address)).toEqual(expect.arrayContaining([table]))
      expect((await tablesOf(address)).filter((each) => each.startsWith('first_'))).toEqual([])
    }
  })

  it.each(['has_read', 'settled'])('of another app is refused before it is migrated (%s)', async (column) => {
    const address = await engine.freshAddress()
    await load(dumpOf('0.1.0', name), address)
    if (column !== 'settled') await query(address, `alter table store_owner rename settled to ${column}`)
    const other = { app: { ...RELEASE_APP, clientId: 'other-app' }, worker: false } as const
    await expect(open(address, other).start()).rejects.toMatchObject({ code: 'store_of_another_app' })
    expect(await versionOf(address)).toBe(1)
    await open(address, { ...other, adoptStore: true }).start()
  })

  it('whose layout no release can read is refused with what to do, and stays as it is', async () => {
    const address = await engine.freshAddress()
    await load(dumpOf('before-0.1.0', name), address)
    await query(address, 'create table instances (mine text)')
    const before = await tablesOf(address)
    await expect(open(address).start()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/its table instances has no column id.* was not changed.* of its own/),
    })
    expect(await tablesOf(address)).toEqual(expect.arrayContaining(before))
  })

  // With the name of a release in WRITE_RELEASE this writes the file that the release needs.
  it('of this version is the one that the next release must open', async () => {
    const dump = await dumpOfThisVersion(await engine.freshAddress())
    const release = process.env.WRITE_RELEASE
    if (release !== undefined)
      writeFileSync(join(__dirname, `../../support/releases/${release}/${engineFile(name)}`), dump)
    const address = await engine.freshAddress()
    await load(dump, address)
    // Nothing was migrated, so nothing is due before its time.
    await expectWhole(address, ['bakery', 'salon'])
  })
})

/** See `live`: one business has paid, the change of another waits for its handler, a third one was never read. */
async function expectWhole(address: string, notDue: readonly string[]) {
  const first = open(address)
  const handled: string[] = []
  first.onPurchaseChange(async ({ business_uid, from, to }) => {
    // A change that waited before the migration is handled before later ones of its business, however slowly.
    if (from === null) await sleep(300)
    handled.push(`${business_uid} ${from} ${to}`)
  })
  await first.start()
  for (const business of notDue) await first.businesses.refresh(business)
  for (const business of ['salon', 'gym'])
    await until(`${business} has access`, () => first.isEntitled(business))
  await until('the bakery is read again', async () => !(await first.isEntitled('bakery')))
  await until('all changes are handled', () => handled.length === 4)
  expect(handled.filter((each) => each.startsWith('salon'))).toEqual([
    'salon null suspended',
    'salon suspended purchased',
  ])
  expect(handled.sort()).toEqual([
    'bakery purchased suspended',
    'gym null purchased',
    'salon null suspended',
    'salon suspended purchased',
  ])
  const entries = await first.journal.list({ businessUid: 'bakery' })
  expect(entries.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['event', 'change']))
  await until('health is ok', async () => (await first.health()).status === 'ok')
  await first.close()
  const again = open(address)
  await again.start()
  expect(await again.isEntitled('salon')).toBe(true)
}

function open(store: string, options: Partial<MarketplaceOptions> = {}) {
  const marketplace = createMarketplace({
    app: RELEASE_APP,
    platform: { ...RELEASE_ADDRESSES, fetch: platformOf(NOW) },
    deliverySecrets: RELEASE_SECRET,
    store,
    ...internals({ pollMs: 50 }),
    ...options,
  })
  onCleanUp(() => marketplace.close())
  return marketplace
}

async function versionOf(address: string): Promise<number | undefined> {
  const [row] = (await query(address, 'select version from marketplace_schema')) as { version: number }[]
  return row?.version
}

/** The columns and the indexes of all tables. */
async function layoutOf(address: string): Promise<unknown[]> {
  if (address.startsWith('sqlite:'))
    return query(
      address,
      "select type, name, sql from sqlite_schema where name <> 'sqlite_sequence' order by type, name",
    )
  const columns = `select table_name, column_name, data_type, collation_name, column_default, is_nullable
    from information_schema.columns where table_schema = 'marketplace_webhooks' order by table_name, column_name`
  // PostgreSQL names the index of a key after what else exists.
  const indexes = `select replace(indexdef, indexname, '') as index from pg_indexes
    where schemaname = 'marketplace_webhooks' order by 1`
  return [...(await query(address, columns)), ...(await query(address, indexes))]
}

async function tablesOf(address: string): Promise<string[]> {
  const names = address.startsWith('sqlite:')
    ? "select name from sqlite_schema where type = 'table'"
    : "select table_name as name from information_schema.tables where table_schema = 'marketplace_webhooks'"
  return ((await query(address, names)) as { name: string }[]).map((each) => each.name)
}

function engineFile(name: string): string {
  return name === 'SQLite' ? 'sqlite.sql' : 'postgres.sql'
}
