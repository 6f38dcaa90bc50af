import type { Marketplace } from '../index.js'

/** The public methods of a marketplace that the console calls. */
export type ConsoleMarketplace = Pick<
  Marketplace,
  'explain' | 'subscriptions' | 'businesses' | 'journal' | 'webhooks' | 'health' | 'readiness'
>
