import { createHmac } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import type { Arrival, Retention, Store } from '../../store/port/store.js'

/** Which deliveries all processes on the store have accepted, as far as the journal reaches. Times are ISO 8601, UTC. */
export interface WebhookReport {
  /**
   * From when on the counts are complete: `retention.eventsMs` ago, or later if the journal has more than 100,000 entries
   * since then.
   */
  since: string
  /** Every event of the registry, including those that did not arrive, and earlier defined events that did. */
  events: WebhookEventReport[]
  /** Deliveries by the secret of their address, configured secrets first. It shows whether an old registration delivers. */
  secrets: SecretReport[]
  /** Accepted deliveries that are not a known event. */
  unrecognised: Arrivals
  /** Requests with a wrong secret, which are not stored: those to this process since its start. */
  secretWrong: Arrivals
}

/** How often something arrived, and when. */
interface Arrivals {
  /** How often it arrived. */
  count: number
  /** When it first arrived: ISO 8601, UTC; null if never. */
  firstAt: string | null
  /** When it last arrived: ISO 8601, UTC; null if never. */
  lastAt: string | null
}

/** The deliveries of one event. */
interface WebhookEventReport extends Arrivals {
  /** The registration name. */
  event: string
  /** The same by the delivery secret of the address. */
  secrets: SecretReport[]
}

/** The deliveries of one delivery secret. */
interface SecretReport extends Arrivals {
  /** Its position in `deliverySecrets`: `first`, `second` …; `removed` when it is no longer configured. */
  secret: string
  /** Whether `deliverySecrets` contains it now. */
  configured: boolean
}

/** The most entries of the journal that a report counts: on a busy machine with two cores 100,000 take a second, in 200 steps. */
const MAX_COUNTED = 100_000

/** Reports the deliveries in the journal, by event and delivery secret. */
export function createWebhooksCheck(options: {
  store: Pick<Store, 'arrivals'>
  /** Registration names. */
  events: readonly string[]
  /** The fingerprints of the delivery secrets, in their order. */
  fingerprints: readonly string[]
  retention: Pick<Retention, 'eventsMs'>
  clock: Clock
}) {
  const { store, events, fingerprints, retention, clock } = options
  const wrong = { count: 0, firstAt: 0, lastAt: 0 }

  async function check(): Promise<WebhookReport> {
    const { arrivals, completeSince } = await store.arrivals(MAX_COUNTED)
    const ofEvents = arrivals.filter(({ kind }) => kind === 'event')
    const names = new Set([...events, ...ofEvents.map(({ name }) => name).sort()])
    const keptSince = clock.now() - retention.eventsMs
    return {
      since: new Date(Math.max(completeSince ?? keptSince, keptSince)).toISOString(),
      events: [...names].map((event) => {
        const ofEvent = ofEvents.filter(({ name }) => name === event)
        return { event, ...sumOf(ofEvent), secrets: bySecret(ofEvent, false) }
      }),
      secrets: bySecret(arrivals, true),
      unrecognised: sumOf(arrivals.filter(({ kind }) => kind === 'unrecognised')),
      secretWrong: sumOf(wrong.count === 0 ? [] : [wrong]),
    }
  }

  /** The configured secrets in their order, then all removed ones together. */
  function bySecret(arrivals: readonly Arrival[], withUnused: boolean): SecretReport[] {
    const configured = fingerprints.map((fingerprint, i) => ({
      secret: POSITIONS[i] ?? `number ${i + 1}`,
      configured: true,
      ...sumOf(arrivals.filter(({ secret }) => secret === fingerprint)),
    }))
    const removed = {
      secret: 'removed',
      configured: false,
      // Entries of a former version have no fingerprint.
      ...sumOf(arrivals.filter(({ secret }) => secret !== null && !fingerprints.includes(secret))),
    }
    return [...configured.filter(({ count }) => withUnused || count > 0), removed].filter(
      (each) => each.configured || each.count > 0,
    )
  }

  return {
    noteWrongSecret() {
      wrong.lastAt = clock.now()
      if (wrong.count++ === 0) wrong.firstAt = wrong.lastAt
    },
    check,
  }
}

export type WebhooksCheck = ReturnType<typeof createWebhooksCheck>

/**
 * Fingerprints of delivery secrets, which the journal keeps: keyed hashes of 32 bits. `key` is a secret that is not in
 * the store, so that nobody can check a guess.
 */
export function fingerprintsOf(deliverySecrets: readonly string[], key: string): string[] {
  return deliverySecrets.map((secret) =>
    createHmac('sha256', key).update(`delivery secret ${secret}`).digest('hex').slice(0, 8),
  )
}

const POSITIONS = ['first', 'second', 'third', 'fourth']

function sumOf(arrivals: readonly Pick<Arrival, 'count' | 'firstAt' | 'lastAt'>[]): Arrivals {
  if (arrivals.length === 0) return { count: 0, firstAt: null, lastAt: null }
  return {
    count: arrivals.reduce((sum, { count }) => sum + count, 0),
    firstAt: new Date(Math.min(...arrivals.map(({ firstAt }) => firstAt))).toISOString(),
    lastAt: new Date(Math.max(...arrivals.map(({ lastAt }) => lastAt))).toISOString(),
  }
}
