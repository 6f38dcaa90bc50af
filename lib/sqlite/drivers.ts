import { join } from 'node:path'
import { MarketplaceError, messageOf } from '../base/errors.js'
import { requireInstalled } from '../store/sql/installed.js'

/** The SQLite library of this process. */
export interface SqliteLibrary {
  name: SqliteDriverName
  /** SQLite's own version, e.g. [3, 53, 4]. */
  version: readonly number[]
  open: OpenSqlite
  /** The files from which a thread may load the same `libsql`, in order. Empty for `node:sqlite`. */
  modules: readonly string[]
  /** The native files that this process has loaded. A thread must load no other. */
  natives: readonly string[]
}

/** A connection to a SQLite file, the same for both libraries. */
export interface SqliteConnection {
  /** Runs statements without returning rows. A connection of libsql that used nothing else closes at once. */
  exec(sql: string): void
  /** Runs one statement, and returns its rows. */
  all(sql: string, parameters: readonly unknown[]): unknown[]
  close(): void
}

/** Opens a connection without a busy timeout, because a wait inside SQLite stops the event loop. */
type OpenSqlite = (path: string) => SqliteConnection

/**
 * `node:sqlite`, or `libsql` where Node has none.
 * Rejects `store_driver_missing` with what to install.
 */
export async function findSqlite(only?: SqliteDriverName): Promise<SqliteLibrary> {
  const name = only ?? (nodeSqlite() ? 'node:sqlite' : 'libsql')
  try {
    const Database = DRIVERS[name]()
    const open = (path: string) => connect(new Database(path, { timeout: 0 }))
    // The version is read on a connection of its own, because libsql closes a connection only when its prepared
    // statements are collected as garbage.
    return { name, version: versionOf(open), open, ...filesOf(name, Database) }
  } catch (error) {
    throw new MarketplaceError(
      'store_driver_missing',
      `Cannot open SQLite: use Node 22.13 or newer, or \`npm install libsql\` (${name}: ${messageOf(error).split(' Require stack')[0]})`,
      { cause: error },
    )
  }
}

export type SqliteDriverName = keyof typeof DRIVERS

const DRIVERS = {
  'node:sqlite': (): DatabaseClass => {
    const builtin = nodeSqlite()
    if (!builtin) throw new Error('not in this version of Node')
    return builtin.DatabaseSync
  },
  libsql: () => requireInstalled('libsql') as DatabaseClass,
}

/** The module is looked up and not imported: on Node 20 the module does not exist, and bundlers would try to resolve it. */
function nodeSqlite(): NodeSqlite | undefined {
  return process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as NodeSqlite | undefined
}

function versionOf(open: OpenSqlite): number[] {
  const connection = open(':memory:')
  const [row] = connection.all('select sqlite_version() as version', []) as [{ version: string }]
  connection.close()
  return row.version.split('.').map(Number)
}

/** The files of `libsql`, so that a thread loads the same ones: two copies in one process break their file locks. */
function filesOf(
  name: SqliteDriverName,
  Database: DatabaseClass,
): Pick<SqliteLibrary, 'modules' | 'natives'> {
  if (name === 'node:sqlite') return { modules: [], natives: [] }
  // `createRequire` is not imported: webpack would replace it with what it finds while bundling.
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
      // The bound is above the number of statements. It guards against a mistake that makes their texts vary.
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

/** Whether several connections may write a file: the WAL-reset bug is fixed in SQLite 3.51.3 (2026-03-13). */
export function mayShareFiles({ version: [major = 0, minor = 0, patch = 0] }: SqliteLibrary): boolean {
  return major * 1e6 + minor * 1e3 + patch >= 3_051_003
}

interface NodeSqlite {
  DatabaseSync: DatabaseClass
}
