import { createHash } from 'node:crypto'

/** The app whose subscriptions a store holds. */
export interface StoreOwner {
  /** The same for the same app on the same platform; holds no secret. */
  fingerprint: string
  /** The same for people, as it is configured. */
  label: string
  /** Take the store over from another app. */
  adopt: boolean
}

/** The app as a store remembers it: a hash without a secret. Another path at the same origin is the same platform. */
export function ownerOf(app: { clientId: string; baseUrl: string; adopt: boolean }): StoreOwner {
  const { clientId, adopt } = app
  const { origin } = new URL(app.baseUrl)
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([clientId, origin]))
    .digest('hex')
  return { fingerprint, label: `app.clientId ${clientId} at ${origin}`, adopt }
}
