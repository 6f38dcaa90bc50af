import { writeFileSync } from 'node:fs'
import type { SystemCall } from './system-calls.js'

const PAGE = 4_096

/**
 * What a disk holds after the given system calls, if the power fails then: only what a successful sync has covered. A
 * sync that fails drops the pages that were not written: the system keeps them in memory, and no later sync writes them.
 */
export function diskAfterPowerCut() {
  const files = new Map<string, { memory: Buffer; disk: Buffer; dirty: Set<number> }>()

  function fileAt(path: string) {
    const file = files.get(path) ?? { memory: Buffer.alloc(0), disk: Buffer.alloc(0), dirty: new Set() }
    files.set(path, file)
    return file
  }

  return {
    apply({ name, file: path, data, last, result }: SystemCall) {
      const file = fileAt(path)
      if (name === 'pwrite64' && result > 0) {
        file.memory = resized(file.memory, Math.max(file.memory.length, last + result))
        data.copy(file.memory, last, 0, result)
        for (let page = Math.floor(last / PAGE); page * PAGE < last + result; page++) file.dirty.add(page)
      } else if (name === 'ftruncate' && result === 0) {
        file.memory = resized(file.memory, last)
        file.disk = resized(file.disk, Math.min(file.disk.length, last))
      } else if (/^f(data)?sync$/.test(name)) {
        if (result === 0) {
          file.disk = resized(file.disk, file.memory.length)
          for (const page of file.dirty)
            file.memory.copy(file.disk, page * PAGE, page * PAGE, (page + 1) * PAGE)
        }
        file.dirty.clear()
      }
    },

    /** Writes the files of a database to another path. */
    write(path: string, to: string) {
      for (const end of ['', '-wal']) writeFileSync(to + end, fileAt(path + end).disk)
    },
  }
}

function resized(buffer: Buffer, length: number): Buffer {
  if (length <= buffer.length) return buffer.subarray(0, length)
  return Buffer.concat([buffer, Buffer.alloc(length - buffer.length)])
}
