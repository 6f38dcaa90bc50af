import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { PAGES, snippetsOf } from '../support/docs/pages.js'

const ROOT = join(__dirname, '..', '..')
/** A call whose answer is a promise, and the word before the object that it is called on. */
const CALL = /(\w+)?[ (!]*\b[\w.]*marketplace\.(isEntitled|explain|businesses\.refresh)\(/gi

describe('J92 the pages and the examples', () => {
  const blocks = [...PAGES.keys()]
    .flatMap((path) => snippetsOf(path, ['ts', 'tsx', 'js']))
    .map(({ page, code }) => ({ where: page, code }))
  const files = ['examples', 'example-app'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.[jt]s$/.test(file))
      .map((file) => ({ where: `${folder}/${file}`, code: readFileSync(join(ROOT, folder, file), 'utf8') })),
  )

  it('never ask without await, except where the page on the gate shows that this is wrong', () => {
    const asked = [...blocks, ...files].flatMap(({ where, code }) =>
      code
        .split('\n')
        .filter((line, i, lines) => !/Wrong/.test(lines[i - 1] ?? '') && !/^\s*(\/\/|\*)/.test(line))
        .flatMap((line) => [...line.matchAll(CALL)].map(([, before]) => ({ where, line, before }))),
    )
    expect(asked.length).toBeGreaterThan(5)
    expect(asked.filter(({ before }) => before !== 'await')).toEqual([])
  })

  it.each(['README.md', 'docs/methods.md', 'docs/go-live.md', 'docs/migrating.md', 'docs/security.md'])(
    'warn of it in %s, where people copy the call',
    (path) => expect(PAGES.get(path)).toMatch(/gate\.md#never-without-await/),
  )

  it('warn of it in the comment that an editor shows', () => {
    const source = readFileSync(join(ROOT, 'lib', 'api', 'marketplace.ts'), 'utf8')
    const [comment] = source.split('isEntitled(businessUid').slice(0, 1)
    expect(comment).toContain('Never use it without `await`')
  })
})
