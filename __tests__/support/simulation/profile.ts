import { DAY, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { Random } from '../world/random.js'
import type { PlatformProfile } from './platform.js'

/** How a process reaches the database. */
interface StoreProfile {
  latenciesMs: readonly number[]
  /** When a process gets the notifications of other processes' commits. */
  hints: 'at once' | 'late' | 'never'
}

/** The kind of world that a seed makes: its size, its pace, and its faults. */
export function profileOf(random: Random) {
  const isLossy = random.chance(0.5)
  const durationMs = random.pick([5 * SECOND, 30 * SECOND, 2 * MINUTE, 5 * MINUTE])
  const platform: PlatformProfile = {
    callFaults: random.pick([0, 0.05, 0.2, 0.4]),
    lies: isLossy && random.chance(0.5),
    ties: isLossy && random.chance(0.3),
    latenciesMs: random.pick([[0], [0, 5, 20], [5, 50, 500], [10, 300, 3_000]]),
    lagsMs: random.pick([[0], [0, 400, 3_000], [0, 3_000, 20_000]]),
  }
  const store: StoreProfile = {
    latenciesMs: random.pick([[0], [0], [0, 0, 0, 5], [0, 0, 50, 700, 2_000]]),
    hints: random.pick(['at once', 'late', 'never']),
  }
  return {
    /** Some deliveries are lost, and only the reconcile finds their changes. */
    isLossy,
    durationMs,
    platform,
    store,
    instances: random.pick([1, 2, 2, 2, 3, 3, 4]),
    businesses: random.pick([1, 2, 3]),
    steps: random.between(8, 30),
    skewMs: random.pick([0, 0, 3 * SECOND]),
    /** The probability that the platform changes a record that it has just shown. */
    races: random.pick([0, 0.05, 0.3]),
    disasters: random.pick([0, 1, 1, 3]),
    handlers: random.pick([1, 2, 2]),
    handlerFaults: random.pick([0, 0.1, 0.4]),
    handlesEvents: random.chance(0.3),
    reconcileEveryMs: isLossy ? 10 * MINUTE : DAY,
    leaseMs: random.pick([5 * SECOND, 30 * SECOND]),
    pollMs: random.pick([10 * SECOND, MINUTE]),
    waitMs: random.pick([0, SECOND]),
    // A short one makes reconciles frequent, and those would hide a missing reaction to events.
    maxStaleMs: random.pick(isLossy ? [MINUTE, 10 * MINUTE] : [MINUTE, 3 * DAY, 3 * DAY]),
    concurrency: random.pick([1, 4]),
  }
}

export type Profile = ReturnType<typeof profileOf>
