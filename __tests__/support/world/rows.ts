/** A row of the journal, as it is in the database. */
export interface EntryRow {
  seq: number
  id: string
  kind: 'event' | 'change' | 'entitlement' | 'unrecognised'
  name: string
  key: string
  business_uid: string | null
  subscription_uid: string | null
  payload: string
  status: 'pending' | 'done' | 'dead' | 'unhandled'
  attempts: number
  lapses: number
  error: string | null
  received_at: number
}

/** A row of a subscription, with the time of its record. */
export interface SubscriptionRow {
  subscription_uid: string
  business_uid: string
  state: string | null
  gone: string | null
  failure: string | null
  updated_at: string | null
}
