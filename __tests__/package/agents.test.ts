import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import type { Command } from 'commander'
import { createProgram } from '../../lib/cli/program.js'
import { EVENTS } from '../../lib/events/registry.js'
import * as index from '../../lib/index.js'
import { readOptions } from '../../lib/options.js'
import * as testing from '../../lib/testing/index.js'
import { onCleanUp } from '../support/clean-up.js'
import { anchorsOf, linksOf, names, PAGES } from '../support/docs/pages.js'
import { ADDRESSES, CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../support/settings.js'
import { packed } from './installed-package.js'

const ROOT = join(__dirname, '..', '..')
const TEXT = readFileSync(join(ROOT, 'AGENTS.md'), 'utf8')
const PROSE = TEXT.replace(/^```[\s\S]*?^```$/gm, '')
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const OPTIONS = {
  app: { ...CLIENT, purchasableUid: OUR_ITEM },
  platform: ADDRESSES,
  deliverySecrets: DELIVERY_SECRET,
  store: 'sqlite::memory:',
  worker: false,
}

/** What AGENTS.md has between backticks that is not a name of this package. */
const OTHERS = ['Cache-Control: private, no-store', 'await', 'id', 'node:test', 'postgres://…']

describe('AGENTS.md', () => {
  it('has at most 80 lines, and ten mistakes', () => {
    expect(TEXT.trimEnd().split('\n').length).toBeLessThanOrEqual(80)
    const numbered = [...TEXT.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number))
    expect(numbered).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('names every page, and links only to headings of files that are shipped', () => {
    const links = linksOf(TEXT).map((link) => link.split('#'))
    const { files } = packed()
    const broken = links.filter(
      ([path = '', anchor]) =>
        !files.includes(path) ||
        (anchor !== undefined && !anchorsOf(readFileSync(join(ROOT, path), 'utf8')).has(anchor)),
    )
    expect(broken).toEqual([])
    const pages = [...PAGES.keys()].filter((path) => path !== 'docs/README.md')
    expect(pages.filter((path) => !links.some(([linked]) => linked === path))).toEqual([])
  })

  it('names only methods, commands, scripts, examples and options that exist', async () => {
    const marketplace = index.createMarketplace(OPTIONS)
    const platform = testing.createSimulator({ ...CLIENT, apps: [{ purchasableUid: OUR_ITEM }] })
    onCleanUp(() => marketplace.close())
    const calls = [...TEXT.matchAll(/\b(marketplace|platform)\.([a-zA-Z.]+)/g)]
    expect(calls.length).toBeGreaterThan(5)
    for (const [call, object, path = ''] of calls)
      expect([call, valueAt(object === 'platform' ? platform : marketplace, path)]).not.toEqual([
        call,
        undefined,
      ])

    const commands = createProgram('', () => async () => {}).commands.map((each: Command) => each.name())
    const commanded = [...TEXT.matchAll(/npx marketplace-webhooks (\w+)/g)].map(([, name]) => name)
    expect(commanded.length).toBeGreaterThan(2)
    expect(commanded.filter((name) => !commands.includes(name as string))).toEqual([])

    const scripts = [...TEXT.matchAll(/npm (?:run )?(test|(?<=run )[\w:]+)/g)].map(([, name = '']) => name)
    expect(scripts.filter((name) => !(name in PACKAGE.scripts))).toEqual([])
    const [, listed = ''] = /^`examples\/` has (.*)$/m.exec(TEXT) ?? []
    expect(
      names(listed)
        .filter((name) => /^[a-z-]+$/.test(name))
        .sort(),
    ).toEqual(readdirSync(join(ROOT, 'examples')).sort())
  })

  it('has nothing else between backticks but exports, options, events, fields and files', async () => {
    const marketplace = index.createMarketplace(OPTIONS)
    onCleanUp(() => marketplace.close())
    const fields = [
      ...Object.keys(await marketplace.explain('business-1')),
      ...Object.keys(marketplace),
      ...Object.keys(readOptions(OPTIONS)),
      ...Object.keys(index),
      ...Object.keys(testing),
      ...Object.keys(EVENTS),
      ...readdirSync(join(ROOT, 'examples')),
      PACKAGE.name,
    ]
    const error = new index.MarketplaceError('closed', '')
    const unknown = names(PROSE)
      // Calls and commands have a test of their own.
      .filter((code) => !/^(marketplace|platform)\.|^(npm|npx) |^app\.use\(/.test(code))
      .filter((code) => !(code in error))
      .filter((code) => !fields.includes(code.split(/[:(]/)[0] as string) && !existsSync(join(ROOT, code)))
    expect(unknown.sort()).toEqual(OTHERS)
  })
})

function valueAt(object: object, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => Object(value)[name], object)
}
