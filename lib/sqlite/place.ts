import { fstatSync, type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'

/** Whether the files of an open database are still those that its path names. */
export interface Place {
  /** What has happened to a file, and what to do; undefined while all are there. Takes 3 µs. */
  fault(): string | undefined
  /** Whether the path still names the database itself. */
  hasDatabase(): boolean
}

/**
 * Remembers the files of a database that was just opened, by device and inode. A commit into a file that was removed or
 * replaced succeeds, and is lost at the next start. An inode is not used again while its file is open.
 *
 * @param given the path as configured: a link that leads elsewhere is found too
 * @param path the path without links
 * @param wal a descriptor of the `-wal` file
 * @param onUnknown called when the file system gives a file another identity each time, so that nothing can be compared
 */
export function rememberPlace(given: string, path: string, wal: number, onUnknown: () => void): Place {
  const named = resolve(given)
  const files = [named, `${path}-wal`, `${path}-shm`]
  const ids = files.map(idOf)
  if (ids[0] !== idOf(named) || ids[1] !== idFrom(fstatSync(wal))) {
    onUnknown()
    return { fault: () => undefined, hasDatabase: () => true }
  }

  return {
    fault() {
      for (let i = 0; i < files.length; i++) {
        const id = idOf(files[i] as string)
        if (id === ids[i] || id === UNKNOWN) continue
        if (i > 0) return `${files[i]} ${id === MISSING ? REMOVED : REPLACED}. ${STOP}`
        return id === MISSING ? `it ${REMOVED}. ${PUT_BACK}` : `it ${REPLACED}. ${RESTART}`
      }
      return undefined
    },
    hasDatabase: () => [ids[0], UNKNOWN].includes(idOf(named)),
  }
}

const REMOVED = 'was removed or moved away while this process uses it'
const REPLACED = 'was replaced by another file while this process uses it'
const PUT_BACK = 'Put the same file back, or stop this process, restore a backup, and start it again'
const RESTART = 'Restart this process to use the file that is there now, or put the former file back'
const STOP =
  'Stop this process by SIGTERM, so that it closes its store and moves its content into the database, and start it again'

const MISSING = 'missing'
/** For example a folder that this process may no longer enter. */
const UNKNOWN = 'unknown'

function idOf(path: string): string {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found ? idFrom(found) : MISSING
  } catch {
    return UNKNOWN
  }
}

function idFrom({ dev, ino }: Stats): string {
  return `${dev}:${ino}`
}
