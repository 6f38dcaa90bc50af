import { MarketplaceError } from '../errors.js'
import { requireIdentifier } from '../record.js'
import type { Store } from '../store/store.js'

/**
 * How `track` learns of a subscription.
 *
 * @example await marketplace.track({ subscription_uid, business_uid }, { announce: false })
 */
export interface TrackOptions {
  /**
   * False: the change that the first successful read finds does not reach `onPurchaseChange`; changes of later reads do.
   * An event before that read, or a `track` without this option, cancels it. Default true.
   */
  announce?: boolean
}

/** A subscription and the business it is for. */
export interface TrackedSubscription {
  subscription_uid: string | number
  business_uid: string | number
}

/** Requests the read of a subscription, and stores the subscription if it is new. */
export function createTrack({ store }: { store: Pick<Store, 'requestRefresh'> }) {
  return async function track(named: TrackedSubscription, options?: TrackOptions): Promise<void> {
    const subscriptionUid = requireIdentifier(named?.subscription_uid, 'subscription_uid')
    const businessUid = requireIdentifier(named?.business_uid, 'business_uid')
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
