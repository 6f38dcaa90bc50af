import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { readOptions } from '../../lib/options.js'
import { VERIFY_DELAYS_MS } from '../../lib/work/reading/schedule.js'
import { names, page, tableWith } from '../support/docs/pages.js'

const LIB = join(__dirname, '..', '..', 'lib')

describe('the pages on options', () => {
  const rows = tableWith('Option', 'Default', 'Bounds', 'What it is')
  const optionNames = rows.map((row) => names(row.Option)[0] as string)

  it('have every option, in the order of the code', () => {
    expect(optionNames).toEqual(optionsInCode())
  })

  it('have the defaults of the code', () => {
    const used: Record<string, unknown> = flat(readOptions(MINIMAL))
    for (const row of rows) {
      const [name] = names(row.Option) as [string]
      const written = row.Default as string
      if (written === 'required') expect(() => read(without(name))).toThrow(name.split('.').at(-1))
      else if (Array.isArray(used[name]) && written !== 'none')
        expect([name, written.split(', ').map(amount)]).toEqual([name, used[name]])
      else if (typeof used[name] === 'number') expect([name, amount(written)]).toEqual([name, used[name]])
      else if (typeof used[name] === 'string') expect([name, names(written)[0]]).toEqual([name, used[name]])
    }
    const numbers = Object.keys(used).filter(
      (name) => typeof used[name] === 'number' && !name.startsWith('internals.'),
    )
    expect(optionNames).toEqual(expect.arrayContaining(numbers))
  })

  it('have the bounds of the code: both ends are accepted, values beyond them are refused', () => {
    const bounded = rows.filter(({ Bounds }) => /\d .*\bto\b|\d to \d/.test(Bounds ?? ''))
    expect(bounded.length).toBeGreaterThan(10)
    for (const row of bounded) {
      const [name] = names(row.Option) as [string]
      const [least, most] = (row.Bounds as string)
        .replace(/^.*each /, '')
        .split(' to ')
        .map(amount)
      const asValue = (number: number) => (row.Bounds?.includes('each') ? [number] : number)
      for (const number of [least, most] as number[]) {
        expect(() => read(given(name, asValue(number)))).not.toThrow()
      }
      for (const number of [(least as number) - 1, (most as number) + 1]) {
        expect(() => read(given(name, asValue(number)))).toThrow(name.split('.').at(-1))
      }
    }
  })

  it('have the re-reads after an event', () => {
    const [, written] =
      /^## A read that lags behind its event is repeated\n\nAfter ([\w ,]+), until/m.exec(
        page('docs/guarantees.md'),
      ) ?? []
    expect(written?.split(', ').map(amount)).toEqual(VERIFY_DELAYS_MS)
  })
})

const MINIMAL = {
  app: { clientId: 'my-app', clientSecret: 'test-client-secret' },
  platform: { baseUrl: 'https://api.platform.example', authUrl: 'https://auth.platform.example' },
  deliverySecrets: 'Hn5tRw8qLd3xVz6kYb1mPc4s',
}

function read(options: unknown) {
  return readOptions(options)
}

/** The minimal options with this option added, or left out, by its dotted name. */
function given(name: string, value: unknown): unknown {
  const [last, ...folders] = name.split('.').reverse() as [string, ...string[]]
  const options = structuredClone(MINIMAL) as Record<string, unknown>
  let group = options
  for (const folder of folders.reverse()) {
    group[folder] ??= {}
    group = group[folder] as Record<string, unknown>
  }
  group[last] = value
  return options
}

function without(name: string): unknown {
  return given(name, undefined)
}

function flat(value: object, path: string[] = []): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) =>
      typeof each === 'object' && !Array.isArray(each) && name !== 'clock'
        ? Object.entries(flat(each, [...path, name]))
        : [[[...path, name].join('.'), each]],
    ),
  )
}

/** The dotted names in the interface `MarketplaceOptions`, read from its source. */
function optionsInCode(): string[] {
  const source = readFileSync(join(LIB, 'options.ts'), 'utf8')
  const [, body = ''] = source.match(/export interface MarketplaceOptions[^\n]*\{\n([\s\S]*?)^\}/m) ?? []
  const found: string[] = []
  const folders: { name: string; indent: number }[] = []
  // A union on one line is split, so that each of its fields begins a line, like all others.
  for (const line of body.replace(/\{ (?=\w+\?)|; (?=\w+\?)/g, '{\n      ').split('\n')) {
    const [, space = '', name = '', rest = ''] = /^( +)(\w+)\??:(.*)$/.exec(line) ?? []
    if (name === '') continue
    while ((folders.at(-1)?.indent ?? -1) >= space.length) folders.pop()
    const path = [...folders.map((folder) => folder.name), name].join('.')
    const isGroup = rest.trim() === '{' || rest.trim() === ''
    // A group is listed as an option only if it accepts more than its fields, such as `worker: false`.
    if (!isGroup || name === 'worker') found.push(path)
    if (isGroup) folders.push({ name, indent: space.length })
  }
  return found
}

const UNITS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  KiB: 1_024,
  MiB: 1_048_576,
}

/** "10 min" or "4" as a number, in ms or bytes. */
function amount(text: string): number {
  const [, number, unit] = /^(\d+)(?: (\w+))?$/.exec(text.trim()) ?? []
  const factor = unit === undefined ? 1 : UNITS[unit]
  if (number === undefined || factor === undefined) throw new Error(`"${text}" is not an amount`)
  return Number(number) * factor
}
