import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { startDevReceiver } from '../../lib/cli/dev/receiver.js'
import { onCleanUp } from '../support/clean-up.js'
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
    dev.write('confirm\nbuy\n')
    await dev.prints('"answer"')
    dev.end('')
    const [{ baseUrl }] = jsonLines<{ baseUrl: string }>(dev.stdout()) as [{ baseUrl: string }]
    expect(await fetch(`${baseUrl}/no-such-call`)).toMatchObject({ status: 404 })
    await dev.prints('"unknown"')
    dev.signal('SIGTERM')
    const { code, stdout } = await dev.ended
    expect(code).toBe(0)
    const lines = jsonLines<{ kind: string }>(stdout)
    expect(lines.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['started', 'you', 'delivery', 'call', 'answer']),
    )
    expect(lines.find(({ kind }) => kind === 'answer')).toMatchObject({
      business_uid: 'business-1',
      entitled: true,
    })
  }, 60_000)

  it('plays one business after the other, each with its newest subscription', async () => {
    const dev = startCli(['dev', '--port', '0', '--json'])
    await dev.prints('"started"')
    dev.write('confirm\nmiss\nBUY cancel buy uninstall next quit\n')
    const { code, stdout } = await dev.ended
    const said = jsonLines<{ kind: string; text: string }>(stdout).filter(({ kind }) => kind === 'you')
    expect([code, ...said.map(({ text }) => text)]).toEqual([
      0,
      'business-1 has not bought anything yet: press b',
      'business-1 misses a payment',
      'business-2 buys the app',
      'business-2 cancels',
      'business-2 buys the app',
      'business-2 uninstalls the app',
      'continue with business-3',
    ])
  }, 60_000)

  it('ends at Ctrl+D in a terminal', async () => {
    const dev = startInTerminal(['dev', '--port', '0'])
    await dev.prints('quit')
    await press(dev, '\u0004', '')
    expect(await dev.ended).toMatchObject({ code: 0 })
  }, 60_000)

  it('has a receiver that only this machine reaches', async () => {
    const { baseUrl, authUrl } = await startPlatform()
    const app = { ...CLIENT, purchasableUid: OUR_ITEM }
    const receiver = await startDevReceiver({ app, platform: { baseUrl, authUrl }, log: { answer() {} } })
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

async function press(dev: RunningProcess, key: string, answer: string | RegExp) {
  dev.write(key)
  await dev.prints(answer)
}
