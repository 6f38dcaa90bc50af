import type { Clock } from '../../base/clock.js'
import { sleep } from '../../base/waiting.js'
import { mayShareFiles, type SqliteConnection, type SqliteLibrary } from '../drivers.js'
import { retryWhileBusy, unavailable } from '../errors.js'
import { NoThread, type SqliteThread } from '../file/thread.js'
import type { Mutex } from '../mutex.js'

const PATIENCE_MS = 5_000
const PASSIVE = 'pragma wal_checkpoint(passive)'

/**
 * Moves every commit into the database file, and then keeps that file as it is: its bytes are a complete database until
 * the returned function is called. Writers go on meanwhile, and the WAL grows.
 *
 * A reading transaction that begins right after a complete checkpoint keeps the file as it is. Nobody may commit between
 * the two, so both run under SQLite's write lock; see docs/decisions/sqlite-backup.md.
 *
 * Rejects when other processes read without a pause for five seconds, and with the reason of `signal`, which also ends
 * what was begun.
 */
export async function freezeDatabase(options: {
  library: SqliteLibrary
  path: string
  connection(): SqliteConnection
  thread: SqliteThread
  mutex: Mutex
  clock: Clock
  signal: AbortSignal
}): Promise<() => void> {
  const { library, path, connection, thread, mutex, clock, signal } = options
  const reader = library.open(path)
  const deadline = clock.monotonic() + PATIENCE_MS
  try {
    while (!(await tryToFreeze())) {
      if (clock.monotonic() >= deadline) throw unavailable('another process has been reading it for over 5 s')
      await sleep(50, clock)
    }
  } catch (error) {
    reader.close()
    throw error
  }
  function thaw() {
    signal.removeEventListener('abort', thaw)
    // The transaction is rolled back first, because libsql may close the connection late.
    reader.exec('rollback')
    reader.close()
  }
  signal.addEventListener('abort', thaw)
  return () => {
    if (!signal.aborted) thaw()
  }

  async function tryToFreeze(): Promise<boolean> {
    // Most of the WAL is copied beside the writers.
    if (mayShareFiles(library)) await checkpoint()
    const unlock = await mutex.lock()
    try {
      signal.throwIfAborted()
      const writer = connection()
      await retryWhileBusy(() => writer.exec('begin immediate'), PATIENCE_MS, clock)
      try {
        if (!(await checkpoint())) return false
        signal.throwIfAborted()
        reader.exec('begin; select count(*) from sqlite_schema')
        return true
      } finally {
        writer.exec('rollback')
      }
    } finally {
      unlock()
    }
  }

  /** Whether it copied everything. */
  async function checkpoint(): Promise<boolean> {
    const rows = await thread.run(PASSIVE).catch((error) => {
      if (!(error instanceof NoThread)) throw error
      return reader.all(PASSIVE, [])
    })
    const { busy, log, checkpointed } = rows[0] as Record<'busy' | 'log' | 'checkpointed', number>
    return busy === 0 && log === checkpointed
  }
}
