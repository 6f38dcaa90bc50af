import type { Clock } from '../base/clock.js'
import { MarketplaceError, messageOf } from '../base/errors.js'
import { createSlices } from '../base/waiting.js'
import { warn as emitWarning, type Warn } from '../base/warnings.js'
import { ANYTHING, type Engine } from '../store/sql/engine.js'
import { runMigrations } from '../store/sql/migrations.js'
import { backUp } from './backup/backup.js'
import { sqliteDialect } from './dialect.js'
import { mayShareFiles, type SqliteConnection, type SqliteDriverName } from './drivers.js'
import { corrupt, explainSqlite, isSuspicious, reasonOf, sqliteCode, unavailable } from './errors.js'
import { type OpenFile, openSqliteFile } from './file/file.js'
import { pathFault } from './file/path.js'
import { makePrivateFile } from './file/private-file.js'
import { createMutex } from './mutex.js'
import { createTransactions } from './transactions.js'

/**
 * SQLite in WAL mode. Commits become durable while the event loop continues.
 *
 * With `synchronous=NORMAL` a commit writes the WAL and does not sync it. `durable()` syncs the `-wal` file through a
 * descriptor of our own, on libuv's threads (`file/wal.ts`), and a delivery is acknowledged only then. That is as durable
 * as `FULL`.
 *
 * | state of the file | entered | left |
 * |---|---|---|
 * | sound | `open()` | the events below |
 * | sound, and full | the system refuses a write: a full disk, a quota, a file-size limit. SQLite has rolled it back, and only that transaction fails | there is room again |
 * | distrusted | a sync of ours or of a checkpoint fails, or the disk reports an I/O error, so the content of the disk is unknown. No commit so far that was not acknowledged is ever acknowledged. Reads go on; each write first writes the WAL again and moves it into the database under SQLite's own syncs, on a new connection | that succeeds: sound |
 * | gone | its path names no file or another one, or its content is not what SQLite wrote. Reads go on; no write begins and none is acknowledged | the same file is back: sound |
 * | damaged | a check or a read finds damage. Every call rejects `store_corrupt` | `open()` |
 */
