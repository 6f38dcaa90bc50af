import { close as closeFile, fdatasync, fsync, open as openFile, read, readSync, write } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

/** The `-wal` file of an open database, through a descriptor of our own: syncs it, and measures its length. */
export interface Wal {
  descriptor: number
  /**
   * Resolves when every commit of this process, and every commit before it, is on disk: at once, or with the next sync,
   * which all callers share. When a sync fails, all that wait for the next one are refused too; see
   * docs/decisions/sqlite-failed-sync.md.
   */
  durable(): Promise<void>
  /**
   * Writes every byte of the file again, and syncs it. After a sync that failed, here or in another process, the kernel
   * may hold pages in memory that it no longer intends to write. The caller keeps writers away.
   */
  rewrite(): Promise<void>
  /** Whether it contains this many pages that no checkpoint has copied. */
  reaches(pages: number): boolean
  close(): Promise<void>
}

/**
 * Opens and rewrites the file, because a sync of an earlier process may have failed. The caller keeps writers away.
 *
 * @param commits how many commits this process has made
 * @param onFailure called when a sync fails, before `durable` rejects
 */
export async function openWal(
  path: string,
  commits: () => number,
  onFailure: (error: unknown) => void,
): Promise<Wal> {
  const file = await fs.open(`${path}-wal`, 'r+')
  try {
    await syncFolder(dirname(path))
    await rewrite(file)
  } catch (error) {
    await fs.close(file).catch(() => {})
    throw error
  }
  let synced: number | undefined
  let running: Promise<void> | undefined
  let runningFor: number | undefined
  let next: Promise<void> | undefined

  function begin(): Promise<void> {
    const commit = commits()
    runningFor = commit
    const sync = fs.fdatasync(file).then(
      () => {
        synced = commit
      },
      (error) => {
        onFailure(error)
        throw error
      },
    )
    running = sync
    const end = () => {
      if (running === sync) running = undefined
    }
    sync.then(end, end)
    return sync
  }

  return {
    descriptor: file,

    durable() {
      const commit = commits()
      if (commit === synced) return Promise.resolve()
      if (!running) return begin()
      if (commit === runningFor) return running
      next ??= running.then(
        () => {
          next = undefined
          return begin()
        },
        (error) => {
          next = undefined
          throw error
        },
      )
      return next
    },

    rewrite: () => rewrite(file),

    // A frame is a header of 24 bytes and a page. The header of a frame repeats the two salts of the WAL's header, which
    // change when the WAL restarts, so the header of one frame shows whether the WAL is that long. About 4 µs.
    reaches(pages) {
      const header = Buffer.alloc(32)
      const frame = Buffer.alloc(24)
      if (readSync(file, header, 0, 32, 0) < 32) return false
      const at = 32 + (pages - 1) * (24 + header.readUInt32BE(8))
      if (readSync(file, frame, 0, 24, at) < 24) return false
      return frame.subarray(8, 16).equals(header.subarray(16, 24))
    },

    close: () => fs.close(file),
  }
}

async function rewrite(file: number): Promise<void> {
  const buffer = Buffer.alloc(REWRITTEN_AT_ONCE)
  for (let at = 0; ; ) {
    const { bytesRead } = await fs.read(file, buffer, 0, buffer.length, at)
    if (bytesRead === 0) break
    const { bytesWritten } = await fs.write(file, buffer, 0, bytesRead, at)
    at += bytesWritten
  }
  await fs.fdatasync(file)
}

const REWRITTEN_AT_ONCE = 1024 * 1024

/** Makes the names of new files durable, where the system can do that. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const opened = await fs.open(folder, 'r')
    await fs.fsync(opened).finally(() => fs.close(opened))
  } catch (error) {
    // Windows and some network file systems cannot sync a folder.
    if (!NO_FOLDER_SYNC.includes(String((error as { code?: unknown }).code))) throw error
  }
}

const NO_FOLDER_SYNC = ['EPERM', 'EISDIR', 'EINVAL', 'EACCES', 'EBADF', 'ENOTSUP', 'ENOSYS']

const fs = {
  open: promisify(openFile),
  close: promisify(closeFile),
  read: promisify(read),
  write: promisify(write),
  fsync: promisify(fsync),
  fdatasync: promisify(fdatasync),
}
