import { describe, expect, it } from '@jest/globals'
import { createLook } from '../../../lib/operations/subscriptions/look.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import { createScene, OUR_ITEM } from '../../support/scene.js'

const NAMED = { subscriptionUid: 's1', businessUid: 'b1' }

describe('subscriptions.look', () => {
  it('returns the record that the platform shows, and stores nothing', async () => {
    const { platform, marketplace } = await createScene()
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.purchase({ business_uid: 'b1', subscription_uid: 's1', payment: 'succeeded' })
    expect(await marketplace.subscriptions.look(NAMED)).toMatchObject({
      record: { uid: 's1', business_uid: 'b1', purchasable_uid: OUR_ITEM, purchase_state: 'purchased' },
      failure: null,
    })
    expect(await marketplace.subscriptions.get('s1')).toBeUndefined()
    expect(await marketplace.businesses.history('b1')).toEqual([])
  })

  it('works without a worker', async () => {
    const { marketplace, platform } = await createScene({ worker: false })
    platform.addBusiness('b1')
    expect(await marketplace.subscriptions.look(NAMED)).toEqual({
      record: null,
      failure: 'platform_record_missing',
    })
  })

  it.each<[ReadResult, string]>([
    [{ kind: 'missing' }, 'platform_record_missing'],
    [{ kind: 'throttled' }, 'platform_throttled'],
    [{ kind: 'token_refused' }, 'token_refused'],
    [{ kind: 'credentials_refused' }, 'app_credentials_refused'],
    [{ kind: 'outage', code: 'platform_timeout' }, 'platform_timeout'],
    [{ kind: 'refused', code: 'platform_record_mismatch' }, 'platform_record_mismatch'],
  ])('returns the code of the failure: %j', async (result, failure) => {
    const look = createLook(async () => result)
    expect(await look(NAMED)).toEqual({ record: null, failure })
  })

  it('refuses what is not an identifier', async () => {
    const { marketplace } = await createScene({ worker: false })
    for (const wrong of [{ ...NAMED, subscriptionUid: '' }, { ...NAMED, businessUid: {} }, undefined])
      await expect(marketplace.subscriptions.look(wrong as never)).rejects.toMatchObject({
        code: 'argument_invalid',
      })
  })
})
