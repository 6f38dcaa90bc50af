import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../base/clock.js'
import { createDeadlines } from '../../base/deadlines.js'
import type { Envelope, Receipt } from '../../base/envelope.js'
import { newId } from '../../base/ids.js'
import { parseRecord, type SubscriptionRecord } from '../../base/record.js'
import { nextTurn } from '../../base/waiting.js'
import type { Subject } from '../../events/subject.js'
import { createTurnedAway, MAX_WAIT_MS } from '../../store/accepting/turned-away.js'
import {
  type Announcement,
  businessKey,
  type NewEvent,
  type Store,
  subscriptionKey,
} from '../../store/port/store.js'
import { createOtherItems } from './other-items.js'
import { createRefusedShapes } from './refused-shapes.js'
import { createRequestedReads, type NamedItem } from './requested-reads.js'

type Classified =
  | { recognised: true; name: string; data: unknown; subject: Subject }
  | { recognised: false; isKnownEvent: boolean; issues: string[] }

/**
 * Classifies envelopes, and writes each that is recognised as a journal entry, with the read it requests. All others of a
 * delivery share one entry, so a delivery writes no more rows than it has known events, and one.
 *
 * Long arrays are classified in turns: a few elements of one in each turn of the event loop, then of the next one. So a
 * flood of them delays no short delivery, and delays a long one by their number, not by their length.
 */
export function createIntake(options: {
  classify(envelope: unknown): Classified
  store: Pick<Store, 'accept'>
  /** The app's own items. When empty, every subscription named by a notice counts as the app's. */
  purchasableUids: readonly string[]
  /** The app's unique names. When empty, every install and uninstall counts as the app's. */
  codeNames: readonly string[]
  /** Whether an install searches for subscriptions of its business. */
  searches?: boolean
  /** Whether the app may be used by this record; undefined if the app's own rule cannot decide. */
  isAccess(record: SubscriptionRecord): boolean | undefined
  clock: Clock
  /** The fingerprint of each delivery secret, by its index. */
  secrets?: readonly string[]
  /**
   * Called for each envelope of an accepted delivery, with its event (several may share one, which may be only counted),
   * with the item of a notice if `purchasableUids` are set, and with the headers of the delivery.
   */
  onAccepted?(event: NewEvent, item: NamedItem | undefined, headers: IncomingHttpHeaders): void
}) {
  const { classify, store, purchasableUids, codeNames, isAccess, clock } = options
  const { searches = false, secrets = [], onAccepted = () => {} } = options
  const reads = createRequestedReads({ purchasableUids, codeNames, searches })
  const otherItems = createOtherItems(purchasableUids, clock)
  const refusedShapes = createRefusedShapes(clock)

  /** `secretIndex`: the place of the delivery secret in the list. */
  function accept(
    envelopes: readonly Envelope[],
    secretIndex = 0,
    headers: IncomingHttpHeaders = {},
  ): Promise<Receipt[]> {
    const secret = secrets[secretIndex] ?? null
    if (envelopes.length > AT_ONCE) {
      const beganAt = clock.monotonic()
      return inTurns(envelopes, secret).then((entries) =>
        write(entries, headers, clock.monotonic() - beganAt),
      )
    }
    return write(
      envelopes.map((envelope) => asEntry(envelope, secret)),
      headers,
    )
  }

  /** The long arrays that are being classified; the next turn is for the first. */
  const line: LongArray[] = []
  let elements = 0
  let isRunning = false
  const deadlines = createDeadlines(MAX_WAIT_MS, clock)
  const turnedAway = createTurnedAway(clock)

  /** The entries of a long array, which is classified in turns with others. */
  function inTurns(envelopes: readonly Envelope[], secret: string | null): Promise<Entry[]> {
    return new Promise((resolve, reject) => {
      const entries: Entry[] = []
      function leave() {
        forget()
        elements -= envelopes.length
      }
      const long: LongArray = {
        length: envelopes.length,
        takeTurn() {
          try {
            for (const envelope of envelopes.slice(entries.length, entries.length + AT_ONCE))
              entries.push(asEntry(envelope, secret))
            if (entries.length < envelopes.length) return void line.push(long)
            resolve(entries)
          } catch (error) {
            reject(error)
          }
          leave()
        },
        refuse() {
          line.splice(line.indexOf(long), 1)
          leave()
          reject(turnedAway.refused('too many long arrays wait to be read'))
        },
      }
      const forget = deadlines.set(long.refuse)
      line.push(long)
      elements += envelopes.length
      while (line.length > MAX_IN_LINE || elements > MAX_ELEMENTS_IN_LINE) longestOf(line).refuse()
      if (!isRunning) void takeTurns()
    })
  }

  async function takeTurns() {
    isRunning = true
    while (line.length > 0) {
      await nextTurn()
      line.shift()?.takeTurn()
    }
    isRunning = false
  }

  /** `waitedMs`: how long a long array has waited for its turns. */
  function write(all: Entry[], headers: IncomingHttpHeaders, waitedMs = 0): Promise<Receipt[]> {
    const entries = sharingOne(all)
    return store.accept([...new Set(entries.map(({ event }) => event))], waitedMs).then((unstored) => {
      for (const { envelope, event, named, isKnownEvent } of entries) {
        if (named !== undefined) otherItems.note(named)
        refusedShapes.note(envelope.value, isKnownEvent, event.kind === 'unrecognised')
        onAccepted(event, named === undefined ? undefined : reads.itemOf(named), headers)
      }
      return entries.map(({ event: { id }, issues }) => ({
        id,
        issues: unstored.includes(id) ? [...(issues ?? []), NOT_STORED] : issues,
      }))
    })
  }

  return {
    accept,
    otherItems,
    /** How many long arrays were refused within the last hour. */
    turnedAway: () => turnedAway.lately()?.refused ?? 0,
    problems: () => [...otherItems.problems(), ...refusedShapes.problems()],
  }

  function asEntry(envelope: Envelope, secret: string | null): Entry {
    const id = newId(clock.now())
    const classified = classify(envelope.value)
    if (!classified.recognised)
      return {
        envelope,
        event: { ...unrecognised(id, envelope, classified.issues), secret },
        issues: classified.issues,
        named: undefined,
        isKnownEvent: classified.isKnownEvent,
      }
    const { subject } = classified
    const isNotice = subject.kind === 'notice' && purchasableUids.length > 0
    return {
      envelope,
      event: { ...recognised(id, envelope, classified), secret },
      issues: null,
      named: isNotice ? subject.purchasable_uid : undefined,
      isKnownEvent: true,
    }
  }

  function unrecognised(id: string, { value, text }: Envelope, issues: string[]): NewEvent {
    return {
      id,
      kind: 'unrecognised',
      name: '',
      key: id,
      businessUid: null,
      subscriptionUid: null,
      payload: text ?? textOf(value) ?? TOO_DEEP,
      issues,
      refresh: null,
    }
  }

  function recognised(
    id: string,
    { value, text }: Envelope,
    { name, data, subject }: Extract<Classified, { recognised: true }>,
  ): NewEvent {
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
      refresh: reads.requestedBy(subject, announcedBy(name, data, isAccess)),
    }
  }
}

