import type { Marketplace } from '../index.js'

/** What the console asks of a marketplace: public methods only. */
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
