import pg from 'pg'
import { answer, settings } from './serve.mjs'
import { openSqlite } from './sqlite.mjs'

/**
 * Fills a store with copies of one subscription. Every row of any table that names the subscription is copied
 * `settings.count - 1` times by SQL, with another number in place of `0000000`. So the copies are in the state of the
 * first: read, handled, with the next read due in a day.
 */
const { store, count } = settings
const NUMBER = '0000000'
const SCHEMA = 'marketplace_webhooks'

async function seed() {
  const engine = store.startsWith('postgres') ? await openPostgres() : await openSqliteStore()
  for (const table of await engine.tables()) {
    const columns = (await engine.columns(table)).filter(({ isRowNumber }) => !isRowNumber)
    const texts = columns.filter(({ isText }) => isText).map(({ name }) => name)
    if (texts.length === 0) continue
    const isCopied = texts.map((name) => `${name} like '%${NUMBER}%'`).join(' or ')
    const names = columns.map(({ name }) => name)
    const values = columns.map(({ name, isText }) => {
      if (!isText) return name
      // Identifiers of entries are unique UUIDs.
      if (name === 'id') return `substr(id, 1, length(id) - ${NUMBER.length}) || number`
      return `replace(${name}, '${NUMBER}', number)`
    })
    await engine.run(
      `insert into ${engine.prefix}${table} (${names}) select ${values} from ${engine.prefix}${table}
       cross join (${engine.numbers(count - 1)}) as numbers where ${isCopied}`,
    )
  }
  await engine.close()
}

async function openSqliteStore() {
  const database = await openSqlite(store.slice('sqlite:'.length))
  database.exec('pragma synchronous = off')
  return {
    prefix: '',
    tables: () => database.all(`select name from sqlite_master where type = 'table'`).map(({ name }) => name),
    columns: (table) =>
      database.all(`select name, type, pk from pragma_table_info('${table}')`).map(({ name, type, pk }) => ({
        name,
        isText: /text/i.test(type),
        isRowNumber: pk > 0 && /int/i.test(type),
      })),
    numbers: (most) =>
      `with recursive counter(i) as (select 1 union all select i + 1 from counter where i < ${most})
       select printf('%0${NUMBER.length}d', i) as number from counter`,
    run: (sql) => database.exec(sql),
    close() {
      database.exec('pragma wal_checkpoint(truncate)')
      database.close()
    },
  }
}

async function openPostgres() {
  const client = new pg.Client({ connectionString: store })
  await client.connect()
  const rows = async (sql) => (await client.query(sql)).rows
  return {
    prefix: `${SCHEMA}.`,
    tables: async () =>
      (await rows(`select tablename from pg_tables where schemaname = '${SCHEMA}'`)).map(
        ({ tablename }) => tablename,
      ),
    columns: async (table) =>
      (
        await rows(
          `select column_name as name, data_type as type, is_identity, column_default from information_schema.columns
           where table_schema = '${SCHEMA}' and table_name = '${table}'`,
        )
      ).map(({ name, type, is_identity, column_default }) => ({
        name,
        isText: type === 'text',
        isRowNumber: is_identity === 'YES' || /^nextval/.test(column_default ?? ''),
      })),
    numbers: (most) =>
      `select lpad(i::text, ${NUMBER.length}, '0') as number from generate_series(1, ${most}) as i`,
    run: (sql) => client.query(sql),
    close: () => client.end(),
  }
}

answer({ seed }, () => {})
