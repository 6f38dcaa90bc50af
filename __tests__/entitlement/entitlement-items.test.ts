import { describe, expect, it } from '@jest/globals'
import { quietWarnings } from '../support/output.js'
import { createScene, openMarketplace } from '../support/scene.js'
import { notice, readsOf } from '../support/scenes/purchases.js'
import { B1 } from '../support/settings.js'

describe("subscriptions for another item than the app's", () => {
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

  describe('if the app does not configure its own item', () => {
    it('there is one warning, and none if it does', async () => {
      const emitWarning = quietWarnings()
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
      quietWarnings()
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
