import { writeSync } from 'node:fs'
import type { Clock } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { copyDatabase, freezeDatabase } from '../backup/backup.js'
import {
  findSqlite,
  mayShareFiles,
  type SqliteConnection,
  type SqliteDriverName,
  type SqliteLibrary,
} from '../drivers.js'
import { isSuspicious, sqliteCode } from '../errors.js'
import type { Mutex } from '../mutex.js'
import { type SqliteTime, startTime } from '../time.js'
import { inTransaction, retryWhileBusy } from '../transactions.js'
import { checkFile } from './check.js'
import { BEGIN_WAL, createCheckpoints } from './checkpoints.js'
import { holdFile } from './lock.js'
import { realDatabasePath } from './path.js'
import { type Place, rememberPlace, shareDescriptor } from './place.js'
import { makePrivateFile } from './private-file.js'
import { createSqliteThread, NoThread } from './thread.js'
import { openWal, type Wal } from './wal.js'

/** An open database file, with everything that belongs to it. */
export interface OpenFile {
  library: SqliteLibrary
  connection: SqliteConnection
  time: SqliteTime
  /** Undefined for `:memory:`. */
  wal: Wal | undefined
  checkpoints: ReturnType<typeof createCheckpoints> | undefined
  /** Undefined for `:memory:`. */
  place: Place | undefined
  /**
   * Lets SQLite find the commits of the WAL anew, writes the WAL to disk again, moves all of it into the database under
   * SQLite's own syncs, and replaces the connection. After a failure it may be called again.
   */
  renew(): Promise<void>
  /** Copies the database into a new file. Ends with the reason of `signal`. Not for `:memory:`. */
  copy(target: string, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** Closing the connection moves the WAL into the database. From about 1 MiB on the thread does that first. */
const PAGES_AT_CLOSE = 256
const PATIENCE_MS = 5_000

/**
 * Erases the two headers of the index of the WAL, of 48 bytes each. SQLite then finds the commits in the WAL by their
 * checksums, as after a crash: the kernel may have dropped pages of it from memory too.
 */
function forgetIndex(file: number) {
  writeSync(file, Buffer.alloc(2 * 48), 0, 2 * 48, 0)
}

/** Opens and checks a file. Rejects with SQLite's error or a `MarketplaceError`, and then leaves nothing open. */
export async function openSqliteFile(options: {
  path: string
  driver: SqliteDriverName | undefined
  /** Whether no other process may use the file meanwhile. */
  alone: boolean
  clock: Clock
  mutex: Mutex
  commits(): number
  onPlaceUnknown(): void
  onSyncFailure(error: unknown): void
  /** Called when damage is found after the opening. */
  onDamage(error: unknown): void
}): Promise<OpenFile> {
  const { alone, clock, mutex, commits, onPlaceUnknown, onSyncFailure, onDamage } = options
  const library = await findSqlite(options.driver)
  const inMemory = options.path === ':memory:'
  const path = inMemory ? options.path : realDatabasePath(options.path)
  const thread = createSqliteThread(library, path)
  // The check of a large file takes long, and a checkpoint that waits for it would hold up the writers.
  const checks = createSqliteThread(library, path)
  const cleanup: (() => unknown)[] = [() => thread.end(), () => checks.end()]

  async function cleanUp() {
    for (const step of cleanup.splice(0).reverse()) {
      try {
        await step()
      } catch {
        // The other steps must still run. The next opening finds the WAL.
      }
    }
  }

  const descriptor = shareDescriptor(path, 'r')
  const index = shareDescriptor(`${path}-shm`, 'r+')
  cleanup.push(
    () => descriptor.release(),
    () => index.release(),
  )
  try {
    if (!inMemory) {
      const isAlone = alone || !mayShareFiles(library)
      const hold = await retryWhileBusy(() => holdFile(library, path, isAlone), PATIENCE_MS, clock).catch(
        (error) => {
          if (sqliteCode(error) === 'BUSY') throw inUse(path, alone ? undefined : library, error)
          // A damaged lock file is not damage of the database, which nobody should then replace by a backup.
          throw sqliteCode(error) === 'NOTADB' ? lockDamaged(path, error) : error
        },
      )
      cleanup.push(() => hold.release())
    }
    let connection = await retryWhileBusy(() => connect(library, path), PATIENCE_MS, clock)
    cleanup.push(() => connection.close())
    let wal: Wal | undefined
    let place: Place | undefined
    if (!inMemory) {
      wal = await withoutWriters(connection, () => openWal(path, commits, onSyncFailure))
      cleanup.push(() => wal?.close())
      place = rememberPlace(
        options.path,
        path,
        { database: descriptor.file(), wal: wal.descriptor, index: index.file() },
        onPlaceUnknown,
      )
      await checkFile(path, connection, checks, onDamage)
    }
    const time = await retryWhileBusy(() => readTime(connection, clock), PATIENCE_MS, clock)

    const checkpoints =
      wal &&
      createCheckpoints({
        wal,
        thread,
        mutex,
        mayOverlap: mayShareFiles(library),
        onNoThread: () => connection.exec('pragma wal_autocheckpoint = 1000'),
        // A full disk is reported by the commits.
        onFailure: (error) => isSuspicious(error) && onSyncFailure(error),
        clock,
      })

    return {
      library,
      time,
      wal,
      checkpoints,
      place,
      get connection() {
        return connection
      },

      async renew() {
        forgetIndex(index.file())
        const fresh = connect(library, path)
        try {
          await withoutWriters(fresh, async () => wal?.rewrite())
          await moveWal(fresh)
        } catch (error) {
          fresh.close()
          throw error
        }
        connection.close()
        connection = fresh
      },

      async copy(target, signal) {
        const held = { library, path, connection: () => connection, thread, mutex, clock, signal }
        const thaw = await freezeDatabase(held)
        await copyDatabase(descriptor.file(), target, signal).finally(thaw)
      },

      async close() {
        // Each of these steps would make or delete files of the path, which may belong to another database by now.
        const isThere = place?.hasDatabase() ?? false
        if (isThere && wal?.reaches(PAGES_AT_CLOSE))
          await thread.run('pragma wal_checkpoint(truncate)').catch(() => {})
        // libsql closes a connection only when its statements are collected as garbage, and SQLite then deletes the `-wal`
        // file. By that time the file may belong to another database of this name. SQLite changes the mode only while no
        // other connection is open, as those of the threads are.
        if (library.name === 'libsql' && isThere)
          cleanup.push(
            () => connection.exec('pragma journal_mode = delete'),
            () => Promise.all([thread.end(), checks.end()]),
          )
        await cleanUp()
      },
    }

    async function withoutWriters<T>(on: SqliteConnection, work: () => Promise<T>): Promise<T> {
      await retryWhileBusy(() => on.exec('begin immediate'), PATIENCE_MS, clock)
      try {
        return await work()
      } finally {
        on.exec('rollback')
      }
    }

    /** Moves the WAL into the database on the thread, because a failing disk is slow. */
    async function moveWal(fresh: SqliteConnection) {
      const statement = 'pragma wal_checkpoint(truncate)'
      const [row] = await thread.run(statement).catch((error) => {
        if (!(error instanceof NoThread)) throw error
        return fresh.all(statement, [])
      })
      if ((row as { busy?: unknown } | undefined)?.busy) throw busy()
      await thread.run(BEGIN_WAL).catch((error) => {
        if (!(error instanceof NoThread)) throw error
      })
    }
  } catch (error) {
    await cleanUp()
    throw error
  }
}

/**
 * Opens a connection with its settings, and creates the three tables that exist before the migrations, which also creates
 * the `-wal` file. It uses `exec` only, so that the connection closes at once when a later step fails.
 */
export function connect(library: SqliteLibrary, path: string): SqliteConnection {
  if (path !== ':memory:') makePrivateFile(path)
  const opened = library.open(path)
  try {
    if (path !== ':memory:') {
      opened.exec('pragma journal_mode = wal')
      opened.exec('pragma synchronous = normal')
      // SQLite makes no checkpoints by itself: `checkpoints.ts` makes them on a thread, because a checkpoint syncs.
      opened.exec('pragma wal_autocheckpoint = 0')
      opened.exec('pragma journal_size_limit = 67108864')
    }
    opened.exec('pragma temp_store = memory')
    opened.exec('pragma trusted_schema = off')
    inTransaction(opened, () => {
      opened.exec('create table if not exists marketplace_schema (version integer not null)')
      opened.exec(
        'create table if not exists marketplace_time (boot text not null, anchor integer not null, noted integer not null, wals integer not null)',
      )
      opened.exec(
        'create table if not exists marketplace_dates (boot text not null, dates integer not null, wall integer not null, behind integer not null)',
      )
    })
    return opened
  } catch (error) {
    opened.close()
    throw error
  }
}

/** Starts the store's time in a transaction of its own. */
export function readTime(connection: SqliteConnection, clock: Clock): SqliteTime {
  return inTransaction(connection, () => startTime(connection, clock))
}

/** @param library the one that must not share the file; undefined: the caller wants it alone */
function inUse(path: string, library: SqliteLibrary | undefined, cause: unknown): MarketplaceError {
  const why = library
    ? `another process or instance holds it, and SQLite ${library.version.join('.')} (${library.name}) must not share it. Use SQLite 3.51.3 or newer, or stop the other`
    : 'a process uses it. Stop every process of the app first'
  return new MarketplaceError('store_in_use', `Cannot open the SQLite file ${path}: ${why}`, { cause })
}

function lockDamaged(path: string, cause: unknown): Error {
  return new Error(`the file ${path}-lock beside it, which is always empty, has other content: delete it`, {
    cause,
  })
}

function busy(): Error {
  return Object.assign(new Error('another process reads or writes it'), { code: 'SQLITE_BUSY' })
}
