import { MarketplaceError } from '../../base/errors.js'
import { requireIdentifier } from '../../base/record.js'
import type { Store } from '../../store/port/store.js'

/** A subscription and the business it is for. */
export interface TrackedSubscription {
  subscriptionUid: string | number
  businessUid: string | number
}

/** Requests the read of a subscription, and stores the subscription if it is new. */
export function createTrack({ store }: { store: Pick<Store, 'requestRefresh'> }) {
  return async function track(named: TrackedSubscription, options?: { announce?: boolean }): Promise<void> {
    const subscriptionUid = requireIdentifier(named?.subscriptionUid, 'subscriptionUid')
    const businessUid = requireIdentifier(named?.businessUid, 'businessUid')
    const { announce = true } = options ?? {}
    if (typeof announce !== 'boolean')
      throw new MarketplaceError('argument_invalid', 'Cannot track: announce must be true or false')
    const quiet = !announce
    await store.requestRefresh({
      kind: 'subscription',
      subscriptionUid,
      businessUid,
      purchasableUid: null,
      quiet,
    })
  }
}
