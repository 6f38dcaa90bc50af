import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { CALLS, consoleRouter } from '../../lib/console/index.js'
import type { Marketplace } from '../../lib/index.js'
import { page, snippetsOf } from '../support/docs/pages.js'
import { createScene, serve } from '../support/scene.js'

describe('the page on the console', () => {
  it('names everything that only an operator may do', () => {
    const [, named = ''] = /Only an operator may (.*?)\./.exec(page('docs/console.md')) ?? []
    const acts = Object.entries(CALLS).filter(([, { kind, role }]) => kind === 'act' && role === 'operator')
    expect(named.split(/, | and /)).toEqual(acts.map(([name]) => name))
  })

  it('has an example of basic auth that admits only people with the password', async () => {
    const url = await run('ADA_PASSWORD', { process: { env: { ADA_PASSWORD: 'p:ssword' } } })
    const signIn = (person: string) => {
      const authorization = `Basic ${Buffer.from(person).toString('base64')}`
      return statusOf(`${url}/ops/call/session`, { authorization })
    }
    const unknown = await fetch(`${url}/ops/`)
    expect([unknown.status, unknown.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="ops"'])
    for (const wrong of ['ada:p', 'ada', 'bob:p:ssword', 'constructor:p:ssword', ':'])
      expect([wrong, await signIn(wrong)]).toEqual([wrong, 401])
    expect(await signIn('ada:p:ssword')).toBe(200)
  })

  it('has an example of a session and of a header from a proxy', async () => {
    const bySession = await run('req.session?.user', { operators: new Set() }, (req) => {
      if (req.headers['x-signed-in']) Object.assign(req, { session: { user: { email: 'a', isStaff: true } } })
    })
    expect(await statusOf(`${bySession}/ops/`)).toBe(401)
    expect(await statusOf(`${bySession}/ops/`, { 'x-signed-in': '1' })).toBe(200)
    const byHeader = await run('x-forwarded-email', { operators: new Set(['ada']) })
    expect(
      await statusOf(`${byHeader}/ops/call/previewReplay?status=dead`, { 'x-forwarded-email': 'bob' }),
    ).toBe(403)
    expect(
      await statusOf(`${byHeader}/ops/call/previewReplay?status=dead`, { 'x-forwarded-email': 'ada' }),
    ).toBe(200)
    expect(await statusOf(`${byHeader}/ops/`)).toBe(401)
  })
})

/** Serves the example that contains `phrase`. */
async function run(
  phrase: string,
  names: Record<string, unknown>,
  before: (req: express.Request) => void = () => {},
): Promise<string> {
  const { marketplace } = await createScene({ worker: false })
  const app = express().use((req, _res, next) => {
    before(req)
    next()
  })
  const found = snippetsOf('docs/console.md', ['ts']).find(({ code }) => code.includes(phrase))
  const code = (found?.code ?? '')
    .replace(/^import \{ consoleRouter \} from .*$/m, '')
    .replace(/^import \{ (.*) \} from '(node:\w+)'$/gm, "const { $1 } = require('$2')")
  const known: Record<string, unknown> = {
    app,
    marketplace: marketplace as Marketplace,
    consoleRouter,
    require,
    ...names,
  }
  new Function(...Object.keys(known), code)(...Object.values(known))
  return serve(app)
}

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  return (await fetch(url, { headers })).status
}
