import { type CompiledQuery, type Kysely, sql } from 'kysely'
import { type Clock, systemClock } from '../../lib/clock.js'
import { createPostgresEngine } from '../../lib/postgres/engine.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import type { Engine, Tables } from '../../lib/store/schema.js'
import { perform } from '../../lib/store/script.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import type { Store } from '../../lib/store/store.js'
import { onCleanUp } from './clean-up.js'

export interface StoreWithSql {
  store: Store
  engine: Engine
  /** One statement over the store's own connections; answers the rows. An SQLite file may let nobody else in. */
  sql<Columns = Row>(text: string): Promise<Columns[]>
  /** What the store asks the database while `work` runs. */
  queriesOf(work: () => Promise<unknown>): Promise<CompiledQuery[]>
  /**
   * Runs a query with `prefix` in front, and undoes what it did. With libsql the last that the store can do: there the
   * statement stays in progress.
   */
  explain(prefix: string, query: CompiledQuery): Promise<Row[]>
}

/** A store at an address, open, with a way in beside its port. Closed after the test. */
export async function openStoreWithSql(
  address: string,
  options: { clock?: Clock; schema?: string } = {},
): Promise<StoreWithSql> {
  const { clock = systemClock, schema = 'marketplace_webhooks' } = options
  let queries: CompiledQuery[] | undefined
  const plain = address.startsWith('sqlite:')
    ? createSqliteEngine({ path: address.slice('sqlite:'.length), clock })
    : createPostgresEngine({ connection: address, schema, maxConnections: 5, clock })
  const noted = <Db extends Kysely<Tables>>(db: Db): Db => {
    const plugged = db.withPlugin({
      transformQuery({ node, queryId }) {
        queries?.push(db.getExecutor().compileQuery(node, queryId))
        return node
      },
      transformResult: async ({ result }) => result,
    }) as Db
    // A step of a script is compiled already.
    plugged.executeQuery = (query) => {
      queries?.push(query as CompiledQuery)
      return db.executeQuery(query)
    }
    return plugged
  }
  const engine: Engine = {
    ...plain,
    read: (work) => plain.read((db) => work(noted(db))),
    write: (work) => plain.write((trx) => work(noted(trx))),
    transact: (script) =>
      queries ? plain.write((trx) => perform(plain, noted(trx), script())) : plain.transact(script),
  }
  const store = createSqlStore(engine)
  onCleanUp(() => store.close())
  await store.open()

  return {
    store,
    engine,
    async sql<Columns>(text: string) {
      const { rows } = await plain.write((trx) => sql.raw<Columns>(text).execute(trx))
      return rows
    },
    async queriesOf(work) {
      const asked: CompiledQuery[] = []
      queries = asked
      await work()
      queries = undefined
      return asked
    },
    async explain(prefix, query) {
      const explained = { ...query, sql: `${prefix} ${query.sql}` }
      if (engine.isLocal) return plain.read(async (db) => (await db.executeQuery<Row>(explained)).rows)
      let rows: Row[] = []
      await plain
        .write(async (trx) => {
          rows = (await trx.executeQuery<Row>(explained)).rows
          throw UNDO
        })
        .catch((error) => {
          if (error !== UNDO) throw error
        })
      return rows
    },
  }
}

type Row = Record<string, unknown>
const UNDO = new Error('undone')
