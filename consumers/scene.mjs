/** What every app has beside its framework: a simulated platform, and the options of a marketplace that uses it. */
import { createSimulator } from 'marketplace-webhooks/testing'

const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
export const secret = 'q8Zr3mW5xK1vT7yB9nL2cD4f'
export const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
export const options = {
  app: { ...credentials, purchasableUid: 'my-item' },
  platform: await platform.start(),
  deliverySecrets: secret,
  store: 'sqlite::memory:',
}
