import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { createProject, type Project } from '../package/installed-package.js'
import { forWholeFile } from '../support/clean-up.js'
import { faultsOf, RESOLUTIONS, type Resolution } from './compile.js'

/**
 * Every TypeScript from the oldest to the newest: `npm run test:types`. It downloads them, so `npm test` has only the
 * oldest and the project's own (`__tests__/package/types.test.ts`).
 */
const VERSIONS = ['5.4', '5.5', '5.6', '5.7', '5.8', '5.9', '6.0', 'latest']
const RESOLUTION_NAMES = Object.keys(RESOLUTIONS) as Resolution[]

let folder: string
let project: Project

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'marketplace-typescript-'))
  const dependencies = Object.fromEntries(VERSIONS.map((each) => [nameOf(each), `npm:typescript@${each}`]))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  const options = ['--no-audit', '--no-fund', '--no-bin-links', '--loglevel=error']
  execFileSync('npm', ['install', ...options], { cwd: folder, stdio: 'ignore' })
  project = await forWholeFile(async () => createProject())
}, 600_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(VERSIONS)('TypeScript %s', (version) => {
  describe.each(RESOLUTION_NAMES.filter((each) => hasResolution(version, each)))('under %s', (resolution) => {
    it.each([['strict'], ['not strict']])('accepts the types: %s', async (strictness) => {
      const faults = await faultsOf(project, {
        resolution,
        isStrict: strictness === 'strict',
        typescript: join(folder, 'node_modules', nameOf(version)),
        compilerOptions: version === '6.0' ? { ignoreDeprecations: '6.0' } : {},
      })
      expect(faults).toEqual([])
    })
  })
})

function nameOf(version: string): string {
  return `typescript-${version}`
}

/** TypeScript 6 deprecates node10, and TypeScript 7 removed it. */
function hasResolution(version: string, resolution: Resolution): boolean {
  return version !== 'latest' || resolution !== 'node10'
}
