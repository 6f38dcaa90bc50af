import { close as closeFile, fdatasync, fsync, open as openFile } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { Kysely, sql } from 'kysely'
import type { Clock } from '../clock.js'
import { MarketplaceError, messageOf } from '../errors.js'
import { ANYTHING, type Engine, type Tables } from './schema.js'
import { retryWhileBusy, sqliteCode } from './sqlite-busy.js'
import { createSqliteDialect } from './sqlite-dialect.js'
import {
  findSqlite,
  type OpenSqlite,
  type SqliteConnection,
  type SqliteDriverName,
} from './sqlite-drivers.js'
import { pathFault } from './sqlite-path.js'

/**
 * SQLite in WAL mode, durable without ever making the event loop wait for the disk.
 *
 * With `synchronous=NORMAL` a commit writes the WAL and does not sync it. `durable()` syncs the `-wal` file through a
 * descriptor of our own, on libuv's threads, and only then may a delivery be acknowledged: as durable as FULL.
 * Should the sync fail, nobody knows what the disk holds: the connection is suspect, every further transaction first
 * reopens and checks the file, and until that succeeds nothing is accepted.
 *
 * SQLite before 3.51.3 can corrupt a WAL file that two connections write. With such a library the file is held
 * exclusively, and a second process is refused with `store_in_use`.
 */
