import { type Clock, HOUR } from '../base/clock.js'
import { MarketplaceError } from '../base/errors.js'
import type { NewEvent, TurnedAway } from './port/store.js'

/** A long delivery is refused after this time: then its sender has half a second for the reply. */
export const MAX_WAIT_MS = 2_500
/** The most names of unrecognised deliveries that are counted apart. */
const MAX_NAMES = 20
const MAX_NAME_LENGTH = 80

/** Counts what there was no room for within the last hour; unrecognised deliveries by name. */
export function createTurnedAway(clock: Pick<Clock, 'monotonic'>) {
  let at = Number.NEGATIVE_INFINITY
  let refused = 0
  let deleted = 0
  const names = new Map<string, number>()

  function note() {
    if (clock.monotonic() - at > HOUR) {
      refused = 0
      deleted = 0
      names.clear()
    }
    at = clock.monotonic()
  }

  return {
    /** The error of a delivery that is refused. Anybody with the delivery secret can cause it, so the store is not broken. */
    refused(why: string) {
      note()
      refused++
      return new MarketplaceError('delivery_turned_away', `Cannot store the delivery: ${why}`)
    },
    /** Finished entries were deleted to make room. */
    deleted(count: number) {
      note()
      deleted += count
    },
    /** Unrecognised deliveries were only counted. */
    counted(events: readonly NewEvent[]) {
      note()
      for (const { payload } of events) {
        const found = nameIn(payload)
        const name = names.has(found) || names.size < MAX_NAMES ? found : 'others'
        names.set(name, (names.get(name) ?? 0) + 1)
      }
    },
    /** Null: nothing within the last hour. */
    lately: (): TurnedAway | null =>
      clock.monotonic() - at > HOUR ? null : { refused, deleted, counted: [...names] },
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
