import { mayShareFiles, type SqliteConnection, type SqliteLibrary } from './drivers.js'

/**
 * Keeps a library that must not share the database apart from every other process and instance: it holds the file
 * `<path>-lock`, an empty database of its own, exclusively; libraries that may share hold it in common. The database
 * itself stays open to a second connection of this process, which checks, copies and checkpoints it.
 *
 * Throws BUSY when others hold it.
 */
export function holdFile(library: SqliteLibrary, path: string): { release(): void } {
  const lock: SqliteConnection = library.open(`${path}-lock`)
  try {
    lock.exec(mayShareFiles(library) ? 'begin; select count(*) from sqlite_schema' : 'begin exclusive')
  } catch (error) {
    lock.close()
    throw error
  }
  return {
    release() {
      // libsql may close late.
      lock.exec('rollback')
      lock.close()
    },
  }
}
