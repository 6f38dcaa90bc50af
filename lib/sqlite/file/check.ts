import type { SqliteConnection } from '../drivers.js'
import { corrupt, sizeOf, sqliteCode } from '../errors.js'
import { NoThread, type SqliteThread } from './thread.js'

/** Files up to this size are checked at once: a MiB takes about 2 ms, and the event loop may stop for 25 ms at most. */
const AT_ONCE_BYTES = 4 * 1024 * 1024
/** Files up to this size are checked on the thread before the store is open, in about 0.1 s; larger ones while in use. */
const BEFORE_OPEN_BYTES = 64 * 1024 * 1024

/**
 * Checks an open file for damage: small files at once, larger ones on the thread, and the largest while the store is
 * already in use. Rejects `store_corrupt`; for the largest files it calls `onDamage` instead.
 */
export async function checkFile(
  path: string,
  connection: SqliteConnection,
  thread: SqliteThread,
  onDamage: (error: unknown) => void,
): Promise<void> {
  const bytes = sizeOf(path)
  if (bytes <= AT_ONCE_BYTES) return checkAtOnce(connection, path)
  const checking = thread.run('pragma quick_check(1)', { isIdle: bytes > BEFORE_OPEN_BYTES }).then(
    ([row]) => {
      if ((row as { quick_check?: unknown }).quick_check !== 'ok') throw corrupt(path, row)
    },
    (error) => {
      if (['CORRUPT', 'NOTADB'].includes(sqliteCode(error))) throw corrupt(path, error)
      // Without a thread large files are not checked; damage shows when it is read.
      if (!(error instanceof NoThread)) throw error
    },
  )
  if (bytes <= BEFORE_OPEN_BYTES) return checking
  checking.catch((error) => {
    if (sqliteCode(error) === '' || error.code === 'store_corrupt') onDamage(error)
  })
}

/** Throws `store_corrupt` for a damaged file. The event loop waits for it. */
export function checkAtOnce(connection: SqliteConnection, path: string) {
  try {
    // The check runs by `exec`, because a prepared statement keeps a connection of libsql open. It returns no rows, so the
    // statement turns damage into an error.
    connection.exec(`select iif(quick_check = 'ok', 1, json('damaged')) from pragma_quick_check`)
  } catch (error) {
    const code = sqliteCode(error)
    throw code === '' || code === 'ERROR' ? corrupt(path, error) : error
  }
}
