import { join } from 'node:path'
import { MarketplaceError } from '../errors.js'

/** A SQLite library that was found and works. */
export interface SqliteLibrary {
  name: SqliteDriverName
  /** SQLite's own version, e.g. [3, 53, 4]. */
  version: readonly number[]
  open: OpenSqlite
  /** How a thread loads the same library: the files to try, in order. Empty for the one built into Node. */
  modules: readonly string[]
  /** The native files of libraries that this process has loaded: a thread must load no other. */
  natives: readonly string[]
}

/** One connection to one SQLite file, whatever library is below: the smallest shape the engine needs. */
export interface SqliteConnection {
  /** Runs statements whose rows do not matter. What only this has run leaves nothing behind once it is closed. */
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
export async function findSqlite(only?: SqliteDriverName): Promise<SqliteLibrary> {
  const reasons: string[] = []
  for (const name of Object.keys(DRIVERS) as SqliteDriverName[]) {
    if (only && name !== only) continue
    try {
      const Database = await DRIVERS[name]()
      const open = (path: string) => connect(new Database(path, { timeout: 0 }))
      // On a connection of its own: libsql closes a connection that has prepared a statement only when the statement
      // is collected as garbage.
      return { name, version: versionOf(open), open, ...filesOf(name, Database) }
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
  'node:sqlite': async (): Promise<DatabaseClass> => {
    // Not an import: on Node 20 the module does not exist, and bundlers would try to resolve it.
    const builtin = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as
      | NodeSqlite
      | undefined
    if (!builtin) throw new Error('not in this version of Node')
    return builtin.DatabaseSync
  },
  'better-sqlite3': () => importDatabase('better-sqlite3'),
  libsql: () => importDatabase('libsql'),
}

// A variable, and comments for bundlers, so that no optional library is loaded before it is used.
async function importDatabase(name: string): Promise<DatabaseClass> {
  const module = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as {
    default: DatabaseClass
  }
  return module.default
}

function versionOf(open: OpenSqlite): number[] {
  const connection = open(':memory:')
  const [row] = connection.all('select sqlite_version() as version', []) as [{ version: string }]
  connection.close()
  return row.version.split('.').map(Number)
}

/** Where the library's files are, so that a thread finds the same: two copies in one process would break its locks. */
function filesOf(
  name: SqliteDriverName,
  Database: DatabaseClass,
): Pick<SqliteLibrary, 'modules' | 'natives'> {
  if (name === 'node:sqlite') return { modules: [], natives: [] }
  // Not an import: webpack replaces what is imported from there with what it finds at the time of bundling.
  const { createRequire } = process.getBuiltinModule('node:module')
  const { cache, resolve } = createRequire(join(process.cwd(), 'app.js'))
  const loaded = Object.entries(cache)
  const natives = loaded.map(([file]) => file).filter((file) => file.endsWith('.node'))
  const own = loaded.find(([, module]) => module?.exports === Database)?.[0]
  const resolutions = [
    () => own,
    ...natives.map((file) => () => createRequire(file).resolve(name)),
    () => resolve(name),
  ]
  const modules = resolutions.flatMap((find) => {
    try {
      return find() ?? []
    } catch {
      return []
    }
  })
  return { modules: [...new Set(modules)], natives }
}

function connect(database: Database): SqliteConnection {
  const statements = new Map<string, { statement: Statement; hasRows: boolean }>()

  function prepare(sql: string) {
    let prepared = statements.get(sql)
    if (!prepared) {
      // All SQL is this package's own; the bound only guards against a mistake that makes it vary.
      if (statements.size >= 200) statements.clear()
      prepared = { statement: database.prepare(sql), hasRows: RETURNS_ROWS.test(sql) }
      statements.set(sql, prepared)
    }
    return prepared
  }

  return {
    exec: (sql) => void database.exec(sql),
    all(sql, parameters) {
      const { statement, hasRows } = prepare(sql)
      if (hasRows) return statement.all(...parameters)
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

/** The WAL-reset bug, which two connections that write can meet, is fixed in SQLite 3.51.3 (2026-03-13). */
export function mayShareFiles({ version: [major = 0, minor = 0, patch = 0] }: SqliteLibrary): boolean {
  return major * 1e6 + minor * 1e3 + patch >= 3_051_003
}

interface NodeSqlite {
  DatabaseSync: DatabaseClass
}
