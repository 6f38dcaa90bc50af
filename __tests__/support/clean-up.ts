import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach } from '@jest/globals'

const cleanUps: (() => unknown)[] = []
const cleanUpsOfFile: (() => unknown)[] = []

afterEach(() => runAll(cleanUps))
afterAll(() => runAll(cleanUpsOfFile))

async function runAll(list: (() => unknown)[]): Promise<void> {
  for (const cleanUp of list.splice(0).reverse()) await cleanUp()
}

/** Runs `cleanUp` after the test that is running now, the last one first. */
export function onCleanUp(cleanUp: () => unknown): void {
  cleanUps.push(cleanUp)
}

/** For a `beforeAll`: `make` registers its clean-ups for the end of the file instead of the next test. */
export async function forWholeFile<T>(make: () => Promise<T>): Promise<T> {
  const ofTest = cleanUps.splice(0)
  try {
    return await make()
  } finally {
    cleanUpsOfFile.push(...cleanUps.splice(0))
    cleanUps.push(...ofTest)
  }
}

/** A folder of its own, gone after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'marketplace-test-'))
  onCleanUp(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
