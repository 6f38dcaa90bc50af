import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const cleanUps: (() => unknown)[] = []
const cleanUpsOfFile: (() => unknown)[] = []

// Outside of Jest there are none, and a program calls `cleanUp` at its end.
const { afterAll, afterEach } = globalThis as Partial<typeof import('@jest/globals')>
afterEach?.(cleanUp)
afterAll?.(() => runAll(cleanUpsOfFile))

/** Runs what `onCleanUp` was given. */
export function cleanUp(): Promise<void> {
  return runAll(cleanUps)
}

/** Runs each, also after one that fails. Rejects with the first error. */
async function runAll(list: (() => unknown)[]): Promise<void> {
  const errors: unknown[] = []
  for (const cleanUp of list.splice(0).reverse())
    try {
      await cleanUp()
    } catch (error) {
      errors.push(error)
    }
  if (errors.length > 0) throw errors[0]
}

/** Runs `cleanUp` after the current test; the function registered last runs first. */
export function onCleanUp(cleanUp: () => unknown): void {
  cleanUps.push(cleanUp)
}

/** For a `beforeAll`: clean-ups that `make` registers run at the end of the file instead of after the next test. */
export async function forWholeFile<T>(make: () => Promise<T>): Promise<T> {
  const ofTest = cleanUps.splice(0)
  try {
    return await make()
  } finally {
    cleanUpsOfFile.push(...cleanUps.splice(0))
    cleanUps.push(...ofTest)
  }
}

/** A new folder, deleted after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'marketplace-test-'))
  onCleanUp(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}
