import { createClassifier } from '../../../lib/events/classify.js'
import { createRegistry } from '../../../lib/events/registry.js'

export const classify = createClassifier(createRegistry())

export const RECORD = {
  uid: 's-1',
  display_name: 'the-app',
  purchasable_uid: 'p-1',
  buyer_uid: 'u-1',
  business_uid: 'b-1',
  purchase_currency: 'USD',
  purchase_price: '5.00',
  purchase_state: 'purchased',
  cancellation_date: null,
  expiration_date: null,
  updated_at: '2024-05-01T10:00:00.000Z',
  created_at: '2024-05-01T10:00:00.000Z',
  payment_type: 'monthly',
  bundled_from_subscription_uid: null,
  is_active: true,
}

export function purchase(event_type: string, data: unknown) {
  return { entity_name: 'purchasable_subscription', event_type, data }
}

export function subjectOf(envelope: unknown) {
  const result = classify(envelope)
  return result.recognised ? result.subject : result.issues
}
