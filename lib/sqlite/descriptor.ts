import { closeSync, openSync } from 'node:fs'

/**
 * A descriptor of a file that SQLite locks, shared by all stores of this process on that file. When a process closes
 * any descriptor of a file, the system takes all of its locks on that file away (POSIX), also those of SQLite. So it is
 * closed after the last store has closed its connections.
 */
export interface Descriptor {
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
