import fs from 'node:fs'

/**
 * Replaces the syncs of this process: while `syncsFail`, every `fdatasync` fails; while `syncsWait`, it waits; and the
 * sync of a folder fails with `folderSyncFails`. Import this file before the product, which takes the functions from
 * `node:fs` when it loads.
 */
export const disk = {
  syncsFail: false,
  syncsWait: false,
  /** An error code such as EPERM. */
  folderSyncFails: '',
  /** The number of syncs that wait. */
  get waiting() {
    return waiting.length
  },
  /** The number of syncs that began. */
  syncs: 0,
  /** The bytes that were written through `node:fs` with callbacks. */
  written: 0,
  /** The folders that were synced, on systems with `/proc`. */
  syncedFolders: [] as string[],
  hold() {
    disk.syncsWait = true
  },
  /** Reads through `node:fs` with callbacks wait until `releaseReads`. */
  readsWait: false,
  get waitingReads() {
    return reads.length
  },
  releaseReads() {
    disk.readsWait = false
    for (const begin of reads.splice(0)) begin()
  },
  /** Continues the syncs that wait. */
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
const reads: (() => void)[] = []
const { fdatasync, fsync, read, write } = fs

fs.fdatasync = ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
  disk.syncs++
  const fail = () =>
    void setImmediate(() => done(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })))
  if (disk.syncsWait) return void waiting.push({ sync: () => fdatasync(file, done), fail })
  if (!disk.syncsFail) return fdatasync(file, done)
  fail()
}) as typeof fs.fdatasync

fs.read = ((...given: Parameters<typeof read>) => {
  if (!disk.readsWait) return read(...given)
  reads.push(() => read(...given))
}) as unknown as typeof fs.read
Object.defineProperties(fs.read, Object.getOwnPropertyDescriptors(read))

fs.write = ((...given: Parameters<typeof write>) => {
  const [, , , length] = given as unknown[]
  disk.written += Number(length)
  return write(...given)
}) as unknown as typeof fs.write
// What `promisify` returns for it is named there.
Object.defineProperties(fs.write, Object.getOwnPropertyDescriptors(write))

fs.fsync = ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
  const code = disk.folderSyncFails
  if (code === '') {
    const link = `/proc/self/fd/${file}`
    if (fs.existsSync(link)) disk.syncedFolders.push(fs.readlinkSync(link))
    return fsync(file, done)
  }
  setImmediate(() => done(Object.assign(new Error(`${code}: fsync`), { code })))
}) as typeof fs.fsync
