import { createHash } from 'node:crypto'
import { type Clock, MINUTE } from '../../base/clock.js'
import { RECORD_FIELDS } from '../../base/record.js'
import { createSlices } from '../../base/waiting.js'
import { canonicalState, PURCHASE_STATES } from '../../entitlement/purchase-state.js'
import type { EventDefinitions } from '../../events/define-event.js'
import { createRepeats, DOCUMENTED_FIELDS } from '../../events/fields.js'
import { identifiersIn } from '../../events/fixture.js'
import { EVENTS } from '../../events/registry.js'
import type { JournalEntry, Store } from '../../store/port/store.js'
import { entryPages, subscriptionPages } from '../journal/pages.js'
import { createFieldCounts, type FieldFact } from './shapes.js'

/** What the database has of the platform, from the deliveries and reads of all processes. */
export interface StoredFacts {
  /** How many of the newest entries of the journal were examined: at most 10,000. */
  entries: number
  /** When the oldest of them was stored: ISO 8601, UTC. Null if there are none. */
  since: string | null
  /** The events that these have, by their names, and `unrecognised`. */
  events: StoredEvent[]
  /** The records of subscriptions as last read: at most 10,000, in the order of their uids. Identifiers are texts there. */
  records: {
    /** How many were examined. */
    count: number
    /** The fields of these records. */
    fields: FieldFact[]
  }
}

/** What is stored of one event. */
interface StoredEvent {
  /** The registration name, or `unrecognised`. */
  event: string
  /** How many entries there are. */
  deliveries: number
  /** Deliveries that came within a minute after the same one. They may be two changes, or one that was sent twice. */
  repeats: {
    /** Those with the same name and the same business, subscription and app. */
    sameIdentifiers: number
    /** Those with the same payload. */
    samePayload: number
  }
  /**
   * How long after the event a read showed a change of its subscription, if within 15 minutes; null if none did. Reads that
   * showed the old record are in it. Of events that came again within a minute, it is the time since the first one.
   */
  untilRead: {
    /** How many of these events there are. */
    count: number
    /** The middle time. */
    medianMs: number
    /** The longest time. */
    longestMs: number
  } | null
  /** The fields of the envelopes. */
  fields: FieldFact[]
}

/** The most entries and the most subscriptions that a report examines: 10,000 entries take 0.7 s of CPU time, in slices. */
const MAX_EXAMINED = 10_000
/** The last verification of a read comes about 13 minutes after the event. */
const ANNOUNCED_MS = 15 * MINUTE
/** Entries of a page: each may have a payload of 1 MiB. */
const PAGE = 100

/** Returns `storedFacts()`, which examines the newest of what is stored, in pages. */
export function createStoredFacts(options: {
  store: Pick<Store, 'listEntries' | 'listSubscriptions'>
  registry: EventDefinitions
  /** Those of the app, which no name may repeat. */
  secrets: readonly string[]
  clock: Pick<Clock, 'monotonic'>
}) {
  const { store, registry, secrets, clock } = options
  const rows = Object.values(registry)
  const words = {
    entity_name: (word: string) => rows.some(({ entity_name }) => entity_name === word),
    event_type: (word: string) => rows.some(({ event_type }) => event_type === word),
    'data.purchase_state': isKnownState,
  }

  return async function storedFacts(): Promise<StoredFacts> {
    const events = createEventFacts((event) =>
      createFieldCounts({ isDocumented: (path) => isDocumented(event, path), words }),
    )
    const identifiers = new Set<string>()
    const noteIdentifiers = (...uids: (string | null)[]) => {
      for (const uid of uids) if (uid !== null) identifiers.add(uid)
    }
    await each(entryPages(store, {}, PAGE), (stored) => {
      // A copy has the payload as a value. That of `stored` is parsed anew each time that it is read.
      const entry = { ...stored }
      noteIdentifiers(entry.businessUid, entry.subscriptionUid, ...identifiersIn(entry.payload))
      events.add(entry)
    })

    const fields = createFieldCounts({
      isDocumented: (path) => Object.hasOwn(RECORD_FIELDS, path),
      words: { purchase_state: isKnownState },
    })
    let count = 0
    await each(subscriptionPages(store, {}, PAGE), ({ subscriptionUid, businessUid, record }) => {
      noteIdentifiers(subscriptionUid, businessUid, ...identifiersIn({ data: record }))
      if (record === null) return
      fields.add(record)
      count++
    })
    const isHidden = createRepeats(identifiers, secrets)
    return { ...events.facts(isHidden), records: { count, fields: fields.facts(isHidden) } }
  }

  /** Examines the first rows, in slices: one with a long payload takes a millisecond. */
  async function each<Row>(pages: AsyncIterable<readonly Row[]>, examine: (row: Row) => void) {
    const slices = createSlices(clock)
    let examined = 0
    for await (const page of pages) {
      for (const row of page) {
        examine(row)
        await slices.yieldIfOver()
      }
      examined += page.length
      if (examined >= MAX_EXAMINED) return
    }
  }
}

