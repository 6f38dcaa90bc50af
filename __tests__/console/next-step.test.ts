import { describe, expect, it } from '@jest/globals'
import { sampleDelivery } from '../../lib/testing/index.js'
import { createScene, OTHER_ITEM, OUR_ITEM } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'
import { until } from '../support/until.js'

describe('the next step in the console', () => {
  it('of a payer whose handler failed is the entry, also for support, and its replay mends it', async () => {
    const { platform, marketplace, support, operator } = await stage()
    let isBroken = true
    marketplace.onPurchaseChange(() => {
      if (isBroken) throw new Error('no room')
    })
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    const [entry] = await until('the change is dead', async () => {
      const dead = await marketplace.journal.list({ status: 'dead' })
      return dead.length > 0 && dead
    })
    const { body } = await support.read('business', { business_uid: 'business-1' })
    expect(body).toMatchObject({
      headline: 'May use the app',
      step: {
        next: expect.stringMatching(/^The purchase is fine; setting it up failed, .* operator/),
        action: 'replay',
        entryId: entry?.id,
      },
    })

    isBroken = false
    expect((await operator.act('replay', { entryId: entry?.id })).status).toBe(200)
    await until('it is handled', async () => {
      const after = await support.read('business', { business_uid: 'business-1' })
      return after.body.step.action === 'none'
    })
  })

  it('of a payer whose access no process has handled is not to sign in again', async () => {
    const { platform, marketplace, support } = await stage()
    let handled: (() => void) | undefined
    marketplace.onEntitlementChange(() => new Promise<void>((resolve) => (handled = resolve)))
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    await until('the purchase is read', () => marketplace.isEntitled('business-1'))
    const read = async () => (await support.read('business', { business_uid: 'business-1' })).body
    expect((await read()).step.next).toMatch(/^The purchase is fine; the app is still setting it up/)
    const { items } = (await support.read('history', { business_uid: 'business-1' })).body
    expect(items).toContainEqual(expect.objectContaining({ of: 'entitlement', outcome: 'waiting' }))
    await until('the handler runs', async () => handled !== undefined)
    handled?.()
    await until('it is handled', async () => (await read()).step.next.startsWith('The subscription gives'))
  })

  it('of a payer of an app without handlers is to sign in again', async () => {
    const { platform, marketplace, support } = await stage()
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    await until('the purchase is read', () => marketplace.isEntitled('business-1'))
    expect(await marketplace.journal.list({ kind: 'change', status: 'pending' })).toHaveLength(1)
    const { body } = await support.read('business', { business_uid: 'business-1' })
    expect(body.step.next).toMatch(/^The subscription gives access/)
  })

  it('of a payer whose handler failed is the entry, also behind many deliveries', async () => {
    const { platform, marketplace, support, deliver } = await stage()
    marketplace.onPurchaseChange(() => {
      throw new Error('no room')
    })
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    await until('it is dead', async () => (await marketplace.health()).counts?.dead === 1)
    for (let n = 0; n < 60; n++)
      await deliver(sampleDelivery('application/installed', { business_id: 'business-1' }))
    const { body } = await support.read('business', { business_uid: 'business-1' })
    expect(body.step).toMatchObject({ action: 'replay' })
  })

  it('asks nobody to pay while the platform limits the rate of reads', async () => {
    const { platform, marketplace, support } = await stage()
    platform.faults.add({ on: 'read', kind: 'status', status: 429, retryAfter: 3_600, times: 1 })
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    await until('reads are paused', async () =>
      (await marketplace.health()).problems.some(({ code }) => code === 'reads_throttled'),
    )
    platform.purchase({ business_uid: 'business-2', payment: 'succeeded' })
    await platform.settled()
    for (const business_uid of ['business-1', 'business-2']) {
      const { step } = (await support.read('business', { business_uid })).body
      expect(step.next).toMatch(/^The platform limits how often the app may read/)
      expect(step.customer).not.toMatch(/\bpay/)
    }
  })

  it('asks whether the app is installed if the platform refuses a token for the business, in plain words', async () => {
    const { platform, marketplace, support } = await stage()
    platform.faults.add({ on: 'token', kind: 'status', status: 403, body: { error: 'access_denied' } })
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    await until(
      'the token is refused',
      async () => (await marketplace.explain('business-1')).subscriptions[0]?.failure === 'token_refused',
    )
    const { body } = await support.read('business', { business_uid: 'business-1' })
    expect(body.step).toMatchObject({ next: expect.stringContaining('Does it have the app installed?') })
    const words = 'the platform gives the app no access to this business'
    expect(body.subscriptions).toMatchObject([{ failure: 'token_refused', trouble: words }])
    expect(body.decision.explanation).toContain(words)
    expect(body.decision.explanation).not.toContain('token_refused')
  })

  it('of a business that nobody has asked about is to read again, if the app can search for it', async () => {
    const scene = await createScene({ platform: { findSubscriptions: async () => [] } })
    mountConsole(scene.app, scene.marketplace)
    const support = consoleCaller(`${scene.url}/ops`, 'support')
    const before = await support.read('business', { business_uid: 'b1' })
    expect(before.body).toMatchObject({
      decision: { reason: 'unknown_business', search: { answered: false, pending: false } },
      step: { next: expect.stringMatching(/^Read again: the app searches the platform/), action: 'refresh' },
    })
    scene.platform.addBusiness('b1')
    const { body } = await support.act('refresh', { business_uid: 'b1' })
    expect(body.step.next).toMatch(/^The app has searched the platform/)
  })

  it('names the item that they have and the one that is ours', async () => {
    const { platform, marketplace, support } = await stage()
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded', purchasable_uid: OTHER_ITEM })
    await until('it is read', async () => (await marketplace.explain('business-1')).reason === 'other_app')
    const { body } = await support.read('business', { business_uid: 'business-1' })
    expect(body.subscriptions).toMatchObject([{ purchase_state: 'purchased', purchasable_uid: OTHER_ITEM }])
    expect(body.step.next).toContain(`They have the item ${OTHER_ITEM}, and need the item ${OUR_ITEM}. `)
  })

  it('says that subscriptions cannot be read, not that none is known', async () => {
    const { marketplace, app, url } = await createScene({ worker: false })
    const list = () => Promise.reject(new Error('no disk'))
    mountConsole(app, { ...marketplace, subscriptions: { ...marketplace.subscriptions, list } })
    const { body } = await consoleCaller(`${url}/ops`, 'support').read('business', { business_uid: 'b' })
    expect([body.subscriptions, body.after]).toEqual([null, null])
  })

  it('comes also if the journal cannot be read', async () => {
    const { marketplace, app, url } = await createScene({ worker: false })
    const list = () => Promise.reject(new Error('no disk'))
    mountConsole(app, { ...marketplace, journal: { ...marketplace.journal, list } })
    const { status, body } = await consoleCaller(`${url}/ops`, 'support').read('business', {
      business_uid: 'b',
    })
    expect([status, body.step.action]).toEqual([200, 'track'])
  })
})

async function stage() {
  const scene = await createScene({ handlers: { retryDelaysMs: [] } })
  mountConsole(scene.app, scene.marketplace)
  const url = `${scene.url}/ops`
  return { ...scene, support: consoleCaller(url, 'support'), operator: consoleCaller(url, 'operator') }
}
