import { type Clock, DAY } from '../clock.js'
import type { Subject } from '../events/subject.js'
import type { Problems } from '../health.js'
import { newId } from '../ids.js'
import {
  businessKey,
  type NewEvent,
  type RefreshRequest,
  type Store,
  subscriptionKey,
} from '../store/store.js'

/** One element of a delivery: the parsed value, and its JSON text where the sender's own bytes are at hand. */
export interface Envelope {
  value: unknown
  text: string | null
}

export interface Receipt {
  /** Under which the journal keeps it. */
  id: string
  /** Why it was not recognised; null when it was. */
  issues: string[] | null
}

type Classified =
  | { recognised: true; name: string; data: unknown; subject: Subject }
  | { recognised: false; issues: string[] }

/** From envelopes to kept events: classifies each, and says what of it is to be read. */
export function createIntake(options: {
  classify(envelope: unknown): Classified
  store: Pick<Store, 'accept'>
  /** The app's own items; empty when not told: then an event's word is taken for whose subscription it is. */
  purchasableUids: readonly string[]
  /** The app's unique names; empty when not told: then every install or uninstall may be the app's. */
  codeNames: readonly string[]
  clock: Clock
  onAccepted?(event: NewEvent): void
}) {
  const { classify, store, purchasableUids, codeNames, clock, onAccepted = () => {} } = options

  async function accept(envelopes: readonly Envelope[]): Promise<Receipt[]> {
    const events = envelopes.map(asEvent)
    await store.accept(events)
    for (const event of events) onAccepted(event)
    return events.map(({ id, issues }) => ({ id, issues: issues && [...issues] }))
  }

  return { accept, problems: (): Problems => ({ failing: [], degraded: [] }) }

  function asEvent({ value, text }: Envelope): NewEvent {
    const id = newId(clock.now())
    const classified = classify(value)
    if (!classified.recognised) {
      return {
        id,
        kind: 'unrecognised',
        name: '',
        key: id,
        businessUid: null,
        subscriptionUid: null,
        payload: text ?? textOf(value) ?? '"nested too deeply to be kept"',
        issues: classified.issues,
        wanted: null,
      }
    }
    const { name, subject } = classified
    const { subscription_uid: subscriptionUid, business_uid: businessUid } = subject
    return {
      id,
      kind: 'event',
      name,
      key: subscriptionUid ? subscriptionKey(subscriptionUid) : businessUid ? businessKey(businessUid) : id,
      businessUid,
      subscriptionUid,
      payload: text ?? textOf(value) ?? JSON.stringify(withoutDepth(value)),
      issues: null,
      wanted: wantedBy(subject),
    }
  }

  function wantedBy(subject: Subject): RefreshRequest | null {
    const { kind, subscription_uid, business_uid, purchasable_uid, app } = subject
    if (!business_uid) return null
    if (kind === 'installed' || kind === 'uninstalled') {
      const isOurs = codeNames.length === 0 || app === null || codeNames.includes(app)
      const install = { installed: kind === 'installed', at: timeOf(subject.event_time) }
      return isOurs ? { kind: 'business', businessUid: business_uid, install } : null
    }
    if (!subscription_uid) return null
    // A notice is sent for the app's own subscriptions, a record for every subscription of the business: a notice
    // is ours unless it says otherwise, a record only if it says so.
    const isOurs =
      kind === 'notice'
        ? purchasableUids.length === 0 ||
          purchasable_uid === null ||
          purchasableUids.includes(purchasable_uid)
        : kind === 'record' && purchasable_uid !== null && purchasableUids.includes(purchasable_uid)
    if (isOurs) {
      return {
        kind: 'subscription',
        subscriptionUid: subscription_uid,
        businessUid: business_uid,
        purchasableUid: purchasable_uid,
      }
    }
    return kind === 'other'
      ? null
      : { kind: 'known', subscriptionUid: subscription_uid, businessUid: business_uid }
  }
}

/** In ms since 1970; null without an offset, which might be off by hours, and for a zero date, which is no time. */
function timeOf(text: string | null): number | null {
  if (text === null || !/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/.test(text)) return null
  const at = Date.parse(text)
  return at > DAY ? at : null
}

/** JSON, or undefined for what is nested too deeply to be written (`JSON.stringify` ends at some thousand levels). */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/** An envelope with only the plain values of its data: enough to know what happened to whom. */
function withoutDepth(value: unknown): unknown {
  const { entity_name, event_type, data } = value as {
    entity_name: unknown
    event_type: unknown
    data: object
  }
  const plain = Object.entries(data ?? {}).filter(([, field]) => typeof field !== 'object')
  return { entity_name, event_type, data: Object.fromEntries(plain) }
}
