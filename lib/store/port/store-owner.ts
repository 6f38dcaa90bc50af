import { createHash } from 'node:crypto'

/** The app whose subscriptions a store holds. */
export interface StoreOwner {
  /** Identifies the app on its platform; contains no secret. */
  fingerprint: string
  /** The app for people, as configured. */
  label: string
  /** Whether to take the store over from another app. */
  adopt: boolean
}

/** The app as a store records it: a hash without a secret. All paths at one origin are the same platform. */
export function ownerOf(app: { clientId: string; baseUrl: string; adopt: boolean }): StoreOwner {
  const { clientId, adopt } = app
  const { origin } = new URL(app.baseUrl)
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([clientId, origin]))
    .digest('hex')
  return { fingerprint, label: `app.clientId ${clientId} at ${origin}`, adopt }
}
