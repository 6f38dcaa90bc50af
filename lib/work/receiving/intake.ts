import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../base/clock.js'
import { createDeadlines } from '../../base/deadlines.js'
import type { Envelope, Receipt } from '../../base/envelope.js'
import { newId } from '../../base/ids.js'
import { parseRecord, type SubscriptionRecord } from '../../base/record.js'
import { nextTurn } from '../../base/waiting.js'
import type { Subject } from '../../events/subject.js'
import { add, fits, NOTHING, type Size, subtract, WAITING, weightOf } from '../../store/accepting/sizes.js'
import { createTurnedAway, MAX_WAIT_MS } from '../../store/accepting/turned-away.js'
import {
  type Announcement,
  businessKey,
  type NewEvent,
  type Store,
  subscriptionKey,
} from '../../store/port/store.js'
import { createRefusedShapes, type EventNames, namesIn } from './refused-shapes.js'
import { createRequestedReads, type NamedItem } from './requested-reads.js'

type Classified =
  | { recognised: true; name: string; data: unknown; subject: Subject }
  | { recognised: false; isKnownEvent: boolean; issues: string[] }

/**
 * Classifies envelopes, and writes each that is recognised as a journal entry, with the read it requests. All others of a
 * delivery share one entry, so a delivery writes no more rows than it has known events, and one.
 *
 * Long arrays are classified in turns: a few elements of one in each turn of the event loop, then of the next one. So a
 * flood of them delays no short delivery, and delays a long one by their number, not by their length. Their elements wait as
 * text, and no value outlives the turn in which it is classified.
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
  const refusedShapes = createRefusedShapes(clock)

  /**
   * Empties the list, because whoever calls it, such as a span of telemetry, may keep the list until it resolves. `secretIndex`:
   * the place of the delivery secret in the list.
   */
  function accept(given: Envelope[], secretIndex = 0, headers: IncomingHttpHeaders = {}): Promise<Receipt[]> {
    const secret = secrets[secretIndex] ?? null
    const envelopes = given.splice(0)
    if (envelopes.length > AT_ONCE) {
      const beganAt = clock.monotonic()
      return inTurns(
        envelopes.map(({ text }) => text),
        secret,
      ).then((entries) => write(entries, headers, clock.monotonic() - beganAt))
    }
    return write(
      envelopes.map((envelope) => asEntry(envelope, secret)),
      headers,
    )
  }

  /** The long arrays that are being classified; the next turn is for the first. */
  const line: LongArray[] = []
  const inLine: Size = { rows: 0, bytes: 0 }
  let isRunning = false
  const deadlines = createDeadlines(MAX_WAIT_MS, clock)
  const turnedAway = createTurnedAway(clock)

  /** The entries of a long array, given as the texts of its elements, which is classified in turns with others. */
  function inTurns(texts: readonly string[], secret: string | null): Promise<Entry[]> {
    return new Promise((resolve, reject) => {
      const entries: Entry[] = []
      const size = { rows: texts.length, bytes: texts.reduce((sum, { length }) => sum + length, 0) }
      function leave() {
        forget()
        subtract(inLine, size)
      }
      const long: LongArray = {
        size,
        takeTurn() {
          try {
            for (const text of texts.slice(entries.length, entries.length + AT_ONCE))
              entries.push(asEntry({ text, value: JSON.parse(text) }, secret))
            if (entries.length < texts.length) return void line.push(long)
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
      add(inLine, size)
      while (line.length > MAX_IN_LINE || !fits(inLine, NOTHING, MOST_IN_LINE)) largestOf(line).refuse()
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
      for (const { names, event, item, isKnownEvent } of entries) {
        refusedShapes.note(names, isKnownEvent, event.kind === 'unrecognised')
        onAccepted(event, item === undefined ? undefined : reads.itemOf(item), headers)
      }
      return entries.map(({ event: { id }, issues }) => ({
        id,
        issues: unstored.includes(id) ? [...(issues ?? []), NOT_STORED] : issues,
      }))
    })
  }

  return {
    accept,
    /** The error of a delivery that is refused before it is accepted. */
    turnAway: turnedAway.refused,
    /** How many deliveries were refused within the last hour. */
    turnedAway: () => turnedAway.lately()?.refused ?? 0,
    problems: refusedShapes.problems,
  }

  function asEntry(envelope: Envelope, secret: string | null): Entry {
    const id = newId(clock.now())
    const classified = classify(envelope.value)
    if (!classified.recognised)
      return {
        names: namesIn(envelope.value),
        event: { ...unrecognised(id, envelope.text, classified.issues), secret },
        issues: classified.issues,
        item: undefined,
        isKnownEvent: classified.isKnownEvent,
      }
    const { subject } = classified
    const isNotice = subject.kind === 'notice' && purchasableUids.length > 0
    return {
      names: namesIn(envelope.value),
      event: { ...recognised(id, envelope.text, classified), secret },
      issues: null,
      item: isNotice ? subject.purchasable_uid : undefined,
      isKnownEvent: true,
    }
  }

  function unrecognised(id: string, payload: string, issues: string[]): NewEvent {
    return {
      id,
      kind: 'unrecognised',
      name: '',
      key: id,
      businessUid: null,
      subscriptionUid: null,
      payload,
      issues,
      refresh: null,
    }
  }

  function recognised(
    id: string,
    payload: string,
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
      payload,
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
  const payload = `[${rest.map(({ event }) => event.payload).join(',')}]`
  const issues = [...new Set(rest.flatMap((entry) => entry.issues ?? []))].slice(0, MAX_ISSUES)
  const event = { ...first.event, payload, issues }
  return entries.map((entry) => (entry.event.kind === 'unrecognised' ? { ...entry, event } : entry))
}

/** The elements of an array that are classified in one turn of the event loop. */
const AT_ONCE = 16
/** The most long arrays that are being classified, and their elements, as text. */
const MAX_IN_LINE = 500
const MOST_IN_LINE: Size = { rows: 64_000, bytes: WAITING.bytes }

const MAX_ISSUES = 10
/** The issue of an unrecognised delivery that was only counted. */
const NOT_STORED = 'not stored: enough unrecognised deliveries are stored'

/** A long array that is being classified. */
interface LongArray {
  size: Size
  /** Classifies its next elements. It then waits for its next turn, or has left the line. */
  takeTurn(): void
  refuse(): void
}

/** The last one of the largest. */
function largestOf(line: readonly LongArray[]): LongArray {
  return line.reduce((largest, each) => (weightOf(each.size) >= weightOf(largest.size) ? each : largest))
}

interface Entry {
  /** The names of its envelope, if it has them. */
  names: EventNames | undefined
  /** Several envelopes may share one. */
  event: NewEvent
  /** Why this envelope was not recognised; null when it was. */
  issues: readonly string[] | null
  /** The item of a notice, null if it names none; undefined if the event is not a notice. */
  item: string | null | undefined
  isKnownEvent: boolean
}

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
