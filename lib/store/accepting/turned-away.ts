import { type Clock, HOUR, MINUTE } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import type { NewEvent, TurnedAway } from '../port/store.js'

/** A delivery that waits in lines is refused after this time, which leaves half a second for `verifyDelivery` and the reply. */
export const MAX_WAIT_MS = 2_500
/** The most names of unrecognised deliveries that are counted apart. */
const MAX_NAMES = 20
const MAX_NAME_LENGTH = 80
/** Counts end after an hour, so many at once. */
const PART_MS = 10 * MINUTE

/** What was counted from a time on. */
interface Counts {
  since: number
  refused: number
  deleted: number
  names: Map<string, number>
}

/** Counts what there was no room for within about the last hour; unrecognised deliveries by name. */
export function createTurnedAway(clock: Pick<Clock, 'monotonic'>) {
  /** Of ten minutes each, the newest last. */
  let parts: Counts[] = []

  function lately(): Counts[] {
    const now = clock.monotonic()
    parts = parts.filter(({ since }) => now - since < HOUR)
    return parts
  }

  function present(): Counts {
    const now = clock.monotonic()
    const newest = lately().at(-1)
    if (newest && now - newest.since < PART_MS) return newest
    const part = { since: now, refused: 0, deleted: 0, names: new Map<string, number>() }
    parts.push(part)
    return part
  }

  return {
    /** The error of a delivery that is refused. Anybody with the delivery secret can cause it, so the store is not broken. */
    refused(why: string) {
      present().refused++
      return new MarketplaceError('delivery_turned_away', `Cannot store the delivery: ${why}`)
    },
    /** Finished entries were deleted to make room. */
    deleted(count: number) {
      present().deleted += count
    },
    /** Unrecognised deliveries were only counted. */
    counted(events: readonly NewEvent[]) {
      const { names } = present()
      for (const { payload } of events) {
        const found = nameIn(payload)
        const name = names.has(found) || names.size < MAX_NAMES ? found : 'others'
        names.set(name, (names.get(name) ?? 0) + 1)
      }
    },
    /** Null: nothing within the last hour. */
    lately(): TurnedAway | null {
      const counts = lately()
      if (counts.length === 0) return null
      const names = new Map<string, number>()
      for (const part of counts)
        for (const [name, count] of part.names) names.set(name, (names.get(name) ?? 0) + count)
      const sumOf = (of: 'refused' | 'deleted') => counts.reduce((sum, part) => sum + part[of], 0)
      return { refused: sumOf('refused'), deleted: sumOf('deleted'), counted: [...names] }
    },
  }
}

/** The names of an envelope that is not recognised, or `without names`. */
function nameIn(payload: string): string {
  try {
    const { entity_name, event_type } = JSON.parse(payload) ?? {}
    if (typeof entity_name === 'string' && typeof event_type === 'string')
      return `${entity_name} ${event_type}`.slice(0, MAX_NAME_LENGTH)
  } catch {}
  return 'without names'
}
