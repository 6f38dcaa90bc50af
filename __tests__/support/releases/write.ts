import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Database from 'libsql'
import pg from 'pg'
import { createMarketplace, type MarketplaceOptions } from '../../../lib/index.js'
import { postgresDialect } from '../../../lib/postgres/dialect.js'
import { MIGRATIONS } from '../../../lib/store/sql/migrations.js'
import type { Connection } from '../../../lib/store/sql/sql.js'
import { internals } from '../internals.js'
import { until } from '../until.js'
import { platformOf, RELEASE_ADDRESSES, RELEASE_APP, RELEASE_SECRET } from './platform.js'

/** The database of this version after some life (`live`), as SQL. `address`: an empty database. */
export async function dumpOfThisVersion(address: string): Promise<string> {
  await live(address)
  const isFile = address.startsWith('sqlite:')
  const dump = await (isFile ? dumpSqlite(address.slice('sqlite:'.length)) : dumpPostgres(address))
  // The stack of the handler's error has the folder of the project.
  return dump.replaceAll(process.cwd(), '/app')
}

/**
 * The bakery has paid, the payment of the salon failed, and the gym has bought while no worker ran. The change of the
 * bakery was handled. That of the salon is tried again, because its handler fails.
 */
async function live(store: string) {
  const app = open(store, { ...internals({ pollMs: 50 }) })
  app.marketplace.onPurchaseChange(({ business_uid }) => {
    if (business_uid === 'salon') throw new Error('the handler fails')
  })
  await app.marketplace.start()
  await app.deliver({
    entity_name: 'application',
    event_type: 'installed',
    data: { business_id: 'bakery', app_code_name: 'app', event_time: '2026-11-01T10:00:00Z' },
  })
  for (const business of ['bakery', 'salon']) await app.deliver(created(business))
  await until('the bakery has access', () => app.marketplace.isEntitled('bakery'))
  await until('the change of the salon failed', async () => {
    const [failed] = await app.marketplace.journal.list({ status: 'retrying' })
    return (
      failed !== undefined &&
      (await app.marketplace.journal.list({ status: 'done', kind: 'change' })).length > 0
    )
  })
  await app.close()
  const receiver = open(store, { worker: false })
  await receiver.marketplace.start()
  await receiver.deliver(created('gym'))
  await receiver.close()
}

function open(store: string, options: Partial<MarketplaceOptions>) {
  const marketplace = createMarketplace({
    app: RELEASE_APP,
    platform: {
      ...RELEASE_ADDRESSES,
      fetch: platformOf({ 'bakery-1': 'purchased', 'salon-1': 'suspended' }),
    },
    deliverySecrets: RELEASE_SECRET,
    store,
    ...options,
  })
  const server = createServer(marketplace.listener({ path: '/hooks' })).listen(0)
  const target = () =>
    marketplace.webhooks.targetUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`)
  return {
    marketplace,
    async deliver(envelope: object) {
      const { status } = await fetch(target(), { method: 'POST', body: JSON.stringify(envelope) })
      if (status !== 200) throw new Error(`a delivery got ${status}`)
    },
    async close() {
      server.close()
      await marketplace.close()
    },
  }
}

function created(business: string) {
  const data = { business_id: business, purchasable_uid: 'item', subscription_uid: `${business}-1` }
  return { entity_name: 'purchasable_subscription', event_type: 'created', data }
}

function dumpSqlite(path: string): string {
  const db = new Database(path)
  const made = db
    .prepare(
      "select name, type, sql from sqlite_master where sql is not null and name not like 'sqlite%' order by rowid",
    )
    .all() as { name: string; type: string; sql: string }[]
  const rows = made
    .filter(({ type }) => type === 'table')
    .flatMap(({ name }) => inserts(name, '', db.prepare(`select * from ${name}`).all() as Row[]))
  db.close()
  return script([...made.map(({ sql }) => sql), ...rows])
}

async function dumpPostgres(address: string): Promise<string> {
  const client = new pg.Client({ connectionString: address })
  await client.connect()
  const tables = await client.query<{ name: string; address: string }>(
    `select format('%I.%I', table_schema, table_name) as address, table_name as name from information_schema.tables
      where table_schema in (select table_schema from information_schema.tables where table_name = 'marketplace_schema')
      order by 2`,
  )
  const rows: string[] = []
  for (const { name, address: table } of tables.rows) {
    const found = await client.query<Row>(`select * from ${table}`)
    rows.push(...inserts(name, name === 'journal' ? ' overriding system value' : '', found.rows))
  }
  await client.end()
  const version = 'create table marketplace_schema (version integer not null)'
  return script([version, ...(await postgresTables()), 'delete from handlers', ...rows, NEXT_SEQ])
}

/** The statements that make the tables on PostgreSQL, as the migrations of a new database run them. */
async function postgresTables(): Promise<string[]> {
  const texts: string[] = []
  const recorder: Connection = {
    placeholder: (number) => `$${number}`,
    async query({ text }) {
      if (/^\s*(create|insert)/.test(text)) texts.push(text)
      return []
    },
  }
  for (const migration of MIGRATIONS) await migration(postgresDialect, recorder, 0)
  return texts
}

/** As a backup does it: the next entry comes after those of the dump. */
const NEXT_SEQ = "select setval(pg_get_serial_sequence('journal', 'seq'), max(seq)) from journal"

type Row = Record<string, unknown>

function inserts(table: string, overriding: string, rows: readonly Row[]): string[] {
  return rows.map((row) => {
    const values = Object.values(row).map((value) =>
      value === null
        ? 'null'
        : typeof value === 'number'
          ? value
          : `'${String(value).replaceAll("'", "''")}'`,
    )
    return `insert into ${table} (${Object.keys(row).join(', ')})${overriding} values (${values.join(', ')})`
  })
}

function script(statements: readonly string[]): string {
  return statements.map((each) => `${each.trim()};\n`).join('\n')
}
