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
   * False: what the first good read finds makes no change for `onPurchaseChange`; what later ones find does. It counts
   * only where nobody else has asked for that read: an event that comes before it, or a `track` without this, ends it.
   * Default true.
   */
  announce?: boolean
}

/** A subscription and the business it is for. */
export interface TrackedSubscription {
  subscription_uid: string | number
  business_uid: string | number
}

/** Asks for the read of a subscription, and so learns of it. */
export function createTrack({ store }: { store: Pick<Store, 'requestRefresh'> }) {
  return async function track(named: TrackedSubscription, options?: TrackOptions): Promise<void> {
    const subscriptionUid = requireIdentifier(named?.subscription_uid, 'subscription_uid')
    const businessUid = requireIdentifier(named?.business_uid, 'business_uid')
    const { announce = true } = options ?? {}
    if (typeof announce !== 'boolean')
      throw new MarketplaceError('argument_invalid', 'Cannot track: expected true or false as announce')
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
