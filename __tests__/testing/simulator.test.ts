import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { RECORD_FIELDS } from '../../lib/base/record.js'
import { createSimulator, type Simulator } from '../../lib/testing/index.js'
import { TRANSITIONS } from '../../lib/testing/transitions.js'
import { freePort } from '../support/engines/tcp-proxy.js'
import { accessToken, read, readReply, start } from '../support/platform/simulator-calls.js'

describe('the transition table, row by row', () => {
  it.each(TRANSITIONS.map((row) => ({ ...row, from: row.current.join(' or ') })))(
    'from $from, "$trigger" ($condition) leads to $next and emits $emits',
    async (row) => {
      for (const from of row.current) {
        const { platform, target } = await start()
        await platform.registerAll(target.url)
        const sub = take(platform, row.trigger, from, row.condition)
        await platform.settled()
        const emitted = platform.deliveries
          .filter(({ index }) => index >= sub.before)
          .map(({ event }) => event)
        expect(emitted).toEqual(row.emits ? [row.emits, 'purchasable_subscription/updated'] : [])
        const { status, records } = await read(platform, sub.uid)
        expect(status).toBe(200)
        expect(records).toHaveLength(1)
        expect(records[0]).toMatchObject({ uid: sub.uid, purchase_state: row.next })
        expect(Object.keys(records[0] ?? {}).sort()).toEqual(Object.keys(RECORD_FIELDS).sort())
      }
    },
  )

  it('has no transition out of canceled', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.cancel(uid)
    for (const move of [platform.confirmPayment, platform.paymentIssue, platform.cancel]) {
      expect(() => move(uid)).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
      expect(() => move('unknown')).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
    }
  })

  it('cancels by uninstalling the app, before it delivers the uninstall', async () => {
    const { platform, target } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed' })
    await platform.registerAll(target.url)
    platform.uninstall('b1')
    await platform.settled()
    expect(platform.deliveries.map(({ event }) => event)).toEqual([
      'purchasable_subscription/update',
      'purchasable_subscription/updated',
      'application/uninstalled',
      'app_subscription/uninstalled',
    ])
    expect(platform.subscription(uid)?.purchase_state).toBe('canceled')
  })

  it('cancels by cancelling the entire platform subscription', async () => {
    const { platform, target } = await start()
    const app = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const main = platform.mainSubscription({ business_uid: 'b1' })
    const other = platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await platform.registerAll(target.url)
    platform.cancelPlatform('b1')
    await platform.settled()
    expect(platform.subscriptions().map(({ purchase_state }) => purchase_state)).toEqual([
      'canceled',
      'canceled',
      'purchased',
    ])
    expect(platform.deliveries.map(({ event, subscription_uid }) => [event, subscription_uid])).toEqual([
      ['purchasable_subscription/update', app.uid],
      ['purchasable_subscription/updated', app.uid],
      ['purchasable_subscription/updated', main.uid],
    ])
    expect(platform.subscription(other.uid)?.is_active).toBe(true)
  })
})

describe('one seed', () => {
  async function run(seed: number | string, noise: boolean) {
    const { platform, target } = await start({ seed })
    await platform.registerAll(target.url)
    platform.faults.add({ on: 'delivery', kind: 'drop', probability: 0.4 })
    platform.faults.add({ on: 'read', kind: 'status', status: 503, probability: 0.5 })
    const token = platform.appToken('b0')
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) {
      const { uid } = platform.purchase({ business_uid: 'b0', payment: 'succeeded' })
      // Requests in between must not change the results of the others.
      if (noise) await read(platform, 'unknown', platform.appToken('b9'))
      for (let j = 0; j < 3; j++) statuses.push((await read(platform, uid, token)).status)
    }
    await platform.settled()
    const fates = platform.deliveries.map(
      ({ event, subscription_uid: uid, error }) => `${event} ${uid} ${error}`,
    )
    return { ids: platform.subscriptions().map(({ uid }) => uid), statuses, fates: fates.sort() }
  }

  it('gives the same identifiers and the same faults again, with any calls in between', async () => {
    const first = await run(7, false)
    expect(await run(7, true)).toEqual(first)
    expect(new Set(first.statuses)).toEqual(new Set([200, 503]))
    expect((await run(8, false)).ids).not.toEqual(first.ids)
  })

  it('is reported if it was drawn at random', () => {
    const one = createSimulator({ clientId: 'client', clientSecret: 'secret' })
    const two = createSimulator({ clientId: 'client', clientSecret: 'secret', seed: one.seed })
    expect(two.apps).toEqual(one.apps)
  })
})

