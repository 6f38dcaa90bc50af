import type { Clock } from '../../base/clock.js'
import { deepFreeze } from '../../base/freeze.js'
import type { ProcessFacts } from './process-facts.js'
import type { StoredFacts } from './stored-facts.js'

/**
 * What the platform really does, where its interface document is silent: names, types, counts and times, and no value of a
 * delivery, a record or a reply. Of texts it has only those that name an event or a state, user agents and media types.
 */
export interface PlatformReport {
  /** When it was made: ISO 8601, UTC. */
  madeAt: string
  /** What is stored, from all processes on the database. */
  stored: StoredFacts
  /** What is not stored: what this process has seen since its start. */
  process: ProcessFacts
}

/** Returns `platformReport()`, whose result is frozen. */
export function createPlatformReport(options: {
  storedFacts(): Promise<StoredFacts>
  processFacts(): ProcessFacts
  clock: Pick<Clock, 'now'>
}) {
  const { storedFacts, processFacts, clock } = options
  return async function platformReport(): Promise<PlatformReport> {
    const stored = await storedFacts()
    return deepFreeze({ madeAt: new Date(clock.now()).toISOString(), stored, process: processFacts() })
  }
}
