import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import createDebug from 'debug'
import type { JournalEntry } from '../../lib/index.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { useEngine } from '../support/engines/engines.js'
import { POSTGRES_PASSWORD } from '../support/engines/postgres-installation.js'
import { jsonLines, runCli, runCliHere, settingsFor, startCli } from '../support/processes/cli.js'
import { createScene, openMarketplace, serve, startPlatform } from '../support/scene.js'

const CLIENT_SECRET = 'canary-client-7Hq2'
const DELIVERY_SECRET = 'canary-Jw83nfQz17Lk0xVt5'
const CANARY = /canary-/

describe('the command line and secrets', () => {
  const engine = useEngine('PostgreSQL')

  it('L1 prints no secret in any command, whether it succeeds or fails, even with DEBUG', async () => {
    const { env, file, url, id } = await app()
    expect(env.MARKETPLACE_STORE).toContain(POSTGRES_PASSWORD)
    const commands = [
      ['explain', 'b1'],
      ['history', 'b1'],
      ['refresh', 'b1'],
      ['track', 's1', '--business', 'b1'],
      ['import', file('customers.csv')],
      ['import', file('customers.csv'), '--dry-run'],
      ['import', file('customers.csv'), '--no-wait'],
      ['subscriptions', 'list'],
      ['journal', 'list'],
      ['journal', 'show', id],
      ['journal', 'export', '--fixture', id],
      ['platform-report'],
      ['platform-report'],
      ['journal', 'replay', id],
      ['journal', 'replay', '--status', 'unhandled', '--dry-run'],
      ['register', `${url}/hooks`, '--business', 'b1'],
      ['register', `${url}/hooks`, '--business', 'nobody'],
      ['simulate', 'application/installed', '--to', `${url}/hooks`],
      ['simulate', 'application/installed', '--to', `${url}/wrong`],
      ['simulate', 'application/installed', '--to', 'http://canary.invalid/hooks'],
      ['doctor', '--public-url', `${url}/hooks`],
      ['doctor', '--public-url', 'http://127.0.0.1:9/hooks'],
      ['migrate'],
      ['migrate', '--print-grants', 'somebody'],
      ['backup', file('copy.db')],
      ['restore', file('copy.db')],
      ['copy', env.MARKETPLACE_STORE as string, `sqlite:${file('moved.db')}`],
      [
        'copy',
        `sqlite:${file('copy.db')}`,
        `${env.MARKETPLACE_STORE}?password=canary-in-query`,
        '--to-schema',
        'b c',
      ],
      ['copy', 'postgres:canary-odd', 'mysql://u:canary-pw@host/app'],
      ['export', 'b1'],
      ['completion', 'bash'],
      ['erase', 'b1', '--yes', 'b1'],
    ]
    // The list has every command except `secret`, which has to print one, and `demo` and `dev`, which do not end.
    const { stdout: help } = await runCliHere(['--help'])
    const names = [...help.matchAll(/^ {2}([a-z][a-z-]*) (?:\[|<| )/gm)].map(([, name]) => name as string)
    const tried = new Set(commands.map(([name]) => name))
    expect(names.filter((name) => !tried.has(name)).sort()).toEqual(['demo', 'dev', 'help', 'secret'])

    const debugged: string[] = []
    createDebug.enable('marketplace-webhooks:*')
    createDebug.log = (...given) => void debugged.push(given.join(' '))
    onCleanUp(() => createDebug.disable())
    // They run in this order, because the last ones erase. Every other one prints JSON; the text has more words.
    for (const [at, command] of commands.entries()) {
      const args = at % 2 === 0 ? command : [...command, '--json']
      const { code, stdout, stderr } = await runCliHere(args, { env })
      expect({ args, code }).not.toEqual({ args, code: 70 })
      expect(`${args[0]}: ${stdout}${stderr}`.replaceAll('canary.invalid', '')).not.toMatch(CANARY)
    }
    expect(debugged.filter((line) => CANARY.test(line.replaceAll('canary.invalid', '')))).toEqual([])
    const { code, stderr } = await runCli(['refresh', 'b1', '--wait', '1'], {
      env: { ...env, DEBUG: 'marketplace-webhooks:*' },
    })
    expect({ code, stderr }).not.toEqual({ code: 70, stderr })
    expect(stderr).not.toMatch(CANARY)
  }, 180_000)

  it('L1 prints no secret when the platform repeats its request in the reply, or the database cannot be reached', async () => {
    const base = await serve((req, res) => {
      const sent = `${req.url} ${req.headers.authorization}`
      res.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify({ error: sent }))
    })
    const settings = {
      ...settingsFor({ baseUrl: base, authUrl: base }, `sqlite:${join(temporaryFolder(), 'marketplace.db')}`),
      ...SECRETS,
    }
    const env = { ...settings, MARKETPLACE_TOKEN: 'canary-token-9Zx4' }
    const unreachable = { MARKETPLACE_STORE: `postgres://app:${POSTGRES_PASSWORD}@127.0.0.1:9/app` }
    const runs: [args: string[], env: Record<string, string>][] = [
      [['register', `${base}/hooks`], env],
      [['doctor', '--business', 'b1', '--subscription', 's1'], env],
      [['explain', 'b1'], { ...env, ...unreachable }],
      [['explain', 'b1'], { ...env, MARKETPLACE_STORE: 'postgres:canary-odd' }],
      [['explain', 'b1'], { ...env, MARKETPLACE_BASE_URL: 'http://u:canary-pw@host' }],
    ]
    const outputs = await Promise.all(runs.map(([args, given]) => runCliHere(args, { env: given })))
    expect(outputs.map(({ code }) => code)).toEqual([1, 1, 3, 2, 2])
    for (const { stdout, stderr } of outputs) expect(stdout + stderr).not.toMatch(CANARY)
  })

  it('L1 prints no secret in dev', async () => {
    const url = await serve((_req, res) => void res.writeHead(500).end())
    const env = { ...settingsFor({ baseUrl: '', authUrl: '' }, ''), ...SECRETS }
    const dev = startCli(['dev', '--port', '0', '--to', `${url}/hooks`], { env })
    await dev.prints('buy')
    dev.write('buy\n')
    await dev.prints('-> 500')
    dev.write('quit\n')
    const { code, stdout, stderr } = await dev.ended
    expect(code).toBe(0)
    expect(stdout + stderr).not.toMatch(CANARY)
  })

  it('lets no received text control the terminal', async () => {
    const store = await engine.freshAddress()
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store })
    const bad = 'b\u001b]0;title\u0007\u001b[2J\u202e'
    await marketplace.journal.recordAction({ actor: bad, action: 'refresh', businessUid: 'b1', reason: bad })
    const env = settingsFor(platform, store)
    const [entry] = jsonLines<JournalEntry>((await runCliHere(['journal', 'list', '--json'], { env })).stdout)
    const commands = [
      ['history', 'b1'],
      ['journal', 'list'],
      ['journal', 'show', entry?.id as string],
    ]
    for (const args of commands) {
      const { code, stdout } = await runCliHere(args, { env })
      expect({ args, code }).toEqual({ args, code: 0 })
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for these
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
    }
  })

  async function app() {
    const store = await engine.freshAddress()
    const credentials = { clientSecret: CLIENT_SECRET }
    const { platform, marketplace, url, deliver } = await createScene(
      { store, app: credentials, deliverySecrets: DELIVERY_SECRET },
      credentials,
    )
    await marketplace.start()
    platform.install('b1')
    platform.purchase({ business_uid: 'b1', payment: 'succeeded', subscription_uid: 's1' })
    await platform.settled()
    await marketplace.settled()
    const { id } = await deliver({ odd: true })
    const folder = temporaryFolder()
    const file = (name: string) => join(folder, name)
    writeFileSync(file('customers.csv'), 'subscription_uid,business_uid\ns1,b1\n')
    const env: Record<string, string> = { ...settingsFor(platform, store), ...SECRETS }
    return { url, id, file, env }
  }
})

const SECRETS = { MARKETPLACE_CLIENT_SECRET: CLIENT_SECRET, DELIVERY_SECRETS: DELIVERY_SECRET }
