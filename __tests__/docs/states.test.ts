import { beforeAll, describe, expect, it } from '@jest/globals'
import { names, page } from '../support/docs/pages.js'
import { MACHINES } from '../support/states/machines.js'
import { recordTransitions } from '../support/states/record.js'
import { TABLES } from '../support/states/tables.js'

describe('the page on states', () => {
  let recorded: Awaited<ReturnType<typeof recordTransitions>>
  beforeAll(async () => {
    recorded = await recordTransitions(TABLES)
  }, 300_000)

  const chapters = chaptersOf(page('docs/states.md'))

  it('has a chapter for each machine', () => {
    expect([...chapters.keys()]).toEqual([...Object.keys(TABLES), ...Object.keys(MACHINES)])
  })

  it.each(Object.keys(TABLES))('draws the transitions that rows really make: %s', (table) => {
    expect(arrowsOf(chapters.get(table) ?? '')).toEqual([...(recorded.get(table) ?? [])].sort())
  })

  it.each(Object.entries(MACHINES))(
    'draws the transitions that objects really make: %s',
    async (name, seen) => {
      expect(arrowsOf(chapters.get(name) ?? '')).toEqual([...(await seen())].sort())
    },
  )

  it.each([...chapters.keys()])('has a row in the table for each state of the diagram: %s', (name) => {
    const text = chapters.get(name) ?? ''
    const drawn = new Set(arrowsOf(text).flatMap((arrow) => arrow.split(' --> ')))
    drawn.delete('[*]')
    const rows = [...text.matchAll(/^\| (`[^|]*) \|/gm)].map(([, cell]) => names(cell)[0])
    expect(rows.sort()).toEqual([...drawn].sort())
  })
})

/** The chapters of a page, by their titles in small letters. */
function chaptersOf(text: string): Map<string, string> {
  const chapters = text.split(/^## /m).slice(1)
  return new Map(chapters.map((chapter) => [(chapter.split('\n')[0] ?? '').toLowerCase(), chapter]))
}

/** The arrows of the chapter's diagram, without their labels. An arrow from or to a group is one for each of its states. */
function arrowsOf(chapter: string): string[] {
  const [, diagram = ''] = /```mermaid\nstateDiagram-v2\n([\s\S]*?)```/.exec(chapter) ?? []
  const groups = new Map(
    [...diagram.matchAll(/state (\w+) \{([^}]*)\}/g)].map(([, group = '', inner = '']) => [
      group,
      inner.trim().split(/\s+/),
    ]),
  )
  const statesOf = (name = '') => groups.get(name) ?? [name]
  return [...diagram.matchAll(/^\s*(\S+) --> ([^\s:]+)/gm)]
    .flatMap(([, from, to]) =>
      statesOf(from).flatMap((each) => statesOf(to).map((other) => `${each} --> ${other}`)),
    )
    .sort()
}
