import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from '@jest/globals'

const ROOT = join(__dirname, '..', '..')
const PAGE = join(ROOT, 'docs', 'performance.md')
const RESULTS = JSON.parse(readFileSync(join(ROOT, 'bench', 'results', 'results.json'), 'utf8'))
const folder = mkdtempSync(join(tmpdir(), 'performance-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** `WRITE_FIGURES=1` writes them, after a change of the rows. */
describe('the main figures of docs/performance.md', () => {
  it('are those of the results of the benchmarks', () => {
    if (process.env.WRITE_FIGURES) writeFileSync(PAGE, written(RESULTS))
    expect(written(RESULTS)).toBe(readFileSync(PAGE, 'utf8'))
  })

  it('leave out a row without one of its figures', () => {
    const without = (part: string, id: string) => {
      const { rows } = RESULTS.parts[part]
      const others = { ...RESULTS.parts[part], rows: rows.filter((row: { id: string }) => row.id !== id) }
      return rowsOf(written({ ...RESULTS, parts: { ...RESULTS.parts, [part]: others } }))
    }
    const all = rowsOf(written(RESULTS))
    expect(all.length).toBeGreaterThan(10)
    expect(without('memory', 'rss')).toEqual(all.filter((row) => !row.includes('Memory')))
    expect(without('sizes', 'sqlite/small')).toEqual(all.filter((row) => !row.includes('beside 1,000')))
    expect(rowsOf(written({ ...RESULTS, parts: {} }))).toEqual([])
  })

  it('are the only ones there, but for what no benchmark measures', () => {
    const [before, , after = ''] = readFileSync(PAGE, 'utf8').split(/<!-- .*main figures.* -->/)
    const [prose] = after.split('`npm run bench` does not measure these:')
    expect(`${before}${prose}`).not.toMatch(/\d (?:µs|ms|MB|kB|s|×)(?:\W|$)/)
  })
})

/** The page that the results give. */
function written(results: object): string {
  const [page, file] = [join(folder, 'performance.md'), join(folder, 'results.json')]
  cpSync(PAGE, page)
  writeFileSync(file, JSON.stringify(results))
  const module = pathToFileURL(join(ROOT, 'bench', 'harness', 'main-figures.mjs')).href
  const code = `import { readFileSync } from 'node:fs'
import { mainFigures } from ${JSON.stringify(module)}
mainFigures(JSON.parse(readFileSync(process.argv[1], 'utf8')), process.argv[2])`
  execFileSync(process.execPath, ['--input-type=module', '--eval', code, file, page])
  return readFileSync(page, 'utf8')
}

/** The rows of the generated table, without its head. */
function rowsOf(page: string): string[] {
  const [, table = ''] = page.split(/<!-- .*main figures.* -->/)
  return table.trim().split('\n').slice(2)
}
