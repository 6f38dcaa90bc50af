import { MarketplaceError } from '../../base/errors.js'
import { EVENTS } from '../../events/registry.js'
import type { Entry, Store, Subscription } from '../../store/port/store.js'
import type { PurchaseChange, StoredChange } from '../reading/purchase-change.js'
import type { Unit } from './units.js'

/** What was not recognised of a delivery, as `onUnrecognised` gets it. */
export interface UnrecognisedDelivery {
  /** The same at every try: the handler's idempotency key. */
  id: string
  /** As the platform sent it: an envelope or, if a delivery had several that were not recognised, an array of them. */
  envelope: unknown
  /** Each of them: the elements of `envelope` if it is an array, otherwise `envelope` alone. */
  envelopes: readonly unknown[]
  /** Why it was not recognised, one sentence each. They never contain its values. */
  issues: string[]
  /** ISO 8601, UTC. */
  receivedAt: string
}

/**
 * Turns units into the payloads of handlers. That of a change or an entitlement is a promise, because it has the answer for
 * the business: the one from the store, never one from memory. It rejects with `entitlement_unknown` while the answer is not
 * known, and with the store's own error when the store rejects.
 */
export function createPayloads(options: {
  classify(envelope: unknown): { recognised: true; name: string; data: unknown } | { recognised: false }
  store: Pick<Store, 'subscriptionsOf'>
  answerOf(subscriptions: readonly Subscription[]): { entitled: boolean; known: boolean; meaning: string }
  entitlementChangeOf(entries: readonly Entry[]): Promise<unknown>
}) {
  const { classify, store, answerOf, entitlementChangeOf } = options

  async function withAnswer(change: StoredChange): Promise<PurchaseChange> {
    const { entitled, known, meaning } = answerOf(await store.subscriptionsOf(change.business_uid))
    if (known) return { ...change, entitled }
    const message = `Cannot tell whether the business is entitled: ${meaning}`
    throw new MarketplaceError('entitlement_unknown', message)
  }

  return function payloadOf(unit: Unit): unknown {
    const [{ id, kind, name, payload, issues, receivedAt: receivedMs }] = unit
    if (kind === 'entitlement') return entitlementChangeOf(unit)
    const value: unknown = JSON.parse(payload)
    if (kind === 'change') return withAnswer(value as StoredChange)
    const receivedAt = new Date(receivedMs).toISOString()
    if (kind === 'unrecognised') {
      const envelopes: unknown[] = Array.isArray(value) ? value : [value]
      return {
        id,
        envelope: value,
        envelopes,
        issues: issues ?? [],
        receivedAt,
      } satisfies UnrecognisedDelivery
    }
    // Classified again, so that `data` is not stored twice. If the definitions have changed, the entry keeps its name.
    const { entity_name, event_type, data } = value as {
      entity_name: unknown
      event_type: unknown
      data: unknown
    }
    const classified = classify(value)
    const isUnderstood = classified.recognised && classified.name === name
    const understood = isUnderstood ? classified.data : data
    const event = { id, name, entity_name, event_type, data: understood, receivedAt }
    // A schema of the app may return objects that the app goes on using, or that cannot be frozen. `deepFreeze` leaves what is
    // inside a frozen object as it is.
    return isUnderstood && !Object.hasOwn(EVENTS, name) ? Object.freeze(event) : event
  }
}
