import fs from 'node:fs'

/**
 * Makes every `fdatasync` of this process fail while `syncsFail`. To be imported before the product, which takes the
 * function from `node:fs` when it is loaded.
 */
export const disk = { syncsFail: false }

const { fdatasync } = fs

fs.fdatasync = ((file: number, done: (error: NodeJS.ErrnoException | null) => void) => {
  if (!disk.syncsFail) return fdatasync(file, done)
  setImmediate(() => done(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })))
}) as typeof fs.fdatasync
