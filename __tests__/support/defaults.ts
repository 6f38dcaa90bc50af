import { MarketplaceError } from '../../lib/base/errors.js'
import { readOptions } from '../../lib/options.js'

const { bodyLimitBytes, reads, internals, clock } = readOptions({
  app: { clientId: 'my-app', clientSecret: 'test-client-secret' },
  platform: { baseUrl: 'https://api.platform.example', authUrl: 'https://auth.platform.example' },
  deliverySecrets: 'Hn5tRw8qLd3xVz6kYb1mPc4s',
})

/** The receiver's options of an app that sets none of them. */
export const RECEIVER_DEFAULTS = {
  bodyLimitBytes,
  bodyTimeoutMs: internals.bodyTimeoutMs,
  acceptTimeoutMs: internals.acceptTimeoutMs,
  turnAway: (why: string) => new MarketplaceError('delivery_turned_away', why),
  clock,
}
/** The platform client's options of an app that sets none of them. */
export const PLATFORM_DEFAULTS = {
  timeoutMs: internals.callTimeoutMs,
  concurrency: reads.concurrency,
  clock,
}
