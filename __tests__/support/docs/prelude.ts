/**
 * The set-up from earlier pages: an app beside the simulated platform, with a business that has bought. A block of code
 * that uses one of these names without declaring it gets it from here.
 */
export const PRELUDE = `
import express from 'express'
import { createMarketplace } from 'marketplace-webhooks'
import { consoleRouter } from 'marketplace-webhooks/console'
import { createSimulator } from 'marketplace-webhooks/testing'

const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
export const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
export const options = {
  app: { ...credentials, purchasableUid: 'my-item' },
  platform: await platform.start(),
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
  store: 'sqlite::memory:',
}
export { consoleRouter, express }
export const operators = new Set(['ada@example.com'])
export const marketplace = createMarketplace(options)
export const app = express()
/** These blocks run in one process, which ends by itself. */
export const endOnSigterm = (_server: import('node:http').Server) => {}
platform.purchase({ business_uid: 'business-1', payment: 'succeeded', subscription_uid: 'subscription-1' })
process.env.BUSINESS_UID = 'business-1'

/** A hand-written handler's own helpers, on the pages that show one. */
export declare const fetchToken: (business_uid: string) => Promise<string>
export declare const readSubscription: (token: string, uid: string) => Promise<{ purchase_state: string }>
export const open = new Map<string, boolean>()

/** The app's own functions, in the three lines at the top of the README. */
export declare const sendReports: import('express').RequestHandler
export declare const setUpOrClose: (business_uid: string, entitled: boolean) => Promise<void>
`

export const PRELUDE_NAMES = [
  'platform',
  'options',
  'marketplace',
  'app',
  'endOnSigterm',
  'express',
  'consoleRouter',
  'operators',
  'fetchToken',
  'readSubscription',
  'open',
  'sendReports',
  'setUpOrClose',
]

export const APP_ENV = {
  MARKETPLACE_CLIENT_ID: 'my-app',
  MARKETPLACE_CLIENT_SECRET: 'my-client-secret',
  MARKETPLACE_PURCHASABLE_UID: 'my-item',
  MARKETPLACE_CODE_NAME: 'my-app',
  DELIVERY_SECRETS: 'q8Zr3mW5xK1vT7yB9nL2cD4f,b7Xk2pR9wM4tZ6yH1nQ8sV3d',
  ADA_PASSWORD: 'not-a-real-password',
  SIGNATURE_KEY: 'not-a-real-key',
  CONSOLE_TOKEN_KEY: 'p4Xn8vR2kT6wZ1mQ9sL3bY7cD5fH0jGa',
  MARKETPLACE_BASE_URL: 'http://127.0.0.1:1',
  MARKETPLACE_AUTH_URL: 'http://127.0.0.1:1',
}

/** The names that the pages use. */
export const PACKAGES = [
  'express',
  'libsql',
  'pg',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/exporter-prometheus',
  '@opentelemetry/api',
  'jest',
  '@jest/globals',
]
