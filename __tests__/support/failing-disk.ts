import fs from 'node:fs'

/**
 * Makes every `fdatasync` of this process fail while `syncsFail`, and wait while `syncsWait`. To be imported before the
 * product, which takes the function from `node:fs` when it is loaded.
 */
export const disk = {
  syncsFail: false,
  syncsWait: false,
  hold() {
    disk.syncsWait = true
  },
  /** Goes on with the syncs that wait. */
  release() {
    disk.syncsWait = false
    for (const sync of waiting.splice(0)) sync()
  },
}

const waiting: (() => void)[] = []
const { fdatasync } = fs

fs.fdatasync = ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
  if (disk.syncsWait) return void waiting.push(() => fdatasync(file, done))
  if (!disk.syncsFail) return fdatasync(file, done)
  setImmediate(() => done(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })))
}) as typeof fs.fdatasync
