import type { Marketplace } from '../index.js'

/** The public methods of a marketplace that the console calls. */
export type ConsoleMarketplace = Pick<
  Marketplace,
  | 'explain'
  | 'refresh'
  | 'track'
  | 'history'
  | 'subscriptions'
  | 'journal'
  | 'exportData'
  | 'erase'
  | 'webhooks'
  | 'health'
  | 'readiness'
  | 'targetUrl'
>
