import { type Clock, DAY } from '../../base/clock.js'
import { type HealthProblem, problemOf } from '../../base/health.js'

/** The number of last deliveries that are judged: an array counts once for each element. */
const JUDGED = 10
/** The problem begins when this many of them are not understood. */
const MOST = 6
/** The problem ends after this many in a row that are understood, so it does not come and go while some are. */
const ENOUGH = 3
/** Deliveries of other events are ordinary beside known ones, of which an app may get one a day. */
const OTHERS_ALONE_MS = DAY
/** A week without another one ends the problem: somebody with the delivery secret may have made up those of a rare event. */
const OLDEST_MS = 7 * DAY
/** The `entity_name` of the deliveries by which the doctor tests the address. */
const PROBE = 'marketplace-webhooks'
const ALL = ''

/**
 * Detects that deliveries are stored and not understood: no handler is called for them, and no subscription is read.
 *
 * - Most of the last ten deliveries of an event that the app knows, or of all, are not understood: the data has another
 *   shape, or there is no envelope with an `entity_name` and an `event_type`.
 * - Ten or more in a row are of other events, and none was of a known event for a day, or since the process started.
 */
export function createRefusedShapes(clock: Pick<Clock, 'monotonic'>) {
  /** Whether each of the last deliveries of an event was refused, from the first refused one on. So mostly it is empty. */
  const lastOf = new Map<string, boolean[]>()
  const bad = new Set<string>()
  /** When the last delivery of an event was refused. */
  const refusedAt = new Map<string, number>()
  /** The number of deliveries of other events since the last known one. */
  let others = 0
  let knownAt = Number.NEGATIVE_INFINITY

  function forgetOld() {
    for (const [event, at] of refusedAt) if (clock.monotonic() - at >= OLDEST_MS) forget(event)
  }

  function forget(event: string) {
    lastOf.delete(event)
    bad.delete(event)
    refusedAt.delete(event)
  }

  function add(event: string, isRefused: boolean) {
    if (isRefused) refusedAt.set(event, clock.monotonic())
    const before = lastOf.get(event)
    if (!before && !isRefused) return
    const last = [...(before ?? []), isRefused].slice(-JUDGED)
    lastOf.set(event, last)
    if (refusedOf(last) >= MOST) bad.add(event)
    if (last.length < ENOUGH || refusedOf(last.slice(-ENOUGH)) > 0) return
    forget(event)
  }

  return {
    /**
     * `named`: the names of an envelope as the platform sends it, if it has them. `isKnownEvent`: whether they are those of a
     * known event; there are few, so the map stays small.
     */
    note(named: EventNames | undefined, isKnownEvent: boolean, isRefused: boolean) {
      if (named && isKnownEvent) {
        others = 0
        knownAt = clock.monotonic()
        if (!isRefused && lastOf.size === 0) return
        add(`${named.entity_name} ${named.event_type}`, isRefused)
        add(ALL, isRefused)
      } else if (named) {
        if (named.entity_name !== PROBE) others++
      } else {
        add(ALL, true)
      }
    },

    problems(): HealthProblem[] {
      forgetOld()
      const areOthersAlone = others >= JUDGED && clock.monotonic() - knownAt >= OTHERS_ALONE_MS
      const events = [...bad].filter((event) => event !== ALL || bad.size === 1)
      const parts = [
        ...events.map((event) => {
          const last = lastOf.get(event) ?? []
          const ofEvent = event === ALL ? '' : ` of ${JSON.stringify(event)}`
          return `${refusedOf(last)} of the last ${last.length} deliveries${ofEvent} do not have the expected shape`
        }),
        ...(areOthersAlone
          ? [`none of the last ${others} deliveries is of an event that the app knows`]
          : []),
      ]
      return parts.length === 0 ? [] : [problemOf('shapes_refused', parts.join(', and '))]
    },
  }
}

function refusedOf(last: readonly boolean[]): number {
  return last.filter(Boolean).length
}

/** The names of an event. */
export interface EventNames {
  entity_name: string
  event_type: string
}

/** The names of an envelope as the platform sends it; undefined if it is none. */
export function namesIn(envelope: unknown): EventNames | undefined {
  const { entity_name, event_type } = (envelope ?? {}) as Record<string, unknown>
  return typeof entity_name === 'string' && typeof event_type === 'string'
    ? { entity_name, event_type }
    : undefined
}
