import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onCleanUp, temporaryFolder } from '../clean-up.js'

/** Whether this user may mount a file system in memory. */
export function canMount(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs -o size=64k tmpfs /tmp'], {
      stdio: 'ignore',
    })
    return process.getuid?.() === 0
  } catch {
    return false
  }
}

/** A disk of some megabytes that can be filled completely. */
export function smallDisk(megabytes: number) {
  const folder = temporaryFolder()
  // The user that runs the PostgreSQL server owns it.
  const owner = execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }).trim()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,uid=${owner}`, 'tmpfs', folder])
  onCleanUp(() => execFileSync('umount', ['-l', folder]))
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill() {
      for (let size = megabytes * 1024 * 1024; size >= 1024; ) {
        try {
          writeFileSync(ballast, Buffer.alloc(size), { flag: 'a' })
        } catch {
          size /= 2
        }
      }
    },
    free: () => rmSync(ballast),
  }
}
