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

/** One element of a delivery: the parsed value, and the JSON text as it was sent, where that is known. */
export interface Envelope {
  value: unknown
  text: string | null
}

export interface Receipt {
  /** Its id in the journal. */
  id: string
  /** Why it was not recognised; null when it was. */
  issues: string[] | null
}

type Classified =
  | { recognised: true; name: string; data: unknown; subject: Subject }
  | { recognised: false; issues: string[] }

/** The item that a notice names: one of the app's own, another one, or none. */
export type NamedItem = 'own' | 'other' | 'none'

/** From envelopes to journal entries: classifies each, and decides what is to be read because of it. */
export function createIntake(options: {
  classify(envelope: unknown): Classified
  store: Pick<Store, 'accept'>
  /** The app's own items; when there are none, every subscription that a notice names counts as the app's. */
  purchasableUids: readonly string[]
  /** The app's unique names; when there are none, every install and uninstall counts as the app's. */
  codeNames: readonly string[]
  clock: Clock
  /**
   * Called for each event that was accepted: with the item of a notice while `purchasableUids` are set, and with which
   * delivery secret it came.
   */
  onAccepted?(event: NewEvent, item: NamedItem | undefined, secret: number): void
}) {
  const { classify, store, purchasableUids, codeNames, clock, onAccepted = () => {} } = options
  const otherItems = createOtherItems(purchasableUids, clock)

  function accept(envelopes: readonly Envelope[], secret = 0): Promise<Receipt[]> {
    const entries = envelopes.map(asEntry)
    return store.accept(entries.map(({ event }) => event)).then(() => {
      for (const { event, named } of entries) {
        if (named !== undefined) otherItems.note(named)
        onAccepted(event, named === undefined ? undefined : kindOf(named), secret)
      }
      return entries.map(({ event: { id, issues } }) => ({ id, issues: issues && [...issues] }))
    })
  }

  return { accept, problems: otherItems.problems }

  /** `named`: the item of a notice, null when it names none; undefined for everything that is not a notice. */
  function asEntry(envelope: Envelope): { event: NewEvent; named: string | null | undefined } {
    const id = newId(clock.now())
    const classified = classify(envelope.value)
    if (!classified.recognised)
      return { event: unrecognised(id, envelope, classified.issues), named: undefined }
    const { name, subject } = classified
    const isNotice = subject.kind === 'notice' && purchasableUids.length > 0
    return {
      event: recognised(id, envelope, name, subject),
      named: isNotice ? subject.purchasable_uid : undefined,
    }
  }

  function kindOf(item: string | null): NamedItem {
    return item === null ? 'none' : purchasableUids.includes(item) ? 'own' : 'other'
  }

  function unrecognised(id: string, { value, text }: Envelope, issues: string[]): NewEvent {
    return {
      id,
      kind: 'unrecognised',
      name: '',
      key: id,
      businessUid: null,
      subscriptionUid: null,
      payload: text ?? textOf(value) ?? '"nested too deeply to be kept"',
      issues,
      refresh: null,
    }
  }

  function recognised(id: string, { value, text }: Envelope, name: string, subject: Subject): NewEvent {
    const { subscription_uid: subscriptionUid, business_uid: businessUid } = subject
    return {
      id,
      kind: 'event',
      name,
      key: subscriptionUid ? subscriptionKey(subscriptionUid) : businessUid ? businessKey(businessUid) : id,
      businessUid,
      subscriptionUid,
      payload: text ?? textOf(value) ?? JSON.stringify(plainValuesOf(value)),
      issues: null,
      refresh: requestedBy(subject),
    }
  }

  /** The read that an event asks for. */
  function requestedBy(subject: Subject): RefreshRequest | null {
    const {
      kind,
      subscription_uid: subscriptionUid,
      business_uid: businessUid,
      purchasable_uid,
      app,
    } = subject
    if (kind === 'other' || !businessUid) return null
    if (kind === 'installed' || kind === 'uninstalled') {
      const isOurs = codeNames.length === 0 || app === null || codeNames.includes(app)
      const install = { installed: kind === 'installed', at: timeOf(subject.event_time) }
      return isOurs ? { kind: 'business', businessUid, install } : null
    }
    if (!subscriptionUid) return null
    const named = { subscriptionUid, businessUid }
    const subscription = { kind: 'subscription', ...named, purchasableUid: purchasable_uid } as const
    const item = kindOf(purchasable_uid)
    if (kind === 'notice') {
      // A notice is sent for the app's own subscriptions only: one for another item hints at a wrong setting.
      if (item === 'other' && purchasable_uid !== null && purchasableUids.length > 0)
        return { kind: 'other_item', ...named, purchasableUid: purchasable_uid }
      return subscription
    }
    // A record is sent for every subscription of the business. Without an item, reading it shows whose it is; but only
    // where the own items are known, or everything that the business has bought would count as the app's.
    const mayBeOurs = item === 'own' || (item === 'none' && purchasableUids.length > 0)
    return mayBeOurs ? subscription : { kind: 'known', ...named }
  }
}

/**
 * Watches whether all notices are for items that are not the app's: then `app.purchasableUid` is probably misspelt.
 * Once a notice for one of the app's own has come, a few for others are no reason to wake anybody.
 */
function createOtherItems(purchasableUids: readonly string[], clock: Clock) {
  /** Items named since the last notice for one of the app's own, oldest first. */
  const items = new Set<string>()
  let notices = 0
  let ownAt: number | undefined

  function areAllOthers(): boolean {
    if (ownAt === undefined) return notices > 0
    return notices >= OTHERS_IN_A_ROW && clock.monotonic() - ownAt >= DAY
  }

  return {
    note(item: string | null) {
      if (item === null) return
      if (purchasableUids.includes(item)) {
        items.clear()
        notices = 0
        ownAt = clock.monotonic()
        return
      }
      notices++
      if (items.size < MOST_ITEMS_NAMED) items.add(item)
    },

    problems(): Problems {
      if (!areAllOthers()) return { failing: [], degraded: [] }
      const [own, others] = [purchasableUids, [...items]].map((uids) =>
        uids.map((uid) => JSON.stringify(uid)).join(', '),
      )
      const count = notices === 1 ? 'the last notice was' : `the last ${notices} notices were`
      return {
        failing: [],
        degraded: [
          `${count} for another item (${others}) and none for app.purchasableUid (${own}): is app.purchasableUid right? Whoever bought another item is not let in`,
        ],
      }
    },
  }
}

const OTHERS_IN_A_ROW = 10
/** Whoever knows the delivery secret can make up items without end. */
const MOST_ITEMS_NAMED = 5

/** In ms since 1970; null without an offset, which might be off by hours, and for a zero date, which is not a time. */
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
function plainValuesOf(value: unknown): unknown {
  const { entity_name, event_type, data } = value as {
    entity_name: unknown
    event_type: unknown
    data: object
  }
  const plain = Object.entries(data ?? {}).filter(([, field]) => PLAIN.includes(typeof field))
  return { entity_name, event_type, data: Object.fromEntries(plain) }
}

const PLAIN: readonly string[] = ['string', 'number', 'boolean']
