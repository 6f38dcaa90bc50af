import { close as closeFile, fdatasync, fsync, open as openFile, readSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

/** The `-wal` file of an open database, by a descriptor of our own: to sync it, and to see how long it has become. */
export interface Wal {
  /**
   * Resolves when everything that this process has committed is on disk, with all that others committed before it: at once
   * when a sync that began after the last commit has ended, else with a sync that begins now, or that waits for the one
   * under way and is shared by all callers.
   */
  durable(): Promise<void>
  /** Whether it holds that many pages that no checkpoint has made room for. */
  reaches(pages: number): boolean
  close(): Promise<void>
}

/**
 * @param commits how many this process has made
 * @param onFailure is called when a sync fails, before those who wait for it learn of it
 */
export async function openWal(
  path: string,
  commits: () => number,
  onFailure: (error: unknown) => void,
): Promise<Wal> {
  const file = await fs.open(`${path}-wal`, 'r+')
  try {
    await syncFolder(dirname(path))
    await fs.fdatasync(file)
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
    durable() {
      const commit = commits()
      if (commit === synced) return Promise.resolve()
      if (!running) return begin()
      if (commit === runningFor) return running
      next ??= running
        .catch(() => {})
        .then(() => {
          next = undefined
          return begin()
        })
      return next
    },

    // A frame is a header of 24 bytes and a page. Its header repeats the two salts of the WAL's header, which change when the
    // WAL begins anew, so one look at a frame's header shows whether the WAL has come that far since. Some 4 µs.
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

/** Makes the names of new files as durable as their content, where the system can do that. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const opened = await fs.open(folder, 'r')
    await fs.fsync(opened).finally(() => fs.close(opened))
  } catch (error) {
    // Windows, and some network file systems, have no sync of a folder.
    if (!NO_FOLDER_SYNC.includes(String((error as { code?: unknown }).code))) throw error
  }
}

const NO_FOLDER_SYNC = ['EPERM', 'EISDIR', 'EINVAL', 'EACCES', 'EBADF', 'ENOTSUP', 'ENOSYS']

const fs = {
  open: promisify(openFile),
  close: promisify(closeFile),
  fsync: promisify(fsync),
  fdatasync: promisify(fdatasync),
}
