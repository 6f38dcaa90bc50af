import { readOptions } from '../../lib/options.js'

const { platform, receiver, clock } = readOptions({
  app: { clientId: 'my-app', clientSecret: 'my-client-secret' },
  platform: { baseUrl: 'https://api.platform.example', authUrl: 'https://auth.platform.example' },
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
})

/** The options of a receiver with a default, as an app that sets none of them gets them. */
export const RECEIVER_DEFAULTS = { ...receiver, clock }
/** The same of the platform client. */
export const PLATFORM_DEFAULTS = {
  timeoutMs: platform.timeoutMs,
  concurrency: platform.concurrency,
  clock,
}
