/** A simulated platform, and the settings of an app that uses it. */
import { createSimulator } from 'marketplace-webhooks/testing'

const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
export const secret = 'q8Zr3mW5xK1vT7yB9nL2cD4f'
export const platform = createSimulator({
  ...credentials,
  apps: [{ purchasableUid: 'my-item', codeName: 'my-app' }],
})
const { baseUrl, authUrl } = await platform.start()
/** By the names that docs/quickstart.md gives them. */
export const settings = {
  MARKETPLACE_CLIENT_ID: credentials.clientId,
  MARKETPLACE_CLIENT_SECRET: credentials.clientSecret,
  MARKETPLACE_PURCHASABLE_UID: 'my-item',
  MARKETPLACE_CODE_NAME: 'my-app',
  MARKETPLACE_BASE_URL: baseUrl,
  MARKETPLACE_AUTH_URL: authUrl,
  DELIVERY_SECRETS: secret,
}
