import { closeSync, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'

/** Whether the files of an open database are still those that its path names, with what SQLite wrote into them. */
export interface Place {
  /**
   * What has happened to a file, and what to do; undefined while all are there. Takes 5 to 10 µs.
   *
   * @param isSound whether to look at the content too: after a failed sync the kernel may have dropped pages by itself
   */
  fault(isSound: boolean): string | undefined
  /** Whether the path still names the database itself. */
  hasDatabase(): boolean
}

/** Descriptors of the three files, which stay open as long as the database. */
interface Descriptors {
  database: number
  wal: number
  index: number
}

/**
 * Remembers the files of a database that was just opened, by device and inode. A commit into a file that was removed or
 * replaced succeeds, and is lost at the next start. An inode is not used again while its file is open. A copy over a file
 * keeps its inode, so the content is looked at too.
 *
 * @param given the path as configured: a link that leads elsewhere is found too
 * @param path the path without links
 * @param onUnknown called when the file system gives a file another identity each time, so that nothing can be compared
 */
export function rememberPlace(
  given: string,
  path: string,
  descriptors: Descriptors,
  onUnknown: () => void,
): Place {
  const named = resolve(given)
  // The lock is compared too, because a restoration looks at the lock only.
  const files = [named, `${path}-wal`, `${path}-shm`, `${path}-lock`]
  const first = files.map(look)
  const opened = [descriptors.database, descriptors.wal, descriptors.index].map((each) => fstatSync(each))
  if (!isSame(first[0], look(named)) || !isSame(first[1], opened[1])) {
    onUnknown()
    return { fault: () => undefined, hasDatabase: () => true }
  }
  const contentFault = watchContent(`${path}-wal`, descriptors)
  // Stores of one path share descriptors, and another store of this process may still use a file that was replaced.
  const isWatched = isSame(first[0], opened[0]) && isSame(first[2], opened[2])

  return {
    fault(isSound) {
      const found = files.map(look)
      for (let i = 0; i < files.length; i++) {
        if (isSame(first[i], found[i]) || found[i] === UNKNOWN) continue
        if (i > 0) return `${files[i]} ${found[i] ? REPLACED : REMOVED}. ${STOP}`
        return found[i] ? `it ${REPLACED}. ${RESTART}` : `it ${REMOVED}. ${PUT_BACK}`
      }
      const [database, wal] = found
      return isWatched && isSound && database && wal ? contentFault(database.size, wal.size) : undefined
    },
    hasDatabase() {
      const found = look(named)
      return isSame(first[0], found) || found === UNKNOWN
    },
  }
}

/**
 * Compares the content of the files with what SQLite keeps true at every moment; see
 * docs/decisions/sqlite-file-at-its-path.md.
 */
function watchContent(
  wal: string,
  descriptors: Descriptors,
): (bytes: number, walBytes: number) => string | undefined {
  const head = Buffer.alloc(20)
  // The index is in the byte order of the machine.
  const index = new Uint32Array(INDEX_WORDS)
  const later = new Uint32Array(INDEX_WORDS)
  const walHead = new Uint32Array(8)
  let longest = 0

  function readIndex(into: Uint32Array) {
    into.fill(0)
    readSync(descriptors.index, into, 0, into.byteLength, 0)
    const pageBytes = new Uint16Array(into.buffer)[7] as number
    return {
      frames: into[4] as number,
      pages: into[5] as number,
      pageBytes: pageBytes === 1 ? 65_536 : pageBytes,
    }
  }

  return (bytes, walBytes) => {
    try {
      readSync(descriptors.database, head, 0, head.length, 0)
      const { frames, pages, pageBytes } = readIndex(index)
      const isShort = bytes < longest && pages * pageBytes >= longest
      if (isShort || head.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0 || head[18] !== WAL_MODE)
        return `it ${OVERWRITTEN}. ${RESTORE}`
      longest = bytes
      if (frames === 0) return undefined
      const needed = 32 + frames * (24 + pageBytes)
      walHead.fill(0)
      readSync(descriptors.wal, walHead, 0, walHead.byteLength, 0)
      const isSameWal = walHead[4] === index[8] && walHead[5] === index[9]
      if (isSameWal && (walBytes >= needed || fstatSync(descriptors.wal).size >= needed)) return undefined
      // Another process may have lengthened the WAL before the index was read, or begun it anew since.
      readIndex(later)
      return later.every((word, i) => word === index[i]) ? `${wal} ${OVERWRITTEN}. ${RESTORE}` : undefined
    } catch {
      // A read that fails is left to SQLite, which reports it.
      return undefined
    }
  }
}

const MAGIC = Buffer.from('SQLite format 3\0')
const WAL_MODE = 2
/** The first of the two headers of the index: https://sqlite.org/walformat.html#the_wal_index_file_format */
const INDEX_WORDS = 12

const OVERWRITTEN = 'was overwritten or shortened while this process uses it'
const REMOVED = 'was removed or moved away while this process uses it'
const REPLACED = 'was replaced by another file while this process uses it'
const PUT_BACK = 'Put the same file back, or stop this process, restore a backup, and start it again'
const RESTORE = 'Stop this process, restore a backup by the command restore, and start it again'
const RESTART = 'Restart this process to use the file that is there now, or put the former file back'
const STOP =
  'Stop this process by SIGTERM, so that it closes its store and moves its content into the database, and start it again'

/** A file that cannot be looked at, for example in a folder that this process may no longer enter. */
const UNKNOWN = { dev: 0, ino: 0, size: 0 }

type Found = Pick<Stats, 'dev' | 'ino' | 'size'>

/** The identity and the size of a file; undefined when there is none. */
function look(path: string): Found | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return UNKNOWN
  }
}

function isSame(a: Found | undefined, b: Found | undefined): boolean {
  return a?.dev === b?.dev && a?.ino === b?.ino
}

/**
 * A descriptor of a file that SQLite locks, shared by all stores of this process on that file. When a process closes
 * any descriptor of a file, the system takes all of its locks on that file away (POSIX), also those of SQLite. So it is
 * closed after the last store has closed its connections.
 */
interface Descriptor {
  /** Opens the file at the first call. */
  file(): number
  release(): void
}

const shared = new Map<string, { file: number | undefined; users: number }>()

export function shareDescriptor(path: string, flags: 'r' | 'r+'): Descriptor {
  const entry = shared.get(path) ?? { file: undefined, users: 0 }
  shared.set(path, entry)
  entry.users++
  return {
    file() {
      entry.file ??= openSync(path, flags)
      return entry.file
    },
    release() {
      if (--entry.users > 0) return
      shared.delete(path)
      if (entry.file !== undefined) closeSync(entry.file)
    },
  }
}
