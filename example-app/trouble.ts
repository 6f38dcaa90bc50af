import type { FaultHandle, Simulator } from '../lib/testing/index.js'
import type { Timeline } from './timeline.js'

/** Long enough that the app visibly waits for a read. After 2 s it answers that it does not know yet. */
const SLOW_MS = 1_200

/** Faults of the platform that a person switches on and off. */
export function createTrouble({ simulator, timeline }: { simulator: Simulator; timeline: Timeline }) {
  let outage: FaultHandle | undefined
  let slowness: FaultHandle | undefined

  return {
    isCutOff: () => outage !== undefined,
    cutOff() {
      if (outage) return
      timeline.begin({
        kind: 'stage',
        text: 'The platform is cut off: it delivers, but nobody can reach it',
        tone: 'bad',
      })
      outage = simulator.faults.add({ on: 'platform', kind: 'down' })
    },
    bringBack() {
      if (!outage) return
      timeline.begin({ kind: 'stage', text: 'The platform can be reached again', tone: 'good' })
      outage.remove()
      outage = undefined
    },
    isSlow: () => slowness !== undefined,
    slowDown() {
      if (slowness) return
      const text = `The platform takes ${SLOW_MS / 1_000} s for every answer`
      timeline.begin({ kind: 'stage', text, tone: 'bad' })
      slowness = simulator.faults.add({ on: 'platform', kind: 'slow', ms: SLOW_MS })
    },
    speedUp() {
      if (!slowness) return
      timeline.begin({ kind: 'stage', text: 'The platform answers at once again', tone: 'good' })
      slowness.remove()
      slowness = undefined
    },
  }
}
