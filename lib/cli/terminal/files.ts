import { closeSync, fchmodSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Stop, USAGE } from './exit-codes.js'

const PRIVATE = 0o600

/** Creates a file that only its user can read, and returns its descriptor. A file that exists already ends the command. */
export function createFile(file: string): number {
  try {
    return openPrivate(file, 'wx')
  } catch (error) {
    throw cannotWrite(file, error)
  }
}

/** Writes the whole content of such a file, in place of what it contained. */
export function replaceFile(file: string, text: string): void {
  const draft = `${file}.new`
  try {
    const opened = openPrivate(draft, 'w')
    try {
      writeFileSync(opened, text)
    } finally {
      closeSync(opened)
    }
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw cannotWrite(file, error)
  }
}

function openPrivate(file: string, flags: 'w' | 'wx'): number {
  const opened = openSync(file, flags, PRIVATE)
  // The umask may have taken more.
  fchmodSync(opened, PRIVATE)
  return opened
}

function cannotWrite(file: string, error: unknown): Stop {
  const { code } = error as NodeJS.ErrnoException
  const why = code === 'EEXIST' ? 'the file exists already' : (code ?? 'it failed')
  return new Stop(USAGE, `Cannot write ${file}: ${why}`)
}
