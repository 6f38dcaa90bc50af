import { describe, expect, it } from '@jest/globals'
import { MINUTE } from '../../../lib/base/clock.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { ADDRESSES, answering, purchaseOf } from '../../support/platform/answering.js'
import { createScene, OTHER_ITEM, OUR_ITEM, openMarketplace } from '../../support/scene.js'
import { until } from '../../support/until.js'

describe('the answer after a new announcement', () => {
  it('D20 stays unknown after the process that was verifying it has been closed', async () => {
    const { store } = await openStoreWithSql('sqlite::memory:')
    let reads = 0
    const marketplace = openMarketplace(ADDRESSES, {
      store: storeOption({ ...store, close: async () => {} }),
      closeTimeoutMs: 50,
      platform: answering(async (_uid, _business, signal) => {
        // The second read is under way when the process ends.
        if (++reads > 1) await new Promise((_resolve, reject) => signal?.addEventListener('abort', reject))
        return []
      }),
    })
    await store.accept([eventOf('s1', 'b1')])
    await until('the second process reads it', () => reads > 1)
    await marketplace.close()
    expect(await store.subscriptionsOf('b1')).toMatchObject([{ record: null, verifying: true }])
  })
})

describe('D22 an event that names another business', () => {
  it('does not take access away while the platform refuses tokens for its own business and does not show the record to the other', async () => {
    const { clock, jump } = jumpingClock()
    let isRefused = false
    let candidateReads = 0
    const marketplace = openMarketplace(ADDRESSES, {
      clock,
      platform: answering((uid, business) => {
        if (business === 'b1') return isRefused ? Response.json({}, { status: 403 }) : [purchaseOf(uid, 'b1')]
        candidateReads++
        return []
      }),
    })
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: 'b1' })
    await until('the subscription is read', () => marketplace.isEntitled('b1'))
    isRefused = true
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: 'b2' })
    await until('it was read for the other business several times over minutes', () => {
      jump(MINUTE)
      return candidateReads >= 4
    })
    expect(await marketplace.explain('b1')).toMatchObject({ entitled: true, reason: 'purchased' })
    expect(await marketplace.isEntitled('b2')).toBe(false)
  })
})

describe('J32 a business that bought another item', () => {
  it('is explained with the item that it bought and the configured one', async () => {
    const { platform, marketplace } = await createScene()
    platform.purchase({ business_uid: 'b1', payment: 'succeeded', purchasable_uid: OTHER_ITEM })
    await platform.settled()
    expect(await marketplace.explain('b1')).toMatchObject({
      entitled: false,
      known: true,
      reason: 'other_app',
      explanation: expect.stringContaining(
        `They have the item ${OTHER_ITEM}, and need the item ${OUR_ITEM}.`,
      ),
    })
  })
})

describe('J21 a number as an identifier', () => {
  it('is refused by every call that rejects if it is not a safe integer', async () => {
    const { marketplace } = await createScene()
    for (const odd of [72.5, Number.NaN, 2 ** 60]) {
      const refused = expect.objectContaining({ code: 'argument_invalid' })
      await expect(marketplace.businesses.refresh(odd)).rejects.toEqual(refused)
      await expect(
        marketplace.subscriptions.track({ subscriptionUid: odd, businessUid: 72 }),
      ).rejects.toEqual(refused)
      await expect(
        marketplace.subscriptions.track({ subscriptionUid: 72, businessUid: odd }),
      ).rejects.toEqual(refused)
    }
  })

  it('is accepted as its text when a token is fetched, and an invalid one is refused', async () => {
    const { marketplace, platform } = await createScene()
    platform.addBusiness('72')
    await expect(marketplace.fetchAppToken(72 as never)).resolves.toEqual(expect.anything())
    for (const odd of [72.5, Number.NaN, 2 ** 60])
      await expect(marketplace.fetchAppToken(odd as never)).rejects.toMatchObject({
        code: 'argument_invalid',
      })
  })
})
