import type { Entry } from '../store/store.js'

/** A delivery that is no known event, as `onUnrecognised` gets it. */
export interface UnrecognisedDelivery {
  id: string
  /** As it came. */
  envelope: unknown
  /** Why it was not recognised, one sentence each; never its values. */
  issues: string[]
  /** ISO 8601, UTC. */
  receivedAt: string
}

/** From what the journal keeps to what handlers get. */
export function createPayloads(
  classify: (envelope: unknown) => { recognised: true; name: string; data: unknown } | { recognised: false },
) {
  return function payloadOf({ id, kind, name, payload, issues, receivedAt: receivedMs }: Entry): unknown {
    const value: unknown = JSON.parse(payload)
    if (kind === 'change') return value
    const receivedAt = new Date(receivedMs).toISOString()
    if (kind === 'unrecognised') return { id, envelope: value, issues: issues ?? [], receivedAt }
    // Classified again rather than kept twice. Under other definitions than those of its arrival it keeps its name.
    const { entity_name, event_type, data } = value as {
      entity_name: unknown
      event_type: unknown
      data: unknown
    }
    const classified = classify(value)
    const understood = classified.recognised && classified.name === name ? classified.data : data
    return { id, name, entity_name, event_type, data: understood, receivedAt }
  }
}
