import type { Clock } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { checkFile } from './check.js'
import { BEGIN_WAL, createCheckpoints } from './checkpoints.js'
import { connect, readTime } from './connect.js'
import {
  findSqlite,
  mayShareFiles,
  type SqliteConnection,
  type SqliteDriverName,
  type SqliteLibrary,
} from './drivers.js'
import { retryWhileBusy, sqliteCode } from './errors.js'
import { holdFile } from './hold.js'
import { realDatabasePath } from './path.js'
import { createSqliteThread, NoThread, type SqliteThread } from './thread.js'
import type { StoreTime } from './time.js'
import type { Turns } from './turns.js'
import { openWal, type Wal } from './wal.js'

/** An open database file, with everything that belongs to it. */
export interface OpenFile {
  library: SqliteLibrary
  connection: SqliteConnection
  thread: SqliteThread
  time: StoreTime
  /** Undefined for `:memory:`. */
  wal: Wal | undefined
  checkpoints: ReturnType<typeof createCheckpoints> | undefined
  /**
   * Moves the whole WAL into the database under SQLite's own syncs, and replaces the connection. A failure changes
   * nothing.
   */
  renew(): Promise<void>
  close(): Promise<void>
}

/** Closing the connection moves the WAL into the database. From about 1 MiB on the thread does that first. */
const PAGES_AT_CLOSE = 256
const PATIENCE_MS = 5_000

/** Opens and checks a file. Rejects with SQLite's error or a `MarketplaceError`, and then leaves nothing open. */
export async function openSqliteFile(options: {
  path: string
  driver: SqliteDriverName | undefined
  clock: Clock
  turns: Turns
  commits(): number
  onSyncFailure(error: unknown): void
  /** Called when damage is found after the opening. */
  onDamage(error: unknown): void
}): Promise<OpenFile> {
  const { clock, turns, commits, onSyncFailure, onDamage } = options
  const library = await findSqlite(options.driver)
  const inMemory = options.path === ':memory:'
  const path = inMemory ? options.path : realDatabasePath(options.path)
  const thread = createSqliteThread(library, path)
  const cleanup: (() => unknown)[] = [() => thread.end()]

  async function cleanUp() {
    for (const step of cleanup.splice(0).reverse()) {
      try {
        await step()
      } catch {
        // The other steps must still run. The next opening finds the WAL.
      }
    }
  }

  try {
    if (!inMemory) {
      const hold = await retryWhileBusy(() => holdFile(library, path), PATIENCE_MS, clock).catch((error) => {
        if (sqliteCode(error) === 'BUSY') throw inUse(path, library, error)
        // Not damage of the database, which nobody should then replace by a backup.
        throw sqliteCode(error) === 'NOTADB' ? lockDamaged(path, error) : error
      })
      cleanup.push(() => hold.release())
    }
    let connection = await retryWhileBusy(() => connect(library, path), PATIENCE_MS, clock)
    cleanup.push(() => connection.close())
    let wal: Wal | undefined
    if (!inMemory) {
      wal = await openWal(path, commits, onSyncFailure)
      cleanup.push(() => wal?.close())
      await checkFile(path, connection, thread, onDamage)
    }
    const time = await retryWhileBusy(() => readTime(connection, clock), PATIENCE_MS, clock)

    const checkpoints =
      wal &&
      createCheckpoints({
        wal,
        thread,
        turns,
        mayOverlap: mayShareFiles(library),
        onNoThread: () => connection.exec('pragma wal_autocheckpoint = 1000'),
        clock,
      })

    return {
      library,
      thread,
      time,
      wal,
      checkpoints,
      get connection() {
        return connection
      },

      async renew() {
        const fresh = connect(library, path)
        try {
          await moveWal(fresh)
        } catch (error) {
          fresh.close()
          throw error
        }
        connection.close()
        connection = fresh
      },

      async close() {
        if (wal?.reaches(PAGES_AT_CLOSE)) await thread.run('pragma wal_checkpoint(truncate)').catch(() => {})
        // libsql closes a connection only when its statements are collected as garbage, and SQLite then deletes the `-wal`
        // file. By that time the file may belong to another database of this name.
        if (library.name === 'libsql' && !inMemory)
          cleanup.push(
            () => connection.exec('pragma journal_mode = delete'),
            () => thread.end(),
          )
        await cleanUp()
      },
    }

    /** On the thread, because a failing disk is slow. */
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

function inUse(path: string, library: SqliteLibrary, cause: unknown): MarketplaceError {
  return new MarketplaceError(
    'store_in_use',
    `Cannot open the SQLite file ${path}: another process or instance holds it, and SQLite ${library.version.join('.')} (${library.name}) must not share it. Use SQLite 3.51.3 or newer, or stop the other`,
    { cause },
  )
}

function lockDamaged(path: string, cause: unknown): Error {
  return new Error(`the file ${path}-lock beside it, which is always empty, has other content: delete it`, {
    cause,
  })
}

function busy(): Error {
  return Object.assign(new Error('another process reads or writes it'), { code: 'SQLITE_BUSY' })
}
