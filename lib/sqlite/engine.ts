import type { Clock } from '../clock.js'
import { MarketplaceError, messageOf } from '../errors.js'
import { ANYTHING, type Engine } from '../store/engine.js'
import { sql } from '../store/sql.js'
import { backUp } from './backup.js'
import { mayShareFiles, type SqliteConnection, type SqliteDriverName } from './drivers.js'
import { corrupt, explainSqlite, isSuspicious, sqliteCode, unavailable, wordsFor } from './errors.js'
import { type OpenFile, openSqliteFile } from './file.js'
import { pathFault } from './path.js'
import { givenRow, INSERTS_AT_ONCE, queriesOf, runScript } from './scripts.js'
import { NoThread } from './thread.js'
import { createTransactions } from './transactions.js'
import { createTurns } from './turns.js'

/**
 * SQLite in WAL mode, durable without ever making the event loop wait for the disk.
 *
 * With `synchronous=NORMAL` a commit writes the WAL and does not sync it. `durable()` syncs the `-wal` file through a
 * descriptor of our own, on libuv's threads, and only then may a delivery be acknowledged: as durable as FULL.
 *
 * - The system refuses a write (a full disk, a quota, a file-size limit): SQLite has rolled the transaction back. It
 *   fails, and nothing else: reads go on, and so do writes as soon as there is room.
 * - A sync fails, or the disk reports an I/O error: nobody knows what the disk holds. The file is suspect: reads go on,
 *   and each write first has everything moved from the WAL into the database under SQLite's own syncs, on a new
 *   connection. Until that succeeds nothing is accepted.
 * - Damage is found, at the opening or later: every call rejects `store_corrupt`.
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
  /** Of this process. What others committed before stands before them in the WAL. */
  let commits = 0
  let stopWatching = () => {}

  function opened(): OpenFile {
    if (damage !== undefined) throw damage
    if (!file) throw unavailable('Cannot use the store: it is not open')
    return file
  }

  /** To be called by who has the turn. */
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
    read: (work) => work(reading),
    write: transact,
    transact: (script) => transact(() => runScript(script(), opened(), explain)),
    compile: (query) => query.compile(reading.placeholder),
    given: givenRow,
    insertsAtOnce: INSERTS_AT_ONCE,
    rewritesIndexes: true,
    queriesOf: (step) => queriesOf(step, opened().time.now()),
    // A WAL lives in shared memory: every process on the file is on this machine.
    isLocal: true,
    clock,
    now: () => sql<number>`${opened().time.now()}`,
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
    forKeyShare: sql``,
    byIndex: (name) => sql`indexed by ${sql.ref(name)}`,
    // Without `autoincrement`, which writes one more table for each row. A number above all that there are is new enough.
    rowNumber: sql`integer primary key`,
    sortedText: sql`text`,
    busyTable: sql``,

    async open() {
      // An earlier opening may have come this far and then failed to migrate.
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
        const why = pathFault(path) ?? wordsFor(error, sqliteCode(error), path) ?? messageOf(error)
        throw unavailable(`Cannot open the SQLite file ${path}: ${why}`, error)
      }
    },

    async migrate(migrations) {
      const migrating = transact(async (trx) => {
        const rows = await sql<{ version: number }>`select version from marketplace_schema`.execute(trx)
        const version = rows[0]?.version ?? 0
        for (const migration of migrations.slice(version)) {
          for (const statement of migration(this)) await statement.execute(trx)
        }
        if (version < migrations.length) {
          await sql`delete from marketplace_schema`.execute(trx)
          await sql`insert into marketplace_schema values (${migrations.length})`.execute(trx)
        }
      })
      await migrating.catch((error) => {
        if (error instanceof MarketplaceError) throw error
        throw unavailable(`Cannot make the tables of the SQLite file ${path}: ${messageOf(error)}`, error)
      })
    },

    async durable() {
      if (inMemory) return
      // A sync of a suspect file proves nothing; a transaction makes it safe first.
      if (suspect !== undefined) await transact(() => {})
      try {
        await opened().wal?.durable()
      } catch (error) {
        if (error instanceof MarketplaceError) throw error
        const why = wordsFor(error, sqliteCode(error), path) ?? messageOf(error)
        throw unavailable(`Cannot sync the SQLite file ${path}: ${why}`, error)
      }
    },

    announce() {},

    watch(onHint) {
      if (inMemory || !file || !mayShareFiles(file.library)) return
      let seen: unknown
      let timer: unknown
      const look = () => {
        // data_version moves when another connection commits; reading it costs a few microseconds.
        try {
          const [row] = (file?.connection.all('pragma data_version', []) ?? []) as { data_version: number }[]
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
        // Without a thread: better a pause than no backup.
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
