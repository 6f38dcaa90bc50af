import { describe, expect, it } from '@jest/globals'
import { sampleDelivery } from '../lib/testing/index.js'
import { buy, readsOf } from './support/purchases.js'
import { createScene } from './support/scene.js'
import { until } from './support/until.js'

const B1 = 'business-one'

describe('D17 an uninstall', () => {
  const uninstalled = sampleDelivery('application/uninstalled', { business_id: B1, app_code_name: 'ours' })

  it('alone takes no access away', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = await buy(platform, marketplace)
    const before = readsOf(platform, uid)
    await deliver(uninstalled)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(readsOf(platform, uid)).toBe(before + 1)
  })

  it('takes no access away alone, and neither does the refusal of a token', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace)
    platform.refuseTokens(B1)
    platform.faults.expireTokens()
    expect(await marketplace.refresh(B1)).toMatchObject({
      entitled: true,
      subscriptions: [{ failure: 'token_refused' }],
    })
  })

  it.each(['before', 'after'])('takes access away together with a token refused %s it', async (order) => {
    const { platform, marketplace, deliver } = await createScene()
    const changes: unknown[] = []
    marketplace.onPurchaseChange(({ from, to, entitled }) => changes.push({ from, to, entitled }))
    await buy(platform, marketplace)
    if (order === 'after') await deliver(uninstalled)
    platform.refuseTokens(B1)
    if (order === 'before') await deliver(uninstalled)
    else await marketplace.refresh(B1)
    // The read tries the token in memory first, finds that it has expired, and requests another one.
    await until('the business is revoked', async () => !(await marketplace.isEntitled(B1)))
    expect(await marketplace.explain(B1)).toMatchObject({ known: true, reason: 'revoked' })
    await until('the change is handled', () => changes.length === 2)
    expect(changes[1]).toEqual({ from: 'purchased', to: null, entitled: false })

    platform.refuseTokens(B1, false)
    await deliver(sampleDelivery('application/installed', { business_id: B1, app_code_name: 'ours' }))
    await until('the business has access again', () => marketplace.isEntitled(B1))
  })

  it.each([
    ['delivered out of order', '2024-05-01T10:00:00.000+02:00', '2024-05-01T08:59:59.000+01:00', false],
    ['followed by an install', '2024-05-01T10:00:00.000+02:00', '2024-05-01T09:00:01.000+01:00', true],
    ['at a zero date', '0001-01-01T00:00:00Z', '2024-05-01T09:00:00Z', false],
    ['followed by an install at a time that is none', '2024-05-01T10:00:00.000+02:00', 'soon', true],
    [
      'at a time without an offset, and an install before',
      '2024-05-01T10:00:00',
      '2024-05-01T09:00:00Z',
      false,
    ],
  ])('%s: the later of the two counts', async (_how, uninstall, install, stays) => {
    const { platform, marketplace, deliver } = await createScene()
    await buy(platform, marketplace)
    await deliver({ ...uninstalled, data: { ...uninstalled.data, event_time: uninstall } })
    const { data, ...wire } = sampleDelivery('application/installed', {
      business_id: B1,
      app_code_name: 'ours',
    })
    await deliver({ ...wire, data: { ...data, event_time: install } })
    platform.refuseTokens(B1)
    platform.faults.expireTokens()
    const { entitled, reason } = await marketplace.refresh(B1)
    expect([entitled, reason]).toEqual(stays ? [true, 'purchased'] : [false, 'revoked'])
  })

  it('of another app takes no access away, even if a token is refused', async () => {
    const { platform, marketplace, deliver } = await createScene()
    await buy(platform, marketplace)
    await deliver({ ...uninstalled, data: { ...uninstalled.data, app_code_name: 'other' } })
    platform.refuseTokens(B1)
    platform.faults.expireTokens()
    expect(await marketplace.refresh(B1)).toMatchObject({ entitled: true })
  })

  it('on the platform ends access if the cancellation is lost', async () => {
    const { platform, marketplace } = await createScene()
    platform.install(B1)
    await buy(platform, marketplace)
    platform.faults.add({ on: 'delivery', kind: 'drop', event: 'purchasable_subscription/update' })
    platform.uninstall(B1)
    await platform.settled()
    await until('the access has ended', async () => !(await marketplace.isEntitled(B1)))
  })
})