/** The facts of the events, of entries that are added from the newest to the oldest. */
function createEventFacts(countFields: (event: string) => ReturnType<typeof createFieldCounts>) {
  const events = new Map<string, ReturnType<typeof startFor>>()
  /** For each content, when the delivery after the present one had it. */
  const nextAt = new Map<string, number>()
  /** For each subscription its next change after the present entry, and the lags of the events that announced it. */
  const nextChange = new Map<string | null, { at: number; lags: Map<string, { ms: number }> }>()
  let entries = 0
  let since: string | null = null

  function startFor(event: string) {
    return {
      deliveries: 0,
      repeats: { sameIdentifiers: 0, samePayload: 0 },
      lags: [] as { ms: number }[],
      fields: countFields(event),
    }
  }

  function repeats(content: string, at: number): number {
    const next = nextAt.get(content) ?? Number.POSITIVE_INFINITY
    nextAt.set(content, at)
    return next - at <= MINUTE ? 1 : 0
  }

  return {
    add(entry: JournalEntry) {
      const { kind, name, subscriptionUid, payload, receivedAt } = entry
      const at = Date.parse(receivedAt)
      entries++
      since = receivedAt
      if (kind === 'change' && (payload as { cause?: unknown }).cause === 'event')
        nextChange.set(subscriptionUid, { at, lags: new Map() })
      if (kind === 'event' || kind === 'unrecognised') {
        const event = kind === 'event' ? name : UNRECOGNISED
        const facts = events.get(event) ?? startFor(event)
        events.set(event, facts)
        facts.deliveries++
        facts.fields.add(payload)
        facts.repeats.samePayload += repeats(`payload ${hashOf(payload)}`, at)
        if (kind === 'event') {
          facts.repeats.sameIdentifiers += repeats(`identifiers ${identifiersOf(entry)}`, at)
          const change = nextChange.get(subscriptionUid)
          const ms = Math.max(0, (change?.at ?? 0) - at)
          const lag = change?.lags.get(event)
          // The platform may show late what it says at once, so the first of several is the event of the change.
          if (lag && ms - lag.ms <= MINUTE) lag.ms = ms
          else if (change && !lag && ms <= ANNOUNCED_MS) {
            const first = { ms }
            change.lags.set(event, first)
            facts.lags.push(first)
          }
        }
      }
    },

    facts: (isHidden: (text: string) => boolean) => ({
      entries,
      since,
      events: [...events]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([event, { deliveries, repeats, lags, fields }]) => ({
          ...{
            event,
            deliveries,
            repeats,
            untilRead: summaryOf(lags.map(({ ms }) => ms)),
            fields: fields.facts(isHidden),
          },
        })),
    }),
  }
}

const UNRECOGNISED = 'unrecognised'

function isKnownState(word: string): boolean {
  return Object.hasOwn(PURCHASE_STATES, canonicalState(word))
}

function isDocumented(event: string, path: string): boolean | null {
  if (!Object.hasOwn(EVENTS, event)) return null
  const fields = DOCUMENTED_FIELDS[event as keyof typeof EVENTS].map((field) => `data.${field}`)
  return ['entity_name', 'event_type', 'data', ...fields].includes(path)
}

function identifiersOf({ name, businessUid, subscriptionUid, payload }: JournalEntry): string {
  const { data } = (payload ?? {}) as { data?: { app_id?: unknown; app_code_name?: unknown } }
  return JSON.stringify([name, businessUid, subscriptionUid, data?.app_id, data?.app_code_name])
}

function hashOf(payload: unknown): string {
  return createHash('sha256').update(JSON.stringify(payload)).digest('base64')
}

function summaryOf(all: readonly number[]) {
  if (all.length === 0) return null
  const sorted = [...all].sort((a, b) => a - b)
  return {
    count: sorted.length,
    medianMs: sorted[Math.floor(sorted.length / 2)] as number,
    longestMs: sorted.at(-1) as number,
  }
}
