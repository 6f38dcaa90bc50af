import { statSync } from 'node:fs'
import { findSqlite, mayShareFiles, type SqliteConnection, type SqliteLibrary } from '../drivers.js'
import { sqliteCode } from '../errors.js'
import { makePrivateFile } from './private-file.js'

/**
 * Locks `<path>-lock`, an empty database of its own: exclusively for a SQLite that must not share the database with
 * another process or instance (`libsql`, and `node:sqlite` of an older Node), or for a restoration, and shared for one that
 * may. The database itself stays open for the second connection of this process, which checks, copies and checkpoints it.
 *
 * Whoever may open the database may open its lock, so a new lock has the mode of the database.
 *
 * Throws BUSY when another process holds the lock.
 */
export function holdFile(
  library: SqliteLibrary,
  path: string,
  isAlone = !mayShareFiles(library),
): { release(): void } {
  const database = statSync(path, { throwIfNoEntry: false })
  makePrivateFile(`${path}-lock`, database && database.mode & 0o777)
  const lock: SqliteConnection = library.open(`${path}-lock`)
  try {
    lock.exec(isAlone ? 'begin exclusive' : 'begin; select count(*) from sqlite_schema')
  } catch (error) {
    lock.close()
    throw error
  }
  return {
    release() {
      // The transaction is rolled back first, because libsql may close the connection late.
      lock.exec('rollback')
      lock.close()
    },
  }
}

/** Whether an opening of this database would have to wait for another process. Other faults are those of the opening. */
export async function isHeld(path: string): Promise<boolean> {
  try {
    const library = await findSqlite()
    holdFile(library, path).release()
    return false
  } catch (error) {
    return sqliteCode(error) === 'BUSY'
  }
}
