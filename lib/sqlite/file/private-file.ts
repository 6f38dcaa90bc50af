import { closeSync, fchmodSync, openSync } from 'node:fs'

/** Every file of this package contains data of customers, so only the user of the process may read it. */
const PRIVATE = 0o600

/**
 * Makes an empty file with this mode, whatever the umask. Returns false if there is a file of this name, whose mode stays
 * as it is.
 *
 * SQLite itself would let every user read a database. It makes the `-wal` and `-shm` files with the mode of the database.
 */
export function makePrivateFile(path: string, mode: number = PRIVATE): boolean {
  let file: number
  try {
    file = openSync(path, 'wx', mode)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'EEXIST') return false
    throw error
  }
  try {
    fchmodSync(file, mode)
  } catch {
    // Some file systems have no modes.
  }
  closeSync(file)
  return true
}
