/**
 * What the pages take as given by then: an app that stands beside the simulated platform, with a business that has
 * bought. A block of code that uses one of these names without declaring it gets it from here.
 */
export const PRELUDE = `
import express from 'express'
import { createMarketplace } from 'marketplace-webhooks'
import { createSimulator } from 'marketplace-webhooks/testing'

const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
export const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
export const options = {
  app: { ...credentials, purchasableUid: 'my-item' },
  platform: await platform.start(),
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
  store: 'sqlite::memory:',
}
export const marketplace = createMarketplace(options)
export const app = express()
platform.purchase({ business_uid: 'business-1', payment: 'succeeded', subscription_uid: 'subscription-1' })
process.env.BUSINESS_UID = 'business-1'

/** A hand-written handler's own helpers, on the pages that show one. */
export declare const fetchToken: (business_uid: string) => Promise<string>
export declare const readSubscription: (token: string, uid: string) => Promise<{ purchase_state: string }>
export const open = new Map<string, boolean>()
`

export const PRELUDE_NAMES = [
  'platform',
  'options',
  'marketplace',
  'app',
  'fetchToken',
  'readSubscription',
  'open',
]

export const APP_ENV = {
  CLIENT_ID: 'my-app',
  CLIENT_SECRET: 'my-client-secret',
  DELIVERY_SECRETS: 'q8Zr3mW5xK1vT7yB9nL2cD4f,b7Xk2pR9wM4tZ6yH1nQ8sV3d',
  PLATFORM_BASE_URL: 'http://127.0.0.1:1',
  PLATFORM_AUTH_URL: 'http://127.0.0.1:1',
}

/** What the pages use beside what an app has installed anyway. */
export const PACKAGES = [
  'pg',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/exporter-prometheus',
  '@opentelemetry/api',
]
