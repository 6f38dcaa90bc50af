import { describe, expect, it } from '@jest/globals'
import { createScene } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'

describe('Track of the console', () => {
  it('adds a subscription that the platform shows for the business', async () => {
    const { platform, support } = await stage()
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const { status, body } = await support.act('track', { business_uid: 'b1', subscription_uid: uid })
    expect([status, body.decision.reason]).toEqual([200, 'purchased'])
    expect(body.outcome).toBe('Read from the platform: changed from never read to purchased.')
  })

  it('changes nothing if the platform does not know the subscription, and says so', async () => {
    const { marketplace, support } = await stage()
    const reply = await support.act('track', { business_uid: 'b1', subscription_uid: 'a-typo' })
    expect(reply).toMatchObject({ status: 422, body: { code: 'not_shown' } })
    expect(reply.body.detail).toMatch(/^The platform shows no such subscription to this business\./)
    expect(reply.body.detail).toMatch(/Nothing was changed\.$/)
    await expectNothingOf(marketplace, 'b1')
  })

  it('changes nothing if the subscription belongs to another business', async () => {
    const { platform, marketplace, support } = await stage()
    const { uid } = platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    const reply = await support.act('track', { business_uid: 'b1', subscription_uid: uid })
    expect([reply.status, reply.body.code]).toEqual([422, 'not_shown'])
    expect(reply.body.detail).toBe(
      'It belongs to the business b2, as last read: look at that one. Nothing was changed.',
    )
    await expectNothingOf(marketplace, 'b1')
    expect((await marketplace.subscriptions.get(uid))?.business_uid).toBe('b2')
  })

  it('waits for a subscription of another business that moves to this one when it is read', async () => {
    const { platform, marketplace, support } = await stage()
    const { uid } = platform.purchase({ business_uid: 'b2', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.addBusiness('b1')
    platform.set(uid, { business_uid: 'b1' })
    platform.faults.add({ on: 'read', kind: 'slow', ms: 300 })
    const { status, body } = await support.act('track', { business_uid: 'b1', subscription_uid: uid })
    expect([status, body.decision.reason]).toEqual([200, 'purchased'])
    expect(body.outcome).toBe('Read from the platform: changed from never read to purchased.')
  })

  it('says that a record is of another business', async () => {
    const { platform, support, marketplace } = await stage()
    platform.faults.add({ on: 'read', kind: 'status', status: 200, body: recordOf('s1', 'b2') })
    const { body } = await support.act('track', { business_uid: 'b1', subscription_uid: 's1' })
    expect(body.detail).toMatch(/^It belongs to another business\./)
    await expectNothingOf(marketplace, 'b1')
  })

  it.each([
    ['is down', { on: 'platform', kind: 'down' }, 'the platform cannot be reached'],
    [
      'is slow and fails',
      { on: 'read', kind: 'status', status: 503 },
      'the platform has an error of its own',
    ],
    [
      'refuses a token',
      { on: 'token', kind: 'status', status: 403, body: { error: 'access_denied' } },
      'the platform gives the app no access to this business',
    ],
  ] as const)('changes nothing while the platform %s, and says why', async (_how, fault, words) => {
    const { platform, marketplace, support } = await stage()
    platform.faults.add(fault)
    const { status, body } = await support.act('track', { business_uid: 'b1', subscription_uid: 's1' })
    expect(status).toBe(422)
    expect(body.detail).toBe(`The app could not look: ${words}. Nothing was changed.`)
    await expectNothingOf(marketplace, 'b1')
  })
})

type Stage = Awaited<ReturnType<typeof stage>>

async function expectNothingOf(marketplace: Stage['marketplace'], businessUid: string) {
  expect(await marketplace.explain(businessUid)).toMatchObject({ reason: 'unknown_business', known: true })
  expect(await marketplace.journal.list({ kind: 'action' })).toEqual([])
}

function recordOf(uid: string, business_uid: string) {
  const record = { uid, business_uid, purchasable_uid: 'p', purchase_state: 'purchased' }
  return { data: { subscriptions: [record] } }
}

async function stage() {
  const scene = await createScene()
  scene.platform.addBusiness('b1')
  mountConsole(scene.app, scene.marketplace)
  return { ...scene, support: consoleCaller(`${scene.url}/ops`, 'support') }
}
