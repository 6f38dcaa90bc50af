import type { VirtualClock } from '../machine/virtual-clock.js'
import { type CallFault, createPlatform, type FaultOf, type Shown } from '../platform/platform.js'
import type { Random } from '../world/random.js'

/** The faults of a call, with their weights. */
const TOKEN_FAULTS = {
  network: 3,
  failing: 2,
  html: 1,
  hang: 1,
  'hang in the body': 1,
  throttle: 1,
  'throttle without a time': 1,
  truncated: 2,
  'cut off': 1,
  'error with 200': 1,
  credentials: 0.3,
} satisfies Partial<Record<CallFault, number>>
const READ_FAULTS = {
  ...TOKEN_FAULTS,
  credentials: 0,
  unauthorized: 3,
  forbidden: 1,
  'not found': 1,
  older: 3,
  'another record first': 2,
} satisfies Partial<Record<CallFault, number>>

export interface PlatformProfile {
  /** The share of failing calls. */
  callFaults: number
  /**
   * Adds answers that are wrong without a fault of a call: a hidden record, a record of another business, a refused
   * token.
   */
  lies: boolean
  /** Several versions within one millisecond. */
  ties: boolean
  latenciesMs: readonly number[]
  lagsMs: readonly number[]
}

/** The platform of a world, whose calls fail at random until it is healed. */
export function createRandomPlatform(options: {
  time: VirtualClock
  random: Random
  profile: PlatformProfile
  onShown(shown: Shown): void
  trace(line: () => string): void
}) {
  const { time, random, profile, onShown, trace } = options
  let isWell = false
  const latency = () => (isWell ? 5 : random.pick(profile.latenciesMs))

  const faultOf: FaultOf = ({ kind }) => {
    if (isWell || !random.chance(profile.callFaults)) return undefined
    const isToken = kind === 'token'
    if (profile.lies && random.chance(0.2)) {
      return isToken ? 'token refused' : random.pick(['empty', 'empty', 'mismatch'])
    }
    return isToken ? random.choose(TOKEN_FAULTS) : random.choose(READ_FAULTS)
  }

  let hiddenUntil = 0
  const platform = createPlatform({
    ...{ clock: time, faultOf, onShown, hasTies: profile.ties },
    latencyMs: () => [latency(), latency()],
    lagMs() {
      const lagMs = isWell ? 0 : random.pick(profile.lagsMs)
      hiddenUntil = Math.max(hiddenUntil, time.now() + lagMs)
      return lagMs
    },
    spell: (state) => (state === 'canceled' && random.chance(0.5) ? 'cancelled' : state),
    fields: () => ({ purchase_price: 5 }),
    onCall: ({ kind, of }, fault) => trace(() => `call ${kind} ${of} ${fault ?? ''}`),
  })

  return {
    ...platform,
    set(...[uid, ...how]: Parameters<typeof platform.set>) {
      const subscription = platform.set(uid, ...how)
      trace(() => `platform ${uid} is ${subscription.state}`)
      return subscription
    },
    /** Ends all faults. A record that a lag hides becomes visible at its time. */
    heal() {
      isWell = true
    },
    /** Whether a lag still hides a record. */
    isHiding: () => hiddenUntil > time.now(),
  }
}
