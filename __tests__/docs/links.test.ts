import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { anchorsOf, linksOf, PAGES, page } from '../support/docs/pages.js'

const ROOT = join(__dirname, '..', '..')
const TEMPLATES = ['bug', 'platform', 'question'].map((name) => `.github/ISSUE_TEMPLATE/${name}.md`)
const PAPERS = [
  ...['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...TEMPLATES],
  '__tests__/faults/README.md',
]
const pagesIn = (folder: string) =>
  readdirSync(join(ROOT, 'docs', folder)).map((name) => `docs/${folder}/${name}`)
const WRITTEN = [
  ...PAGES,
  ...[...PAPERS, ...pagesIn('api'), ...pagesIn('decisions')].map(
    (path) => [path, readFileSync(join(ROOT, path), 'utf8')] as const,
  ),
]

describe('the README', () => {
  it('has at most 130 lines', () => {
    expect(page('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(130)
  })
})

describe('the templates of reports', () => {
  it.each(TEMPLATES)('ask for versions, and never for a secret: %s', (path) => {
    const text = readFileSync(join(ROOT, path), 'utf8')
    expect(text).toMatch(/\*\*Versions/)
    expect(text).toContain('Never paste secrets, tokens, or the webhook address.')
  })
})

describe('the links of the pages', () => {
  it.each(WRITTEN)('lead to files and headings that exist: %s', (path, text) => {
    const broken = linksOf(text).filter((link) => {
      if (/^https?:/.test(link)) return false
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : join(dirname(path), file)
      if (!existsSync(join(ROOT, target))) return true
      return anchor !== undefined && !anchorsOf(readFileSync(join(ROOT, target), 'utf8')).has(anchor)
    })
    expect(broken).toEqual([])
  })

  it('reach every page from the index', () => {
    const linked = linksOf(page('docs/README.md')).map((link) => join('docs', link))
    const pages = [...PAGES.keys()].filter((path) => path.startsWith('docs/') && path !== 'docs/README.md')
    expect(pages.filter((path) => !linked.includes(path))).toEqual([])
  })
})
