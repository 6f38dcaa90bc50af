import type { SqliteConnection } from './drivers.js'
import { corrupt, sizeOf, sqliteCode } from './errors.js'
import { NoThread, type SqliteThread } from './thread.js'

/** Checked at once: takes some 2 ms for a MiB, and 25 ms is what the event loop may stand still. */
const AT_ONCE_BYTES = 4 * 1024 * 1024
/** Checked before the store is open, on the thread: up to some 0.1 s. Larger files are checked while they are in use. */
const BEFORE_OPEN_BYTES = 64 * 1024 * 1024

/**
 * Looks for damage in a file that has been opened. Small files are checked at once, larger ones on the thread, and the
 * largest while the store is already in use: then `onDamage` is called when it is found.
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
      // Nothing is known: what is damaged shows when it is read. Without a thread only a start checks, as far as it may.
      if (!(error instanceof NoThread)) throw error
    },
  )
  if (bytes <= BEFORE_OPEN_BYTES) return checking
  checking.catch((error) => {
    if (sqliteCode(error) === '' || error.code === 'store_corrupt') onDamage(error)
  })
}

function checkAtOnce(connection: SqliteConnection, path: string) {
  try {
    // Only `exec` leaves nothing behind that keeps a connection of libsql open, and it answers nothing: so damage is
    // made an error.
    connection.exec(`select iif(quick_check = 'ok', 1, json('damaged')) from pragma_quick_check`)
  } catch (error) {
    const code = sqliteCode(error)
    throw code === '' || code === 'ERROR' ? corrupt(path, error) : error
  }
}