describe('the life and limits of a simulator', () => {
  it('refuses invalid options, all at once', () => {
    const options = {
      clientId: '',
      clientSecret: 's',
      port: -1,
      apps: [],
      deliveryStyle: { contentType: 'a\nb' },
    }
    expect(() => createSimulator(options)).toThrow(
      /^Cannot create the simulator: clientId .*; apps .*; deliveryStyle.contentType .*; port /,
    )
    const apps = [{ purchasableUid: 'solo' }, { purchasableUid: 'pro' }]
    expect(() => createSimulator({ ...options, apps })).toThrow(
      /two apps have the same codeName: give each its own/,
    )
  })

  it('listens at the given ports', async () => {
    const [port, authPort] = [await freePort(), await freePort()]
    const { platform } = await start({ port, authPort })
    expect([platform.baseUrl, platform.authUrl]).toEqual(
      [port, authPort].map((each) => `http://127.0.0.1:${each}`),
    )
  })

  it('keeps secrets and tokens out of its log of requests', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = await accessToken(platform, 'b1')
    await read(platform, uid, token)
    const log = JSON.stringify(platform.requests)
    expect(platform.requests.map(({ endpoint }) => endpoint)).toEqual(['token', 'read'])
    expect(log).not.toContain(token)
    expect(log).not.toContain('the-client-secret')
  })

  it('closes at once, also twice, and refuses use afterwards', async () => {
    const { platform, target } = await start()
    await platform.register('application/installed', target.url)
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const address = platform.baseUrl
    const token = platform.appToken('b1')
    platform.faults.add({ on: 'read', kind: 'hang' })
    const seen = new Promise((resolve) => platform.on('request', resolve))
    const hanging = expect(readReply(platform, uid, token)).rejects.toThrow('fetch failed')
    await seen
    target.status = 0
    platform.install('b1')
    const settled = platform.settled()
    await Promise.all([platform.close(), platform.close()])
    await Promise.all([hanging, settled])
    await expect(fetch(address)).rejects.toThrow('fetch failed')
    expect(() => platform.install('b2')).toThrow(expect.objectContaining({ code: 'closed' }))
    await expect(platform.start()).rejects.toMatchObject({ code: 'closed' })
  })

  it('leaves nothing that keeps a process alive', async () => {
    const script = `
      import { createSimulator } from './lib/testing/index.ts'
      const platform = createSimulator({ clientId: 'c', clientSecret: 's', retries: 3, retryDelayMs: 60_000 })
      const { baseUrl } = await platform.start()
      await platform.registerAll('http://127.0.0.1:9/')
      const slow = platform.faults.add({ on: 'read', kind: 'slow', ms: 60_000 })
      platform.faults.add({ on: 'delivery', kind: 'delay', ms: 60_000, probability: 0.5 })
      platform.faults.add({ on: 'delivery', kind: 'reorder', hold: 9, probability: 0.5 })
      platform.purchase({ business_uid: 'b', payment: 'succeeded' })
      const headers = { authorization: 'Bearer ' + platform.appToken('b') }
      // A fetch of Node 20 on a connection that was idle does not keep the process alive.
      const alive = setInterval(() => {}, 1_000)
      const reply = fetch(baseUrl + '/business/subscriptionsmng/v1/subscriptions?filter[uid]=x', { headers })
      while (slow.strikes === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      await platform.close()
      await reply.catch(() => console.log('done'))
      clearInterval(alive)
    `
    const args = ['--import', 'tsx', '--input-type=module', '-e', script]
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 150_000 })
    expect(stdout.trim()).toBe('done')
  }, 180_000)
})

function take(platform: Simulator, trigger: string, from: string, condition: string | null) {
  const buy = (payment: 'succeeded' | 'failed') => platform.purchase({ business_uid: 'b1', payment })
  if (trigger === 'User purchases an app') {
    const { uid } = buy(condition === 'Payment succeeded' ? 'succeeded' : 'failed')
    return { uid, before: 0 }
  }
  const { uid } = buy(from === 'purchased' ? 'succeeded' : 'failed')
  // The purchase itself causes two deliveries.
  if (trigger === 'Payment confirmation received') platform.confirmPayment(uid)
  else if (trigger === 'Payment issue received') platform.paymentIssue(uid)
  else platform.cancel(uid)
  return { uid, before: 2 }
}
