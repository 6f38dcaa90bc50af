import { describe, expect, it, jest } from '@jest/globals'
import { onCleanUp } from '../support/clean-up.js'
import { createScene, OTHER_ITEM, OUR_ITEM, openMarketplace } from '../support/scene.js'
import { notice, readsOf } from '../support/scenes/purchases.js'

const B1 = 'business-one'

const B2 = 'business-two'

describe("subscriptions for another item than the app's", () => {
  it('of another app of the same owner change no answer', async () => {
    const { platform, marketplace } = await createScene()
    platform.purchase({ business_uid: B1, purchasable_uid: OTHER_ITEM, payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'other_app', known: true })
  })

  it("D16 are detected by the read if a notice names them as the app's", async () => {
    const { platform, marketplace, deliver } = await createScene()
    const main = platform.mainSubscription({ business_uid: B1 })
    const { status } = await deliver(notice({ subscription_uid: main.uid }))
    expect(status).toBe(200)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'other_app' })
  })

  it('D16 such as a purchased main subscription give no access, with or without an `updated` event', async () => {
    const { platform, marketplace, target } = await createScene()
    await platform.register('purchasable_subscription/updated', target)
    const main = platform.mainSubscription({ business_uid: B1 })
    platform.touch(main.uid)
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(readsOf(platform, main.uid)).toBe(0)
  })

  it('are told apart from those of an app with several items, each of which is enough', async () => {
    const { platform, marketplace } = await createScene({ app: { purchasableUid: [OUR_ITEM, OTHER_ITEM] } })
    platform.purchase({ business_uid: B1, purchasable_uid: OTHER_ITEM, payment: 'succeeded' })
    platform.purchase({ business_uid: B2, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await platform.settled()
    expect(await Promise.all([B1, B2].map((each) => marketplace.isEntitled(each)))).toEqual([true, true])
  })

  describe('if the app does not configure its own item', () => {
    it('there is one warning, and none if it does', async () => {
      const emitWarning = silenced('emitWarning')
      const { platform } = await createScene()
      expect(emitWarning).not.toHaveBeenCalled()
      openMarketplace(platform, { app: { purchasableUid: undefined } })
      expect(emitWarning.mock.calls).toEqual([
        [
          expect.stringContaining('app.purchasableUid is not set'),
          { type: 'MarketplaceWarning', code: 'purchasable_uid_missing' },
        ],
      ])
    })

    it("D16 a notice counts as the app's own, and a main subscription still gives no access", async () => {
      silenced('emitWarning')
      const { platform, marketplace, target } = await createScene({ app: { purchasableUid: undefined } })
      await platform.register('purchasable_subscription/updated', target)
      const main = platform.mainSubscription({ business_uid: B1 })
      platform.touch(main.uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
      expect(await marketplace.explain(B1)).toMatchObject({ reason: 'unknown_business' })

      const ours = platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(true)
      platform.cancel(ours.uid)
      platform.touch(main.uid)
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
    })
  })
})

function silenced(method: 'emitWarning') {
  const spy = jest.spyOn(process, method).mockImplementation(() => {})
  onCleanUp(() => spy.mockRestore())
  return spy
}
