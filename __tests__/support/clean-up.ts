import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from '@jest/globals'

const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Runs `cleanUp` after the test that is running now, the last one first. */
export function onCleanUp(cleanUp: () => unknown): void {
  cleanUps.push(cleanUp)
}

/** A folder of its own, gone after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'marketplace-test-'))
  onCleanUp(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
