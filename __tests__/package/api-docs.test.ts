import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'

const ROOT = join(__dirname, '..', '..')

describe('docs/api', () => {
  const written = pagesIn(join(ROOT, 'docs', 'api'))
  let folder: string

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'marketplace-api-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('equals the output of `npm run docs:api`, and every name has a docstring', () => {
    // The command fails and names the exports without a docstring or an example.
    execFileSync(process.execPath, [join(ROOT, 'api-docs', 'run.mjs'), folder], { stdio: 'pipe' })
    const made = pagesIn(folder)
    expect(Object.keys(made)).toEqual(Object.keys(written))
    for (const [page, text] of Object.entries(made))
      expect([page, text === written[page] ? 'as made' : 'run `npm run docs:api`']).toEqual([page, 'as made'])
  }, 300_000)
})

function pagesIn(folder: string): Record<string, string> {
  const files = readdirSync(folder).sort()
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
}
