/** An app on sale on the simulated platform. */
export interface SimulatedApp {
  /** Identifier of the purchased item. Default: drawn from the seed. */
  purchasableUid?: string
  /** The app's unique name in install events, default `app`. */
  codeName?: string
  /** Decimal amount with two decimals, default `'9.99'`. */
  price?: string
  /** Default `'USD'`. */
  currency?: string
}

/** A purchase to make. */
export interface Purchase {
  business_uid: string
  /** Which app, default the first one. */
  purchasable_uid?: string
  payment: 'succeeded' | 'failed'
  /** Default: drawn from the seed. */
  subscription_uid?: string
}

/** A main platform subscription to make. */
export interface MainSubscription {
  business_uid: string
  /** Default `purchased`. */
  purchase_state?: string
  subscription_uid?: string
}

export function withDefaults(app: SimulatedApp, newUid: () => string): Required<SimulatedApp> {
  return {
    purchasableUid: app.purchasableUid ?? newUid(),
    codeName: app.codeName ?? 'app',
    price: app.price ?? '9.99',
    currency: app.currency ?? 'USD',
  }
}
