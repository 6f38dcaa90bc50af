import fs from 'node:fs'

/**
 * Makes every `fdatasync` of this process fail while `syncsFail`, and wait while `syncsWait`; and the sync of folders
 * answer `folderSyncFails`. To be imported before the product, which takes the functions from `node:fs` when it is loaded.
 */
export const disk = {
  syncsFail: false,
  syncsWait: false,
  /** A code such as EPERM. */
  folderSyncFails: '',
  /** How many have been begun. */
  syncs: 0,
  /** The folders that were synced, where `/proc` shows them. */
  syncedFolders: [] as string[],
  hold() {
    disk.syncsWait = true
  },
  /** Goes on with the syncs that wait. */
  release() {
    disk.syncsWait = false
    for (const { sync } of waiting.splice(0)) sync()
  },
  /** Fails the syncs that wait. */
  failWaiting() {
    disk.syncsWait = false
    for (const { fail } of waiting.splice(0)) fail()
  },
}

const waiting: { sync(): void; fail(): void }[] = []
const { fdatasync, fsync } = fs

fs.fdatasync = ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
  disk.syncs++
  const fail = () =>
    void setImmediate(() => done(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })))
  if (disk.syncsWait) return void waiting.push({ sync: () => fdatasync(file, done), fail })
  if (!disk.syncsFail) return fdatasync(file, done)
  fail()
}) as typeof fs.fdatasync

fs.fsync = ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
  const code = disk.folderSyncFails
  if (code === '') {
    const link = `/proc/self/fd/${file}`
    if (fs.existsSync(link)) disk.syncedFolders.push(fs.readlinkSync(link))
    return fsync(file, done)
  }
  setImmediate(() => done(Object.assign(new Error(`${code}: fsync`), { code })))
}) as typeof fs.fsync
