import { MarketplaceError } from '../errors.js'

/** One connection to one SQLite file, whatever library is below: the smallest shape the engine needs. */
export interface SqliteConnection {
  /** SQLite's own version, e.g. [3, 53, 4]. */
  version: readonly number[]
  exec(sql: string): void
  /** Runs one statement; rows when it returns any, else []. */
  all(sql: string, parameters: readonly unknown[]): unknown[]
  close(): void
}

/** Opens a connection; the busy timeout is 0: waiting inside SQLite would stop the event loop. */
export type OpenSqlite = (path: string) => SqliteConnection

/**
 * The first of `node:sqlite`, `better-sqlite3` and `libsql` that is there.
 * Rejects `store_driver_missing` with what to install.
 */
export async function findSqlite(only?: SqliteDriverName): Promise<OpenSqlite> {
  const reasons: string[] = []
  for (const [name, load] of Object.entries(DRIVERS)) {
    if (only && name !== only) continue
    try {
      return await load()
    } catch (error) {
      reasons.push(`${name}: ${error instanceof Error ? error.message.split('\n')[0] : 'cannot be loaded'}`)
    }
  }
  throw new MarketplaceError(
    'store_driver_missing',
    'Cannot open SQLite: use Node 22.13 or newer, or `npm install better-sqlite3` (12.8 or newer), or ' +
      `\`npm install libsql\` (${reasons.join('; ')})`,
  )
}

export type SqliteDriverName = keyof typeof DRIVERS

const DRIVERS = {
  'node:sqlite': async (): Promise<OpenSqlite> => {
    // Not an import: on Node 20 the module does not exist, and bundlers would try to resolve it.
    const builtin = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as
      | NodeSqlite
      | undefined
    if (!builtin) throw new Error('not in this version of Node')
    return (path) => connect(new builtin.DatabaseSync(path, { timeout: 0 }))
  },
  'better-sqlite3': async (): Promise<OpenSqlite> => open(await importDatabase('better-sqlite3')),
  libsql: async (): Promise<OpenSqlite> => open(await importDatabase('libsql')),
}

// A variable, so that neither TypeScript nor a bundler asks for a library that is optional.
async function importDatabase(name: string): Promise<DatabaseClass> {
  const module = (await import(name)) as { default: DatabaseClass }
  return module.default
}

function open(Database: DatabaseClass): OpenSqlite {
  return (path) => connect(new Database(path, { timeout: 0 }))
}

function connect(database: Database): SqliteConnection {
  const statements = new Map<string, Statement>()

  function prepare(sql: string): Statement {
    let statement = statements.get(sql)
    if (!statement) {
      // All SQL is this package's own; the bound only guards against a mistake that makes it vary.
      if (statements.size >= 200) statements.clear()
      statement = database.prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }

  const [row] = database.prepare('select sqlite_version() as version').all() as [{ version: string }]
  return {
    version: row.version.split('.').map(Number),
    exec: (sql) => void database.exec(sql),
    all(sql, parameters) {
      const statement = prepare(sql)
      if (RETURNS_ROWS.test(sql)) return statement.all(...parameters)
      statement.run(...parameters)
      return []
    },
    close() {
      statements.clear()
      database.close()
    },
  }
}

const RETURNS_ROWS = /^\s*(select|explain|with|pragma)\b|\breturning\b/i

interface Statement {
  all(...parameters: readonly unknown[]): unknown[]
  run(...parameters: readonly unknown[]): unknown
}

interface Database {
  prepare(sql: string): Statement
  exec(sql: string): unknown
  close(): void
}

type DatabaseClass = new (path: string, options: { timeout: number }) => Database

interface NodeSqlite {
  DatabaseSync: DatabaseClass
}
