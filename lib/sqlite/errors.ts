import { readFileSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { MarketplaceError, messageOf } from '../base/errors.js'

/** The primary result code without its prefix, for example BUSY, IOERR or FULL; '' for an error of another source. */
export function sqliteCode(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  const number = numberOf(error)
  if (number !== undefined && RESULT_CODES[number & 0xff]) return RESULT_CODES[number & 0xff] as string
  return typeof code === 'string' && code.startsWith('SQLITE_') ? (code.split('_')[1] as string) : ''
}

/** Whether the system refused a write. SQLite has rolled the transaction back, and earlier commits are intact. */
function isRefusedWrite(error: unknown): boolean {
  return sqliteCode(error) === 'FULL' || REFUSED_WRITES.includes(numberOf(error) ?? 0)
}

/** Whether a sync or a read failed, so that the content of the disk is unknown. */
export function isSuspicious(error: unknown): boolean {
  return sqliteCode(error) === 'IOERR' && !isRefusedWrite(error)
}

/** The error for callers, if `error` concerns the file. An error of a statement or its data is returned unchanged. */
export function explainSqlite(error: unknown, path: string): unknown {
  if (error instanceof MarketplaceError) return error
  const code = sqliteCode(error)
  if (code === 'CORRUPT' || code === 'NOTADB') return corrupt(path, error)
  const why = reasonOf(error, code, path)
  return why === undefined ? error : unavailable(`Cannot use the SQLite file ${path}: ${why}`, error)
}

export function corrupt(path: string, cause: unknown): MarketplaceError {
  return new MarketplaceError(
    'store_corrupt',
    `Cannot use the SQLite file ${path}: it is damaged or not a database. It was neither repaired nor replaced. Restore a backup, or move it away to start empty`,
    { cause },
  )
}

export function unavailable(message: string, cause?: unknown): MarketplaceError {
  return new MarketplaceError('store_unavailable', message, { cause })
}

/** Why the system refused, for an operator. Also for errors of Node's file calls. */
export function reasonOf(error: unknown, code: string, path: string): string | undefined {
  const system = (error as { code?: unknown } | null)?.code
  if (isRefusedWrite(error) || ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(String(system)))
    return `${whyNoRoom(path, code, String(system))}; writing continues by itself when there is room`
  if (code === 'IOERR' || system === 'EIO') return `the disk reports an I/O error (${messageOf(error)})`
  if (code === 'READONLY' || system === 'EROFS') return 'the file, its folder or its disk is read-only'
  if (code === 'BUSY') return 'another process has been writing to it for over 5 s'
  if (code === 'CANTOPEN') return `the file, or one beside it, cannot be opened (${messageOf(error)})`
  if (code === 'NOMEM') return 'there is not enough memory'
  return undefined
}

/** SQLite reports a quota, a file-size limit and a broken disk with one code. The system shows which it is. */
function whyNoRoom(path: string, code: string, system: string): string {
  const limit = fileSizeLimit()
  const largest = Math.max(sizeOf(path), sizeOf(`${path}-wal`))
  if (system === 'EFBIG' || largest + 65_536 > limit)
    return `the file-size limit of this process (${limit} bytes, see ulimit -f) is reached`
  if (code === 'FULL' || system === 'ENOSPC' || freeBytes(dirname(path)) < 65_536) return 'the disk is full'
  if (system === 'EDQUOT') return 'the disk quota of this user is used up'
  return 'the system refuses to write: a disk quota, a file-size limit, or an I/O error'
}

function fileSizeLimit(): number {
  try {
    const [, soft] = /^Max file size +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return Number(soft) || Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function numberOf(error: unknown): number | undefined {
  const { errcode, rawCode, message } = (error ?? {}) as Record<string, unknown>
  if (typeof errcode === 'number') return errcode
  if (typeof rawCode === 'number') return rawCode
  // libsql has the code of a failed opening only in its message.
  const [, number] = /^ConnectionFailed\(.*: (\d+)"\)$/s.exec(String(message)) ?? []
  return number === undefined ? undefined : Number(number)
}

// SQLITE_IOERR_WRITE, and SQLITE_IOERR_SHMSIZE: the shared index of the WAL could not grow.
const REFUSED_WRITES = [10 | (3 << 8), 10 | (19 << 8)]

const RESULT_CODES: Record<number, string> = {
  5: 'BUSY',
  7: 'NOMEM',
  8: 'READONLY',
  10: 'IOERR',
  11: 'CORRUPT',
  13: 'FULL',
  14: 'CANTOPEN',
  18: 'TOOBIG',
  19: 'CONSTRAINT',
  20: 'MISMATCH',
  26: 'NOTADB',
}
