import { requireIdentifier, type SubscriptionRecord } from '../../base/record.js'
import type { ReadResult } from '../../platform/read-result.js'
import type { TrackedSubscription } from './subscriptions.js'

/** What the platform shows of a subscription. */
export interface LookedUp {
  /** The record, if the platform shows one of this subscription and this business. */
  record: SubscriptionRecord | null
  /** Else why it does not: a code, as in `failure` of a stored subscription. */
  failure: string | null
}

/** Returns `subscriptions.look(named)`: reads a subscription with a token for its business, and stores nothing. */
export function createLook(
  read: (request: { subscriptionUid: string; businessUid: string }) => Promise<ReadResult>,
) {
  return async function look(named: TrackedSubscription): Promise<LookedUp> {
    const subscriptionUid = requireIdentifier(named?.subscriptionUid, 'subscriptionUid')
    const businessUid = requireIdentifier(named?.businessUid, 'businessUid')
    const result = await read({ subscriptionUid, businessUid })
    return result.kind === 'found'
      ? { record: result.record, failure: null }
      : { record: null, failure: failureOf(result) }
  }
}

function failureOf(result: Exclude<ReadResult, { kind: 'found' }>): string {
  switch (result.kind) {
    case 'missing':
      return 'platform_record_missing'
    case 'throttled':
      return 'platform_throttled'
    case 'token_refused':
      return 'token_refused'
    case 'credentials_refused':
      return 'app_credentials_refused'
    case 'outage':
    case 'refused':
      return result.code
  }
}