export function createSqliteEngine(options: {
  /** A path, or ':memory:' for tests. */
  path: string
  clock: Clock
  driver?: SqliteDriverName
  /** Gets the code of each warning. Without it they become process warnings. */
  warn?: Warn | undefined
}): Engine {
  const { path, clock, driver, warn = emitWarning } = options
  const inMemory = path === ':memory:'
  const mutex = createMutex(inMemory ? undefined : createSlices(clock))
  let file: OpenFile | undefined
  const backups = createMutex()
  /** Ends the backup that runs. */
  let backup = new AbortController()
  let failedSync: unknown
  let damage: unknown
  /** Commits of this process. Earlier commits of others precede them in the WAL, so one sync covers both. */
  let commits = 0
  /** The number of commits before the last failed sync: none of them counts as durable. */
  let distrusted = 0
  let stopWatching = () => {}

  function opened(): OpenFile {
    if (damage !== undefined) throw damage
    if (!file) throw unavailable('Cannot use the store: it is not open')
    return file
  }

  function requirePlace() {
    const why = file?.place?.fault(failedSync === undefined)
    if (why !== undefined) throw unavailable(`Cannot use the SQLite file ${path}: ${why}`)
  }

  /** Returns the connection to write with. If a sync has failed, it first renews the file. The caller holds the mutex. */
  async function writable(): Promise<SqliteConnection> {
    requirePlace()
    if (failedSync !== undefined) {
      // A backup under way is ended: it keeps the database file as it is, and the renewal writes that file.
      backup.abort(unavailable('a sync of the database failed meanwhile'))
      try {
        await opened().renew()
        failedSync = undefined
      } catch (error) {
        throw explain(error)
      }
    }
    return opened().connection
  }

  function distrust(error: unknown) {
    failedSync = error
    distrusted = commits
  }

  function cannotSync(error: unknown): unknown {
    if (error instanceof MarketplaceError) return error
    const why = reasonOf(error, sqliteCode(error), path) ?? messageOf(error)
    return unavailable(`Cannot sync the SQLite file ${path}: ${why}`, error)
  }

  function explain(error: unknown): unknown {
    const explained = explainSqlite(error, path)
    if (isSuspicious(error)) distrust(error)
    if ((explained as { code?: unknown }).code === 'store_corrupt') damage = explained
    return explained
  }

  const { reading, transact, writeAll } = createTransactions({
    mutex,
    readable: () => opened().connection,
    writable,
    time: () => opened().time,
    beforeCommit: (connection) => file?.time.note(connection),
    afterCommit() {
      commits++
      file?.checkpoints?.afterCommit()
    },
    explain,
    clock,
  })

  async function copyInto(target: string, signal: AbortSignal) {
    requirePlace()
    if (!inMemory) return opened().copy(target, signal)
    const unlock = await mutex.lock()
    try {
      makePrivateFile(target)
      opened().connection.exec(`vacuum into '${target.replaceAll("'", "''")}'`)
    } finally {
      unlock()
    }
  }

  async function release() {
    const released = file
    file = undefined
    await released?.close()
  }

  return {
    ...sqliteDialect(() => opened().time),
    read: (work) => work(reading),
    write: transact,
    writeAll,
    // A WAL is in shared memory, so every process that uses the file is on this machine.
    isLocal: true,
    clock,

    async open({ alone = false } = {}) {
      // An earlier opening may have failed after this point.
      await release()
      failedSync = undefined
      damage = undefined
      try {
        file = await openSqliteFile({
          path,
          driver,
          alone,
          clock,
          mutex,
          commits: () => commits,
          onPlaceUnknown: () => warn('store_place_unknown'),
          onSyncFailure: distrust,
          onDamage(error) {
            damage = error instanceof MarketplaceError ? error : corrupt(path, error)
          },
        })
      } catch (error) {
        const explained = explainSqlite(error, path)
        if (explained instanceof MarketplaceError && explained.code !== 'store_unavailable') throw explained
        const why = pathFault(path) ?? reasonOf(error, sqliteCode(error), path) ?? messageOf(error)
        throw unavailable(`Cannot open the SQLite file ${path}: ${why}`, error)
      }
    },

    async migrate(migrations, mayMigrate) {
      const migrating = transact((trx) => runMigrations(this, trx, migrations, mayMigrate))
      await migrating.catch((error) => {
        if (error instanceof MarketplaceError) throw error
        throw unavailable(`Cannot make the tables of the SQLite file ${path}: ${messageOf(error)}`, error)
      })
    },

    mark: () => commits,

    async durable(since = commits) {
      if (inMemory) return
      const trusted = () => {
        if (distrusted > since)
          throw cannotSync(failedSync ?? new Error('a sync failed before it was on disk'))
      }
      trusted()
      // A sync of a distrusted file proves nothing. An empty transaction makes the file sound first.
      if (failedSync !== undefined) await transact(() => {})
      try {
        await opened().wal?.durable()
      } catch (error) {
        throw cannotSync(error)
      }
      trusted()
      requirePlace()
    },

    fault() {
      try {
        requirePlace()
      } catch (error) {
        return error
      }
      return failedSync === undefined ? undefined : cannotSync(failedSync)
    },

    announce() {},

    watch(onHint) {
      if (inMemory || !file || !mayShareFiles(file.library)) return
      stopWatching = watchCommits(
        () => file?.connection,
        (connection) => {
          file?.time.follow(connection)
          ANYTHING.forEach(onHint)
        },
        clock,
      )
    },

    async backup(target, signal) {
      // Backups run one at a time: while one keeps the file as it is, the next would miss the later commits.
      const unlock = await backups.lock()
      backup = new AbortController()
      const end = () => backup.abort(signal?.reason)
      signal?.addEventListener('abort', end)
      if (signal?.aborted) end()
      try {
        await backUp(target, (unfinished) => copyInto(unfinished, backup.signal))
      } finally {
        signal?.removeEventListener('abort', end)
        unlock()
      }
    },

    async close() {
      stopWatching()
      backup.abort(unavailable('the store was closed meanwhile'))
      failedSync = undefined
      const unlock = await mutex.lock()
      await release().finally(unlock)
    },

    isDataError: (error) => ['CONSTRAINT', 'TOOBIG', 'MISMATCH'].includes(sqliteCode(error)),
    // No statement is given up.
    isTimeout: () => false,
  }
}

/** Looks for commits of other processes, and calls `onCommit` for them. Returns the function that ends that. */
function watchCommits(
  connection: () => SqliteConnection | undefined,
  onCommit: (connection: SqliteConnection) => void,
  clock: Clock,
): () => void {
  let seen: unknown
  let timer: unknown

  function look() {
    try {
      // The number changes when another connection commits. Reading it takes a few microseconds.
      const current = connection()
      const [row] = (current?.all('pragma data_version', []) ?? []) as { data_version: number }[]
      if (current && seen !== undefined && row?.data_version !== seen) onCommit(current)
      seen = row?.data_version
    } catch {
      // The next transaction reports the error.
    }
    timer = clock.setTimeout(look, LOOK_EVERY_MS)
  }

  look()
  return () => clock.clearTimeout(timer)
}

const LOOK_EVERY_MS = 500
