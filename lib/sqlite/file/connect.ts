import type { Clock } from '../../base/clock.js'
import { inTransaction, type SqliteConnection, type SqliteLibrary } from '../drivers.js'
import { type StoreTime, startTime } from '../time.js'

/**
 * Opens a connection with its settings, and creates the three tables that exist before the migrations, which also creates
 * the `-wal` file. It uses `exec` only, so that the connection closes at once when a later step fails.
 */
export function connect(library: SqliteLibrary, path: string): SqliteConnection {
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
export function readTime(connection: SqliteConnection, clock: Clock): StoreTime {
  return inTransaction(connection, () => startTime(connection, clock))
}
