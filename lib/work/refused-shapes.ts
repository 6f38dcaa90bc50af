import { type HealthProblem, problemOf } from '../health.js'

const REFUSED_IN_A_ROW = 10

/**
 * Detects that an event that the app knows always arrives in a shape that its schema refuses: such a delivery is stored,
 * and no handler is called and no subscription read. One delivery that is recognised ends the problem.
 */
export function createRefusedShapes() {
  /** How many deliveries of an event were refused since the last one that was recognised. */
  const refused = new Map<string, number>()

  return {
    /** A delivery of a known event. There are few known events, so the map stays small. */
    note(envelope: unknown, isRefused: boolean) {
      if (!isRefused && refused.size === 0) return
      const { entity_name, event_type } = envelope as { entity_name: string; event_type: string }
      const event = `${entity_name} ${event_type}`
      if (isRefused) refused.set(event, (refused.get(event) ?? 0) + 1)
      else refused.delete(event)
    },

    problems(): HealthProblem[] {
      const events = [...refused].filter(([, count]) => count >= REFUSED_IN_A_ROW)
      if (events.length === 0) return []
      const each = events.map(([event, count]) => `the last ${count} deliveries of ${JSON.stringify(event)}`)
      return [problemOf('shapes_refused', `none of ${each.join(', nor of ')} has the expected shape`)]
    },
  }
}
