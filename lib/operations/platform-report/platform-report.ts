import type { Clock } from '../../base/clock.js'
import { deepFreeze } from '../../base/freeze.js'
import type { SeenFacts } from './seen-facts.js'
import type { StoredFacts } from './stored-facts.js'

/**
 * What the platform really does, where its interface document is silent: names, types, counts and times, and no value of a
 * delivery, a record or a reply. Of texts it has only those that name an event or a state, user agents and media types.
 */
export interface PlatformReport {
  /** When it was made: ISO 8601, UTC. */
  madeAt: string
  /** What the deliveries and the records in the database show. */
  stored: StoredFacts
  /** What all processes on the database have seen beside them. Other processes add theirs every ten minutes, and when they close. */
  seen: SeenFacts
}

/** Returns `platformReport()`, whose result is frozen. */
export function createPlatformReport(options: {
  storedFacts(): Promise<StoredFacts>
  seenFacts(): Promise<SeenFacts>
  clock: Pick<Clock, 'now'>
}) {
  const { storedFacts, seenFacts, clock } = options
  return async function platformReport(): Promise<PlatformReport> {
    const [stored, seen] = [await storedFacts(), await seenFacts()]
    return deepFreeze({ madeAt: new Date(clock.now()).toISOString(), stored, seen })
  }
}
