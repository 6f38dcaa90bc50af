import { createHmac } from 'node:crypto'
import type { Clock } from '../clock.js'
import type { Store, Tally, TallyKind } from '../store/store.js'
import { createDeliveryCounts } from './delivery-counts.js'

/** Which deliveries all processes on the store have received since it was created. Times are ISO 8601, UTC. */
export interface WebhookReport {
  /** Every event of the registry, including those that never arrived, and earlier defined events that did. */
  events: WebhookEventReport[]
  /** Deliveries by the secret of their address, configured secrets first. It shows whether an old registration delivers. */
  secrets: SecretReport[]
  /** Accepted deliveries that are not a known event. */
  unrecognised: Arrivals
  /** Notices for items other than `app.purchasableUid`. They are also counted as events. */
  otherItems: Arrivals
  /** Requests with a wrong secret. */
  secretWrong: Arrivals
}

/** How often something arrived, and when. */
export interface Arrivals {
  count: number
  firstAt: string | null
  lastAt: string | null
}

/** The deliveries of one event. */
export interface WebhookEventReport extends Arrivals {
  /** The registration name. */
  event: string
  secrets: SecretReport[]
}

/** The deliveries of one delivery secret. */
export interface SecretReport extends Arrivals {
  /** Its position in `deliverySecrets`: `first`, `second` …; `removed` when it is no longer configured. */
  secret: string
  configured: boolean
}

/**
 * Counts deliveries, by event and delivery secret, and reports the counts of all processes.
 *
 * The store has a secret only as a fingerprint under a key that is not in the store, so it does not help to guess it.
 */
export function createWebhooksCheck(options: {
  store: Pick<Store, 'addTallies' | 'tallies'>
  /** Registration names. */
  events: readonly string[]
  deliverySecrets: readonly string[]
  /** A secret that is not in the store. */
  key: string
  clock: Clock
  onError(error: unknown): void
}) {
  const { store, events, deliverySecrets, key, clock, onError } = options
  const fingerprints = deliverySecrets.map((secret) => fingerprintOf(secret, key))
  const counts = createDeliveryCounts({ store, clock, onError })

  async function check(): Promise<WebhookReport> {
    await counts.flush()
    const tallies = await store.tallies()
    const ofKind = (kind: TallyKind) => tallies.filter((tally) => tally.kind === kind)
    const ofEvents = ofKind('event')
    const names = new Set([...events, ...ofEvents.map(({ name }) => name).sort()])
    return {
      events: [...names].map((event) => {
        const ofEvent = ofEvents.filter(({ name }) => name === event)
        return { event, ...arrivals(ofEvent), secrets: bySecret(ofEvent, false) }
      }),
      secrets: bySecret([...ofEvents, ...ofKind('unrecognised')], true),
      unrecognised: arrivals(ofKind('unrecognised')),
      otherItems: arrivals(ofKind('other_item')),
      secretWrong: arrivals(ofKind('secret_wrong')),
    }
  }

  /** The configured secrets in their order, then all removed ones together. */
  function bySecret(tallies: readonly Tally[], withUnused: boolean): SecretReport[] {
    const configured = fingerprints.map((fingerprint, i) => ({
      secret: POSITIONS[i] ?? `number ${i + 1}`,
      configured: true,
      ...arrivals(tallies.filter(({ secret }) => secret === fingerprint)),
    }))
    const removed = {
      secret: 'removed',
      configured: false,
      ...arrivals(tallies.filter(({ secret }) => !fingerprints.includes(secret))),
    }
    return [...configured.filter(({ count }) => withUnused || count > 0), removed].filter(
      (each) => each.configured || each.count > 0,
    )
  }

  return {
    /** Counts a delivery, with the index of its secret in `deliverySecrets`. */
    note(kind: TallyKind, name = '', secretIndex?: number) {
      const secret = secretIndex === undefined ? '' : (fingerprints[secretIndex] ?? '')
      counts.add({ kind, name, secret })
    },
    check,
    close: counts.close,
  }
}

export type WebhooksCheck = ReturnType<typeof createWebhooksCheck>

const POSITIONS = ['first', 'second', 'third', 'fourth']

function arrivals(tallies: readonly Tally[]): Arrivals {
  if (tallies.length === 0) return { count: 0, firstAt: null, lastAt: null }
  return {
    count: tallies.reduce((sum, { count }) => sum + count, 0),
    firstAt: new Date(Math.min(...tallies.map(({ firstAt }) => firstAt))).toISOString(),
    lastAt: new Date(Math.max(...tallies.map(({ lastAt }) => lastAt))).toISOString(),
  }
}

/** A keyed hash of 32 bits: without the key nobody can check a guess. */
function fingerprintOf(secret: string, key: string): string {
  return createHmac('sha256', key).update(`delivery secret ${secret}`).digest('hex').slice(0, 8)
}
