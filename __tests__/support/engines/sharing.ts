import { it } from '@jest/globals'
import type { EngineName } from './engines.js'

/** Why two processes cannot use one database here; undefined if they can. */
export function whyNotShared(engine: EngineName): string | undefined {
  if (engine === 'PostgreSQL') return undefined
  const version = process.versions.sqlite
  const [major = 0, minor = 0, patch = 0] = (version ?? '').split('.').map(Number)
  if (major * 1e6 + minor * 1e3 + patch >= 3_051_003) return undefined
  return `NOT TESTED: two processes on one SQLite file need node:sqlite 3.51.3; this machine has ${version ?? 'none'}`
}

/**
 * A test of several processes on one database. If they cannot share one, the test is skipped, and its title gives the
 * reason.
 */
export function itWhereShared(engine: EngineName) {
  const whyNot = whyNotShared(engine)
  // By this name `sqlite/current-node.test.ts` finds the tests for a newer Node.
  const library = engine === 'SQLite' ? ' (node:sqlite)' : ''
  return (title: string, test: () => Promise<void>, timeoutMs: number) =>
    whyNot ? it.skip(`${title} (${whyNot})`, () => {}) : it(title + library, test, timeoutMs)
}
