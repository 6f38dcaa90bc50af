import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { anchorsOf, linksOf, PAGES, page } from '../support/docs/pages.js'

const ROOT = join(__dirname, '..', '..')

describe('the README', () => {
  it('has at most 130 lines', () => {
    expect(page('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(130)
  })
})

describe('the links of the pages', () => {
  it.each([...PAGES])('lead to files and headings that are there: %s', (path, text) => {
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
