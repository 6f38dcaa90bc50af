import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv as nodeParseEnv } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { recall, remember } from '../../lib/cli/dev/memory.js'
import { startDevReceiver } from '../../lib/cli/dev/receiver.js'
import { createMarketplace, optionsFromEnvironment } from '../../lib/index.js'
import { createSimulator } from '../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { jsonLines, startCli, startInTerminal } from '../support/processes/cli.js'
import type { RunningProcess } from '../support/processes/running-process.js'
import { openMarketplace, serve, startPlatform } from '../support/scene.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../support/settings.js'
import { until } from '../support/until.js'

describe('marketplace-webhooks dev', () => {
  it('takes single keys in a terminal: a business buys, misses a payment, confirms, cancels and uninstalls', async () => {
    const dev = startInTerminal(['dev', '--port', '0'])
    await dev.prints('quit')
    await press(dev, 'b', 'business-1: none -> purchased, ')
    await press(dev, 'm', 'business-1: purchased -> suspended, ')
    await press(dev, 'c', 'business-1: suspended -> purchased, ')
    await press(dev, 'x', 'business-1: purchased -> canceled, ')
    await press(dev, 'u', /application\/uninstalled business-1 -> /)
    await press(dev, 'z', 'unknown key')
    await press(dev, 'q', '')
    expect(await dev.ended).toMatchObject({ code: 0 })
  }, 60_000)

  it('breaks the platform and repairs it in a terminal, and ends at Ctrl+C', async () => {
    const dev = startInTerminal(['dev', '--port', '0'])
    await dev.prints('quit')
    await press(dev, 'k', 'the platform is down')
    await press(dev, 'b', /purchasable_subscription\/create business-1 -> .*200/)
    await press(dev, 'k', 'the platform works again')
    await dev.prints('business-1: none -> purchased, ')
    await press(dev, '\u0003', '')
    expect(await dev.ended).toMatchObject({ code: 0 })
  }, 60_000)

  it('reads commands from its input without a terminal, prints JSON lines, and continues when the input ends', async () => {
    const dev = startCli(['dev', '--port', '0', '--json'])
    await dev.prints('"started"')
    dev.write('confirm\n')
    await dev.prints('unknown_business')
    dev.write('buy\n')
    await dev.prints('"purchased"')
    dev.end('')
    const [{ baseUrl }] = jsonLines<{ baseUrl: string }>(dev.stdout()) as [{ baseUrl: string }]
    expect(await fetch(`${baseUrl}/no-such-call`)).toMatchObject({ status: 404 })
    await dev.prints('"unknown"')
    await dev.prints('"entitled":true,"known":true')
    dev.signal('SIGTERM')
    const { code, stdout } = await dev.ended
    expect(code).toBe(0)
    const lines = jsonLines<{ kind: string }>(stdout)
    expect(lines.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['started', 'you', 'delivery', 'call', 'change', 'answer']),
    )
    // Each word has its answer, also one that changes nothing.
    expect(lines.filter(({ kind }) => kind === 'answer')).toMatchObject([
      { business_uid: 'business-1', entitled: false, reason: 'unknown_business' },
      { business_uid: 'business-1', entitled: true, reason: 'purchased' },
    ])
    expect(lines.find(({ kind }) => kind === 'change')).toMatchObject({
      ...{ business_uid: 'business-1', from: null, to: 'purchased', entitled: true },
    })
  }, 60_000)

  it('plays one business after the other, each with its newest subscription', async () => {
    const dev = startCli(['dev', '--port', '0', '--json'])
    await dev.prints('"started"')
    dev.write('confirm\nmiss\nBUY cancel cancel miss buy uninstall next quit\n')
    const { code, stdout } = await dev.ended
    const said = jsonLines<{ kind: string; text: string }>(stdout).filter(({ kind }) => kind === 'you')
    expect([code, ...said.map(({ text }) => text)]).toEqual([
      0,
      'business-1 has not bought anything yet: press b',
      'business-1 misses a payment',
      'business-2 buys the app',
      'business-2 cancels',
      'nothing happens: the subscription of business-2 is canceled',
      'nothing happens: the subscription of business-2 is canceled',
      'business-2 buys the app',
      'business-2 uninstalls the app',
      'continue with business-3',
    ])
  }, 60_000)

  it('explains once that no app runs at the address', async () => {
    const dev = startCli(['dev', '--port', '0', '--to', 'http://127.0.0.1:9/hooks'])
    dev.write('buy cancel\n')
    await dev.prints(/business-1: canceled on the platform/)
    dev.write('quit\n')
    const { stdout, stderr } = await dev.ended
    expect((stdout.match(/-> ECONNREFUSED/g) ?? []).length).toBeGreaterThan(1)
    expect(stderr.match(/your app does not run there/g)).toHaveLength(1)
  }, 60_000)

  it('ends at Ctrl+D in a terminal', async () => {
    const dev = startInTerminal(['dev', '--port', '0'])
    await dev.prints('quit')
    // Before the program takes single keys the terminal keeps Ctrl+D for itself.
    await press(dev, 'z', 'unknown key')
    await press(dev, '\u0004', '')
    expect(await dev.ended).toMatchObject({ code: 0 })
  }, 60_000)

  it('has a receiver that only this machine reaches', async () => {
    const { baseUrl, authUrl } = await startPlatform()
    const app = { ...CLIENT, purchasableUid: OUR_ITEM }
    const receiver = await startDevReceiver({
      app,
      platform: { baseUrl, authUrl },
      log: { answer() {}, change() {} },
    })
    onCleanUp(receiver.close)
    expect(await fetch(receiver.target, { method: 'POST', body: '{}' })).toMatchObject({ status: 200 })
    // On Linux each of 127.0.0.0/8 is this machine, and a server on all addresses answers there too.
    await expect(fetch(receiver.target.replace('127.0.0.1', '127.0.0.2'))).rejects.toThrow('fetch failed')
  })

  it("delivers to an app of the user and answers the app's reads", async () => {
    const client = { clientId: 'my-client', clientSecret: 'my-client-secret', purchasableUid: 'my-item' }
    const router = express.Router()
    const url = await serve(express().use('/hooks', router))
    const env = {
      MARKETPLACE_CLIENT_ID: client.clientId,
      MARKETPLACE_CLIENT_SECRET: client.clientSecret,
      MARKETPLACE_PURCHASABLE_UID: client.purchasableUid,
      DELIVERY_SECRETS: DELIVERY_SECRET,
    }
    const dev = startCli(['dev', '--port', '0', '--json', '--to', `${url}/hooks`], { env })
    await dev.prints('"started"')
    const [started] = jsonLines<{ baseUrl: string; authUrl: string }>(dev.stdout())
    const marketplace = openMarketplace(started as { baseUrl: string; authUrl: string }, { app: client })
    router.use(marketplace.router)
    dev.write('buy\n')
    await until('the app knows the business', () => marketplace.isEntitled('business-1'))
    dev.write('quit\n')
    const { code, stdout, stderr } = await dev.ended
    expect(code).toBe(0)
    expect(stdout + stderr).not.toContain(DELIVERY_SECRET)
    expect(stdout + stderr).not.toContain(client.clientSecret)
  }, 60_000)

  it('reports that its port is in use', async () => {
    const first = startCli(['dev', '--port', '0', '--json'])
    await first.prints('"started"')
    const [{ baseUrl }] = jsonLines<{ baseUrl: string }>(first.stdout()) as [{ baseUrl: string }]
    const { port } = new URL(baseUrl)
    // The second tries to use it for its token endpoint.
    for (const own of [Number(port), Number(port) - 1]) {
      const second = await startCli(['dev', '--port', String(own)]).ended
      expect(second).toMatchObject({ code: 2, stdout: '' })
      expect(second.stderr).toContain(`port ${own} or ${own + 1} is in use`)
    }
  }, 60_000)
})

