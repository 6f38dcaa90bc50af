import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { linksOf } from '../support/docs/pages.js'

const ROOT = join(__dirname, '..', '..')
const FOLDER = join(ROOT, 'docs', 'decisions')
const DECISIONS = readdirSync(FOLDER).filter((file) => file !== 'README.md')

describe('the pages of decisions', () => {
  it.each(DECISIONS)('answer the same questions, on one screen: %s', (file) => {
    const text = read(file)
    expect([...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title)).toEqual([
      'Question',
      'What was tried',
      'Figures',
      'Decision',
      'When to look again',
    ])
    expect(text.split('\n').length).toBeLessThanOrEqual(60)
  })

  it.each(DECISIONS)('name files that exist, and a date: %s', (file) => {
    const text = read(file)
    expect(text).toMatch(/^Decided \d{4}-\d\d-\d\d[^.]*\. Code: /m)
    const named = [...text.matchAll(/`((?:lib|__tests__|bench)\/[^`]*)`/g)].map(([, path = '']) => path)
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  it('are all in the index, and all in ARCHITECTURE', () => {
    expect(linksOf(read('README.md'))).toEqual(expect.arrayContaining(DECISIONS))
    const linked = linksOf(readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8'))
    expect(linked).toEqual(expect.arrayContaining(DECISIONS.map((file) => `docs/decisions/${file}`)))
  })

  it('are cited by their names', () => {
    const cited = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('page-bundle.ts'))
      .flatMap((file) => [
        ...readFileSync(join(ROOT, 'lib', file), 'utf8').matchAll(/docs\/decisions\/([\w-]+\.md)/g),
      ])
      .map(([, name]) => name)
    expect(cited.length).toBeGreaterThan(3)
    expect(DECISIONS).toEqual(expect.arrayContaining([...new Set(cited)]))
  })
})

function read(file: string): string {
  return readFileSync(join(FOLDER, file), 'utf8')
}
