import type { Decision } from '../../../lib/entitlement/decide.js'

const AS_OF = '2026-03-02T10:00:00.000Z'

/** What the gate and the route for a front end get from the part that decides. */
export const ALLOWED: Decision = {
  business_uid: 'b-1',
  entitled: true,
  known: true,
  entitledItems: ['pro'],
  reason: 'purchased',
  explanation: 'A subscription gives access. Subscription 4711: purchased, confirmed 3 s ago.',
  accessUntil: '2026-04-01T00:00:00.000Z',
  asOf: AS_OF,
  stale: false,
  subscriptions: [],
}

export const DENIED: Decision = {
  ...ALLOWED,
  entitled: false,
  entitledItems: [],
  reason: 'not_purchased',
  explanation: 'The subscription is not purchased. Subscription 4711: suspended, confirmed 3 s ago.',
  accessUntil: null,
}

export const UNKNOWN: Decision = {
  ...DENIED,
  known: false,
  reason: 'not_read_yet',
  explanation: 'The platform has not answered yet.',
  asOf: null,
}