export function createSqliteEngine(options: {
  /** A path, or ':memory:' for tests. */
  path: string
  clock: Clock
  driver?: SqliteDriverName
}): Engine {
  const { path, clock, driver } = options
  const inMemory = path === ':memory:'
  let openConnection: OpenSqlite
  let connection: SqliteConnection | undefined
  let walFile: number | undefined
  let suspect: unknown
  let stopWatching = () => {}

  function connect(): SqliteConnection {
    const opened = openConnection(path)
    try {
      if (!inMemory) {
        if (!isSafeForTwoConnections(opened.version)) opened.exec('pragma locking_mode = exclusive')
        opened.exec('pragma journal_mode = wal')
        opened.exec('pragma synchronous = normal')
        // A checkpoint syncs on this thread, so it must be rare: every 16 MiB of WAL, after some 15,000 deliveries
        // (measured at 17,000 a second on an SSD: the event loop stood still for 20 to 50 ms at most).
        opened.exec('pragma wal_autocheckpoint = 4000')
        opened.exec('pragma journal_size_limit = 67108864')
      }
      opened.exec('pragma trusted_schema = off')
      const [check] = opened.all('pragma quick_check(1)', []) as [{ quick_check: string }]
      if (check.quick_check !== 'ok')
        throw Object.assign(new Error('quick_check failed'), { code: 'SQLITE_CORRUPT' })
      // Takes the exclusive lock now, and makes the -wal file exist before it is opened for syncing.
      opened.exec('begin immediate')
      opened.exec('create table if not exists marketplace_schema (version integer not null)')
      opened.exec('commit')
      return opened
    } catch (error) {
      opened.close()
      throw error
    }
  }

  async function openWithin(patienceMs: number): Promise<void> {
    connection = await retryWhileBusy(connect, patienceMs, clock)
    if (inMemory) return
    walFile = await fs.open(`${path}-wal`, 'r+')
    // The names of new files must be as durable as what is in them.
    const folder = await fs.open(dirname(path), 'r')
    await fs.fsync(folder).finally(() => fs.close(folder))
    await fs.fdatasync(walFile)
  }

  async function release() {
    const [oldConnection, oldFile] = [connection, walFile]
    connection = undefined
    walFile = undefined
    if (oldFile !== undefined) await fs.close(oldFile).catch(() => {})
    if (!oldConnection) return
    if (!inMemory && !isSafeForTwoConnections(oldConnection.version)) letGo(oldConnection)
    oldConnection.close()
  }

  /** The connection, reopened and checked first when it is suspect. */
  async function trusted(): Promise<SqliteConnection> {
    if (suspect !== undefined) {
      await release().catch(() => {})
      await openWithin(0)
      // Everything goes into the database file under SQLite's own syncs; the WAL starts anew.
      ;(connection as unknown as SqliteConnection).exec('pragma wal_checkpoint(truncate)')
      suspect = undefined
    }
    if (!connection) throw new MarketplaceError('store_unavailable', 'Cannot use the store: it is not open')
    return connection
  }

  function explain(error: unknown): unknown {
    if (error instanceof MarketplaceError) return error
    const code = sqliteCode(error)
    if (code === 'CORRUPT' || code === 'NOTADB') {
      suspect = error
      return new MarketplaceError(
        'store_corrupt',
        `Cannot use the SQLite file ${path}: it is damaged or no database. It was neither mended nor replaced; restore a backup, or move it away to start empty`,
        { cause: error },
      )
    }
    if (code === 'IOERR') suspect = error
    return error
  }

  const db = new Kysely<Tables>({
    dialect: createSqliteDialect({ trusted, explain, clock }),
  })

  return {
    read: (work) => work(db),
    write: (work) => db.transaction().execute(work),
    // A WAL lives in shared memory: every process on the file is on this machine.
    isLocal: true,
    clock,
    now: () => sql<number>`${clock.now()}`,
    rows(json, columns) {
      const fields = Object.keys(columns).map((name) => sql`value ->> ${sql.lit(name)} as ${sql.ref(name)}`)
      return sql`(select ${sql.join(fields)} from json_each(${json}))`
    },
    isOneOf: (column, values) =>
      sql<boolean>`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`,
    // One writer at a time: nothing is ever locked, and nothing changes under a transaction.
    skipLocked: sql``,
    forUpdate: sql``,
    forShare: sql``,
    byIndex: (name) => sql`indexed by ${sql.ref(name)}`,
    rowNumber: sql`integer primary key autoincrement`,
    sortedText: sql`text`,
    busyTable: sql``,

    async open() {
      openConnection = await findSqlite(driver)
      try {
        await openWithin(5_000)
      } catch (error) {
        if (sqliteCode(error) === 'BUSY') {
          // Our own earlier try, which libsql has not let go of yet.
          if (suspect !== undefined) throw explain(suspect)
          throw new MarketplaceError(
            'store_in_use',
            `Cannot open the SQLite file ${path}: another process or instance holds it, and this SQLite library (before 3.51.3) must not share it`,
            { cause: error },
          )
        }
        const explained = explain(error)
        throw explained instanceof MarketplaceError
          ? explained
          : unavailable(`Cannot open the SQLite file ${path}: ${pathFault(path) ?? messageOf(error)}`, error)
      }
    },

    async migrate(migrations) {
      await db.transaction().execute(async (trx) => {
        const { rows } = await sql<{ version: number }>`select version from marketplace_schema`.execute(trx)
        const version = rows[0]?.version ?? 0
        for (const migration of migrations.slice(version)) {
          for (const statement of migration(this)) await statement.execute(trx)
        }
        if (version < migrations.length) {
          await sql`delete from marketplace_schema`.execute(trx)
          await sql`insert into marketplace_schema values (${migrations.length})`.execute(trx)
        }
      })
    },

    async durable() {
      if (inMemory) return
      if (walFile === undefined)
        throw new MarketplaceError('store_unavailable', 'Cannot sync: the store is not open')
      try {
        await fs.fdatasync(walFile)
      } catch (error) {
        suspect = error
        throw unavailable(`Cannot sync the store: ${messageOf(error)}`, error)
      }
    },

    announce() {},

    watch(onHint) {
      if (inMemory || !connection || !isSafeForTwoConnections(connection.version)) return
      let seen: unknown
      let timer: unknown
      const look = () => {
        // data_version moves when another connection commits; reading it costs a few microseconds.
        try {
          const [row] = (connection?.all('pragma data_version', []) ?? []) as { data_version: number }[]
          if (seen !== undefined && row?.data_version !== seen) ANYTHING.forEach(onHint)
          seen = row?.data_version
        } catch {
          // The next transaction says what is wrong.
        }
        timer = clock.setTimeout(look, 500)
      }
      look()
      stopWatching = () => clock.clearTimeout(timer)
    },

    async close() {
      stopWatching()
      await db.destroy()
      await release()
    },

    isDataError: (error) => ['CONSTRAINT', 'TOOBIG', 'MISMATCH'].includes(sqliteCode(error)),
  }
}

/**
 * Gives up the exclusive hold before closing: libsql closes a connection only when its statements are collected as
 * garbage, which may be seconds later. The hold of a WAL ends only when WAL mode is left.
 */
function letGo(connection: SqliteConnection) {
  try {
    connection.exec('pragma journal_mode = delete')
    connection.exec('pragma locking_mode = normal')
    connection.exec('select count(*) from sqlite_schema')
  } catch {
    // Closing goes on; the next opening waits for the lock, and says so when it cannot have it.
  }
}

/** The WAL-reset bug is fixed in SQLite 3.51.3 (2026-03-13). */
function isSafeForTwoConnections([major = 0, minor = 0, patch = 0]: readonly number[]): boolean {
  return major * 1e6 + minor * 1e3 + patch >= 3_051_003
}

function unavailable(message: string, cause: unknown): MarketplaceError {
  return new MarketplaceError('store_unavailable', message, { cause })
}

const fs = {
  open: promisify(openFile),
  close: promisify(closeFile),
  fsync: promisify(fsync),
  fdatasync: promisify(fdatasync),
}
