import { type Clock, systemClock } from '../../../lib/base/clock.js'
import { createPostgresEngine } from '../../../lib/postgres/engine.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Allowance } from '../../../lib/store/accepting/allowance.js'
import type { Store } from '../../../lib/store/port/store.js'
import type { Engine } from '../../../lib/store/sql/engine.js'
import { type Connection, type Query, sql } from '../../../lib/store/sql/sql.js'
import { run } from '../../../lib/store/sql/writes.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { onCleanUp } from '../clean-up.js'

export interface StoreWithSql {
  store: Store
  engine: Engine
  /**
   * Runs one statement over the store's own connections and returns its rows. A SQLite file may refuse other
   * connections.
   */
  sql<Columns = Row>(text: string): Promise<Columns[]>
  /** The queries that the store makes while `work` runs. */
  queriesOf(work: () => Promise<unknown>): Promise<Query[]>
  /**
   * Runs a query with `prefix` in front of it, and rolls it back. With libsql it must be the last call, because the
   * statement stays in progress.
   */
  explain(prefix: string, query: Query): Promise<Row[]>
}

/** An open store at an address, with direct SQL beside the methods of its port. Closed after the test. */
export async function openStoreWithSql(
  address: string,
  options: { clock?: Clock; schema?: string; most?: Allowance; mostSearches?: number } = {},
): Promise<StoreWithSql> {
  const { clock = systemClock, schema = 'marketplace_webhooks' } = options
  let queries: Query[] | undefined
  const plain = address.startsWith('sqlite:')
    ? createSqliteEngine({ path: address.slice('sqlite:'.length), clock })
    : createPostgresEngine({ connection: address, schema, maxConnections: 5, clock })
  const noted = <Given extends Connection>(connection: Given): Given => ({
    ...connection,
    query(query) {
      queries?.push(query)
      return connection.query(query)
    },
  })
  const engine: Engine = {
    ...plain,
    read: (work) => plain.read((db) => work(noted(db))),
    write: (work) => plain.write((trx) => work(noted(trx))),
    async writeAll(writes) {
      if (queries) await plain.write((trx) => run(plain, noted(trx), ...writes))
      else await plain.writeAll(writes)
    },
  }
  const store = createSqlStore(engine, clock, options)
  onCleanUp(() => store.close())
  await store.open()

  return {
    store,
    engine,
    sql: <Columns>(text: string) => plain.write((trx) => sql.raw<Columns>(text).execute(trx)),
    async queriesOf(work) {
      const asked: Query[] = []
      queries = asked
      await work()
      queries = undefined
      return asked
    },
    async explain(prefix, query) {
      const explained = { ...query, text: `${prefix} ${query.text}` }
      if (engine.isLocal) return plain.read((db) => db.query(explained) as Promise<Row[]>)
      let rows: Row[] = []
      await plain
        .write(async (trx) => {
          rows = (await trx.query(explained)) as Row[]
          throw UNDO
        })
        .catch((error) => {
          if (error !== UNDO) throw error
        })
      return rows
    },
  }
}

/** Every row of every table, each in its order: what two looks find equal, nobody has changed in between. */
export async function pictureOf(address: string): Promise<Record<string, Row[]>> {
  const { sql, store } = await openStoreWithSql(address)
  const tables = {
    marketplace_schema: 'version',
    store_owner: 'id',
    subscriptions: 'subscription_uid',
    journal: 'seq',
    lanes: 'key',
    handlers: 'topic',
    searches: 'business_uid',
    platform_facts: 'id',
  }
  const picture: Record<string, Row[]> = {}
  for (const [table, order] of Object.entries(tables))
    picture[table] = await sql(`select * from ${table} order by ${order}`)
  await store.close()
  return picture
}

type Row = Record<string, unknown>
const UNDO = new Error('undone')