/** Gives several envelopes that are not recognised one event of the store, whose payload is an array of them. */
function sharingOne(entries: Entry[]): Entry[] {
  const rest = entries.filter(({ event }) => event.kind === 'unrecognised')
  const [first] = rest
  if (first === undefined || rest.length === 1) return entries
  const payload = textOf(rest.map(({ envelope }) => envelope.value)) ?? TOO_DEEP
  const issues = [...new Set(rest.flatMap((entry) => entry.issues ?? []))].slice(0, MAX_ISSUES)
  const event = { ...first.event, payload, issues }
  return entries.map((entry) => (entry.event.kind === 'unrecognised' ? { ...entry, event } : entry))
}

/** The elements of an array that are classified in one turn of the event loop. */
const AT_ONCE = 16
/** The most long arrays that are being classified, and their elements: an array is some hundred KB in memory. */
const MAX_IN_LINE = 500
const MAX_ELEMENTS_IN_LINE = 64_000

/** The payload in place of a value that cannot be written as JSON. */
const TOO_DEEP = '"nested too deeply to be stored"'
const MAX_ISSUES = 10
/** The issue of an unrecognised delivery that was only counted. */
const NOT_STORED = 'not stored: enough unrecognised deliveries are stored'

/** A long array that is being classified. */
interface LongArray {
  length: number
  /** Classifies its next elements. It then waits for its next turn, or has left the line. */
  takeTurn(): void
  refuse(): void
}

/** The last one of the longest. */
function longestOf(line: readonly LongArray[]): LongArray {
  return line.reduce((longest, each) => (each.length >= longest.length ? each : longest))
}

interface Entry {
  envelope: Envelope
  /** Several envelopes may share one. */
  event: NewEvent
  /** Why this envelope was not recognised; null when it was. */
  issues: readonly string[] | null
  /** The item of a notice, null if it names none; undefined if the event is not a notice. */
  named: string | null | undefined
  isKnownEvent: boolean
}

/** JSON, or undefined for a value that is nested too deeply (`JSON.stringify` fails at some thousand levels). */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/** An envelope with only the plain values of its data: enough to identify the event and its subject. */
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

/**
 * What a purchase event says of its subscription; undefined for every other event. Anybody with the delivery secret can
 * send it, so it never decides alone: see `../reading/end-evidence.ts`.
 */
function announcedBy(
  name: string,
  data: unknown,
  isAccess: (record: SubscriptionRecord) => boolean | undefined,
): Announcement | undefined {
  // Data with a record is never this event.
  if (name === 'purchasable_subscription/update') return 'update'
  if (name !== 'purchasable_subscription/create' && name !== 'purchasable_subscription/updated')
    return undefined
  const record = parseRecord(data)
  const access = record && isAccess(record)
  if (access !== undefined) return access ? 'access' : 'end'
  return name === 'purchasable_subscription/create' ? undefined : 'update'
}
