import { createHmac } from 'node:crypto'
import { type Clock, SECOND } from '../clock.js'
import type { NewTally, Store, Tally, TallyKind } from '../store/store.js'
import { withDeadline } from '../waiting.js'

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

/** How much of something came in, and when. */
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

/** How long counts wait in memory. A killed process loses them. */
const FLUSH_MS = 5 * SECOND
const CLOSE_MS = SECOND

/**
 * Counts deliveries. Each costs an addition in memory, and the sums go to the store every few seconds, in one statement.
 * A killed process loses the sums it had not written: the numbers answer "does it arrive?", not "how much?".
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
  let counted = new Map<string, Counted>()
  let timer: unknown
  let flushing: Promise<void> = Promise.resolve()

  function note(kind: TallyKind, name = '', secretIndex?: number) {
    const secret = secretIndex === undefined ? '' : (fingerprints[secretIndex] ?? '')
    const at = clock.monotonic()
    const id = `${kind} ${name} ${secret}`
    const sum = counted.get(id)
    if (sum) {
      sum.count++
      sum.lastAt = at
    } else {
      counted.set(id, { kind, name, secret, count: 1, firstAt: at, lastAt: at })
    }
    timer ??= clock.setTimeout(() => flush().catch(onError), FLUSH_MS)
  }

  /** Writes the sums, one flush at a time. Sums that could not be written stay counted. */
  function flush(): Promise<void> {
    clock.clearTimeout(timer)
    timer = undefined
    flushing = flushing.catch(() => {}).then(write)
    return flushing
  }

  async function write() {
    if (counted.size === 0) return
    const sums = counted
    counted = new Map()
    const now = clock.monotonic()
    const rows = [...sums.values()].map(
      ({ firstAt, lastAt, ...sum }): NewTally => ({
        ...sum,
        firstAgoMs: Math.max(0, now - firstAt),
        lastAgoMs: Math.max(0, now - lastAt),
      }),
    )
    await store.addTallies(rows).catch((error) => {
      for (const [id, sum] of sums) {
        const later = counted.get(id)
        counted.set(id, later ? { ...later, count: sum.count + later.count, firstAt: sum.firstAt } : sum)
      }
      timer ??= clock.setTimeout(() => flush().catch(onError), FLUSH_MS)
      throw error
    })
  }

  async function check(): Promise<WebhookReport> {
    await flush()
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
    note,
    check,
    /** Writes the remaining sums, within CLOSE_MS: a store that hangs must not delay the close. */
    close: () =>
      withDeadline(
        flush(),
        CLOSE_MS,
        clock,
        () => new Error('the store did not write the counts of deliveries in time'),
      ).catch(onError),
  }
}

export type WebhooksCheck = ReturnType<typeof createWebhooksCheck>

interface Counted {
  kind: TallyKind
  name: string
  secret: string
  count: number
  /** By the monotonic clock. */
  firstAt: number
  lastAt: number
}

const POSITIONS = ['first', 'second', 'third', 'fourth']

function arrivals(tallies: readonly Tally[]): Arrivals {
  if (tallies.length === 0) return { count: 0, firstAt: null, lastAt: null }
  return {
    count: tallies.reduce((sum, { count }) => sum + count, 0),
    firstAt: new Date(Math.min(...tallies.map(({ firstAt }) => firstAt))).toISOString(),
    lastAt: new Date(Math.max(...tallies.map(({ lastAt }) => lastAt))).toISOString(),
  }
}

/** 32 bits under a key: without the key nobody can check a guess. */
function fingerprintOf(secret: string, key: string): string {
  return createHmac('sha256', key).update(`delivery secret ${secret}`).digest('hex').slice(0, 8)
}
