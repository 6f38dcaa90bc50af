import type { Clock } from '../clock.js'

/** Runs `attempt` until it is not busy, waiting outside SQLite so that the event loop goes on. */
export async function retryWhileBusy<T>(attempt: () => T, patienceMs: number, clock: Clock): Promise<T> {
  const deadline = clock.now() + patienceMs
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (sqliteCode(error) !== 'BUSY' || clock.now() >= deadline) throw error
      await new Promise<void>((resolve) => {
        clock.setTimeout(resolve, 2 + Math.random() * 18)
      })
    }
  }
}

/** The primary result code without its prefix, e.g. BUSY, IOERR, FULL; '' when the error is not SQLite's. */
export function sqliteCode(error: unknown): string {
  const { code, errcode, rawCode } = (error ?? {}) as { code?: unknown; errcode?: unknown; rawCode?: unknown }
  const number = typeof errcode === 'number' ? errcode : typeof rawCode === 'number' ? rawCode : undefined
  if (number !== undefined && RESULT_CODES[number & 0xff]) return RESULT_CODES[number & 0xff] as string
  return typeof code === 'string' && code.startsWith('SQLITE_') ? (code.split('_')[1] as string) : ''
}

const RESULT_CODES: Record<number, string> = {
  5: 'BUSY',
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
