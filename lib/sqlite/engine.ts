import type { Clock } from '../clock.js'
import { MarketplaceError, messageOf } from '../errors.js'
import type { Engine } from '../store/engine.js'
import { runMigrations } from '../store/migrate.js'
import { backUp } from './backup.js'
import { sqliteDialect } from './dialect.js'
import { mayShareFiles, type SqliteConnection, type SqliteDriverName } from './drivers.js'
import { corrupt, explainSqlite, isSuspicious, reasonOf, sqliteCode, unavailable } from './errors.js'
import { type OpenFile, openSqliteFile } from './file.js'
import { pathFault } from './path.js'
import { runScript } from './scripts.js'
import { NoThread } from './thread.js'
import { createTransactions } from './transactions.js'
import { createTurns } from './turns.js'
import { watchCommits } from './watch.js'

/**
 * SQLite in WAL mode. Commits become durable while the event loop continues.
 *
 * With `synchronous=NORMAL` a commit writes the WAL and does not sync it. `durable()` syncs the `-wal` file through a
 * descriptor of our own, on libuv's threads (`wal.ts`), and a delivery is acknowledged only then. That is as durable as
 * `FULL`.
 *
 * | state of the file | entered | left |
 * |---|---|---|
 * | sound | `open()` | the events below |
 * | sound, and full | the system refuses a write: a full disk, a quota, a file-size limit. SQLite has rolled it back, and only that transaction fails | there is room again |
 * | suspect | a sync fails, or the disk reports an I/O error, so the content of the disk is unknown. Reads go on; each write first moves the WAL into the database under SQLite's own syncs, on a new connection | that succeeds: sound |
 * | damaged | a check or a read finds damage. Every call rejects `store_corrupt` | `open()` |
 */
export function createSqliteEngine(options: {
  /** A path, or ':memory:' for tests. */
  path: string
  clock: Clock
  driver?: SqliteDriverName
}): Engine {
  const { path, clock, driver } = options
  const inMemory = path === ':memory:'
  const turns = createTurns(!inMemory)
  let file: OpenFile | undefined
  let suspect: unknown
  let damage: unknown
  /** Commits of this process. Earlier commits of others precede them in the WAL, so one sync covers both. */
  let commits = 0
  let stopWatching = () => {}

  function opened(): OpenFile {
    if (damage !== undefined) throw damage
    if (!file) throw unavailable('Cannot use the store: it is not open')
    return file
  }

  /** Makes a suspect file sound first. The caller has the turn. */
  async function writable(): Promise<SqliteConnection> {
    if (suspect !== undefined) {
      try {
        await opened().renew()
        suspect = undefined
      } catch (error) {
        throw explain(error)
      }
    }
    return opened().connection
  }

  function explain(error: unknown): unknown {
    const explained = explainSqlite(error, path)
    if (isSuspicious(error)) suspect = error
    if ((explained as { code?: unknown }).code === 'store_corrupt') damage = explained
    return explained
  }

  const { reading, transact } = createTransactions({
    turns,
    readable: () => opened().connection,
    writable,
    beforeCommit: (connection) => file?.time.note(connection),
    afterCommit() {
      commits++
      file?.checkpoints?.afterCommit()
    },
    explain,
    clock,
  })

  async function release() {
    const released = file
    file = undefined
    await released?.close()
  }

  return {
    ...sqliteDialect(() => opened().time.now()),
    read: (work) => work(reading),
    write: transact,
    transact: (script) => transact(() => runScript(script(), opened(), explain)),
    transactsAtOnce: 1,
    // A WAL is in shared memory, so every process that uses the file is on this machine.
    isLocal: true,
    clock,

    async open() {
      // An earlier opening may have failed after this point.
      await release()
      suspect = undefined
      damage = undefined
      try {
        file = await openSqliteFile({
          path,
          driver,
          clock,
          turns,
          commits: () => commits,
          onSyncFailure(error) {
            suspect = error
          },
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

    async migrate(migrations) {
      const migrating = transact((trx) => runMigrations(this, trx, migrations))
      await migrating.catch((error) => {
        if (error instanceof MarketplaceError) throw error
        throw unavailable(`Cannot make the tables of the SQLite file ${path}: ${messageOf(error)}`, error)
      })
    },

    async durable() {
      if (inMemory) return
      // A sync of a suspect file proves nothing. An empty transaction makes the file sound first.
      if (suspect !== undefined) await transact(() => {})
      try {
        await opened().wal?.durable()
      } catch (error) {
        if (error instanceof MarketplaceError) throw error
        const why = reasonOf(error, sqliteCode(error), path) ?? messageOf(error)
        throw unavailable(`Cannot sync the SQLite file ${path}: ${why}`, error)
      }
    },

    announce() {},

    watch(onHint) {
      if (inMemory || !file || !mayShareFiles(file.library)) return
      stopWatching = watchCommits(() => file?.connection, onHint, clock)
    },

    async backup(target) {
      const { connection, thread } = opened()
      await backUp(target, async (statement) => {
        const here = async () => {
          const pass = await turns.take()
          try {
            connection.exec(statement)
          } finally {
            pass()
          }
        }
        if (inMemory) return here()
        // Without a thread the event loop waits: a pause is better than no backup.
        await thread.run(statement).catch((error) => {
          if (!(error instanceof NoThread)) throw error
          return here()
        })
      })
    },

    async close() {
      stopWatching()
      suspect = undefined
      const pass = await turns.take()
      await release().finally(pass)
    },

    isDataError: (error) => ['CONSTRAINT', 'TOOBIG', 'MISMATCH'].includes(sqliteCode(error)),
  }
}
