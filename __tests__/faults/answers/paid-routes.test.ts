import { mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { transformSync } from '@swc/core'
import { build } from 'esbuild'
import express5, { type Express } from 'express'
import type { Marketplace } from '../../../lib/index.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { snippetsOf } from '../../support/docs/pages.js'
import { createScene, openMarketplace, serve, startPlatform } from '../../support/scene.js'

const express4 = require('express-4') as typeof express5
const { FORGED, spellingsOf } = require('../../../consumers/spellings.cjs') as {
  FORGED: Record<string, string>[]
  spellingsOf(path: string): string[]
}
const PAID = ['/visitors', '/paid/forecast', '/downloads/visitors.txt']

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('J90 the gate on the route, as the page on the gate shows it, on %s', (_name, express) => {
  it('shows nothing to a visitor without access, however the path is spelled and whatever is forged', async () => {
    const { marketplace, app, url, folder } = await scene(express)
    const files = JSON.stringify(join(folder, 'downloads'))
    run(codeWith('paidRoutes').replace(/(?<=static\()'downloads'/, files), { marketplace, app, express })
    expect(await letIn(url, 'bakery', [PAID])).toEqual(PAID)
    for (const business of ['salon', '']) {
      expect(
        await letIn(
          url,
          business,
          PAID.map((path) => [path, ...spellingsOf(path)]),
        ),
      ).toEqual([])
    }
  }, 60_000)

  it('does not stand before the router: then other spellings of a file pass it', async () => {
    const { marketplace, app, url, folder } = await scene(express)
    app.use('/downloads', marketplace.requireEntitlement({ businessUid: (req) => req.session?.business_uid }))
    app.use(express.static(folder))
    const [, , path] = PAID as [string, string, string]
    expect(await letIn(url, 'salon', [[path]])).toEqual([])
    expect(await letIn(url, 'salon', [spellingsOf(path)])).toContain('/%64ownloads/visitors.txt')
  }, 60_000)
})

describe('J91 a module in the bundle of a framework, as the recipe for Next shows it', () => {
  it('asks the marketplace of the server, also when it is bundled twice or again', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform)
    platform.purchase({ business_uid: 'bakery', payment: 'succeeded', subscription_uid: 's1' })
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: 'bakery' })
    await marketplace.settled()
    const folder = temporaryFolder()
    const [paid] = snippetsOf('docs/recipes.md', ['ts']).filter(({ file }) => file === 'lib/paid.ts')
    writeFileSync(join(folder, 'paid.ts'), paid?.code ?? '')
    writeFileSync(join(folder, 'session.ts'), "export const businessOfSession = async () => 'bakery'")
    const bundles = await Promise.all(['page', 'route', 'page-again'].map((name) => bundled(folder, name)))
    expect(new Set(bundles).size).toBe(3)
    await expect(bundles[0]?.paidStatus()).rejects.toThrow('Start the app with server.ts')

    const [server] = snippetsOf('docs/recipes.md', ['ts']).filter(({ file }) => file === 'server.ts')
    const [handOver = ''] = /^globalThis\.\w+ = marketplace$/m.exec(server?.code ?? '') ?? []
    run(handOver, { marketplace })
    expect(await Promise.all(bundles.map((bundle) => bundle.paidStatus()))).toEqual([200, 200, 200])
  })

  /** The module as a bundle of its own, with everything that it imports. */
  async function bundled(folder: string, name: string): Promise<{ paidStatus(): Promise<number> }> {
    const outfile = join(folder, `${name}.cjs`)
    await build({
      entryPoints: [join(folder, 'paid.ts')],
      bundle: true,
      platform: 'node',
      format: 'cjs',
      outfile,
    })
    return require(outfile)
  }
})

/** An app whose visitors have a session, and a folder with a file. The bakery has bought. */
async function scene(express: typeof express5) {
  const { marketplace, platform } = await createScene()
  platform.purchase({ business_uid: 'bakery', payment: 'succeeded' })
  await platform.settled()
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'downloads'))
  writeFileSync(join(folder, 'downloads', 'visitors.txt'), 'visitors: 42')
  const app = express()
  app.use((req, _res, next) => {
    const [, business] = /^session=(.+)$/.exec(req.get('cookie') ?? '') ?? []
    Object.assign(req, { session: { business_uid: business } })
    next()
  })
  return { marketplace, app, url: await serve(app), folder }
}

/** The paths behind which a visitor saw the paid content: each without forged headers, the first of a list with all. */
async function letIn(url: string, business: string, lists: string[][]): Promise<string[]> {
  const found = new Set<string>()
  for (const list of lists) {
    for (const [i, path] of list.entries()) {
      const visits = (i < 5 ? FORGED : FORGED.slice(0, 1)).map(async (forged) => {
        const headers = { ...forged, ...(business && { cookie: `session=${business}` }) }
        if (/visitors"?: ?\d/.test(await bodyOf(url, path, headers))) found.add(path)
      })
      await Promise.all(visits)
    }
  }
  return [...found]
}

/** The body of the reply to a request whose path is sent as it is written. */
function bodyOf(url: string, path: string, headers: Record<string, string>): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const req = request({ hostname, port, path, headers, agent: false }, (res) => {
      let body = ''
      res.on('data', (chunk) => {
        body += chunk
      })
      res.once('close', () => resolve(body))
    })
    req.once('error', () => resolve(''))
    req.end()
  })
}

function codeWith(text: string): string {
  const [snippet] = snippetsOf('docs/gate.md', ['ts']).filter(({ code }) => code.includes(text))
  return snippet?.code ?? ''
}

function run(typed: string, names: { marketplace: Marketplace; app?: Express; express?: unknown }) {
  const { code } = transformSync(typed, {
    jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
    module: { type: 'commonjs' },
  })
  new Function('exports', ...Object.keys(names), code)({}, ...Object.values(names))
}