describe('marketplace-webhooks dev beside an app', () => {
  it('prints settings, its delivery secret included, with which an app gets its webhooks', async () => {
    const router = express.Router()
    const url = await serve(express().use('/hooks', router))
    const dev = startCli(['dev', '--port', '0', '--to', `${url}/hooks`])
    await dev.prints('quit')
    const options = optionsFromEnvironment(parseEnv(dev.stderr()))
    const marketplace = createMarketplace({ ...options, store: 'sqlite::memory:' })
    onCleanUp(() => marketplace.close())
    router.use(marketplace.router)
    dev.write('buy\n')
    await dev.prints('business-1: purchased on the platform, your app took 2 of 2 webhooks')
    await until('the app knows the business', () => marketplace.isEntitled('business-1'))
    dev.write('next\n')
    await dev.prints('business-2: nothing bought on the platform, nothing was sent')
    // They are only for a platform on this machine.
    const elsewhere = { ...options.platform, baseUrl: 'https://platform.example' }
    expect(() => createMarketplace({ ...options, platform: elsewhere })).toThrow(
      /deliverySecrets\.0: it stands/,
    )
  }, 60_000)

  it('writes all settings into a file that only its user reads, and replaces another one only with --force', async () => {
    const url = await serve((_req, res) => void res.writeHead(200).end())
    const cwd = temporaryFolder()
    const file = join(cwd, '.env.marketplace')
    const env = { MARKETPLACE_CLIENT_SECRET: 'canary-of-the-person', MARKETPLACE_CODE_NAME: "it's a name" }
    const started = async (...more: string[]) => {
      const args = ['dev', '--port', '0', '--to', `${url}/hooks`, '--write-env', '.env.marketplace', ...more]
      const dev = startCli(args, { cwd, env })
      dev.end('quit\n')
      return dev.ended
    }
    const first = await started()
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('--env-file=.env.marketplace') })
    expect(first.stdout + first.stderr).not.toContain('canary')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const written = readFileSync(file, 'utf8')
    expect(optionsFromEnvironment(parseEnv(written))).toMatchObject({
      app: { clientId: 'dev-app', clientSecret: 'canary-of-the-person', codeName: ["it's a name"] },
      platform: { baseUrl: expect.stringMatching(/^http:\/\/127/) },
      store: 'sqlite:marketplace-dev.db',
    })
    // The ports are others now, so the content is another one.
    expect(await started()).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') })
    expect(readFileSync(file, 'utf8')).toBe(written)
    expect(await started('--force')).toMatchObject({ code: 0 })
    expect(readFileSync(file, 'utf8')).not.toBe(written)
  }, 60_000)

  it('explains the first 404 and no other', async () => {
    const url = await serve((_req, res) => void res.writeHead(404).end())
    const dev = startCli(['dev', '--port', '0', '--to', `${url}/hooks`])
    await dev.prints('quit')
    dev.write('buy\n')
    await dev.prints('business-1: purchased on the platform, your app took 0 of 2 webhooks')
    dev.write('miss\n')
    await dev.prints('business-1: suspended on the platform, your app took 0 of 2 webhooks')
    dev.write('quit\n')
    const { stderr, stdout } = await dev.ended
    expect(stdout.match(/-> 404/g)?.length).toBeGreaterThan(2)
    expect(stderr.match(/404 means/g)).toHaveLength(1)
    expect(stderr).toContain('--env <file>')
  }, 60_000)

  it('keeps its businesses for the next start', async () => {
    const router = express.Router()
    const url = await serve(express().use('/hooks', router))
    const cwd = temporaryFolder()
    const played = async (words: string) => {
      const dev = startCli(['dev', '--port', '0', '--json', '--to', `${url}/hooks`], { cwd })
      dev.end(`${words} quit\n`)
      const { code, stdout, stderr } = await dev.ended
      expect({ code, stderr }).toMatchObject({ code: 0 })
      return jsonLines<{ kind: string; text: string }>(stdout).flatMap(({ kind, text }) =>
        kind === 'you' ? [text] : [],
      )
    }
    await played('buy uninstall buy cancel buy next buy')
    const [{ subscriptions }] = [JSON.parse(readFileSync(join(cwd, '.marketplace-dev.json'), 'utf8'))]
    expect(await played('miss')).toEqual(['business-2 misses a payment'])
    expect(await played('miss')).toEqual(['business-2 misses a payment'])
    const after = JSON.parse(readFileSync(join(cwd, '.marketplace-dev.json'), 'utf8'))
    expect(after.subscriptions.slice(0, -1)).toEqual(subscriptions.slice(0, -1))
    expect(after.subscriptions.at(-1)).toMatchObject({
      ...{ uid: subscriptions.at(-1).uid, business_uid: 'business-2', purchase_state: 'suspended' },
    })
    writeFileSync(join(cwd, '.marketplace-dev.json'), '{}')
    const dev = await startCli(['dev', '--port', '0', '--to', `${url}/hooks`], { cwd }).ended
    expect(dev).toMatchObject({ code: 2, stderr: expect.stringContaining('Delete it') })
  }, 60_000)

  it('still knows after a restart that a business has uninstalled the app', () => {
    const file = join(temporaryFolder(), 'kept.json')
    const create = () =>
      createSimulator({ clientId: 'a', clientSecret: 'b', apps: [{ purchasableUid: 'item' }] })
    const before = create()
    before.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    before.purchase({ business_uid: 'business-2', payment: 'failed' })
    before.uninstall('business-1')
    remember(file, before, 2)
    const after = create()
    expect(recall(file, after)).toBe(2)
    expect(after.subscriptions()).toEqual(before.subscriptions())
    expect(['business-1', 'business-2'].map(after.servesTokens)).toEqual([false, true])
  })
})

/** The variables in the lines that are assignments. */
function parseEnv(text: string): Record<string, string | undefined> {
  const lines = text.split('\n').filter((line) => /^[A-Z_]+=/.test(line))
  return nodeParseEnv(lines.join('\n')) as Record<string, string | undefined>
}

async function press(dev: RunningProcess, key: string, answer: string | RegExp) {
  dev.write(key)
  await dev.prints(answer)
}
