import type { VirtualClock } from '../machine/virtual-clock.js'
import { createPlatform, type FaultOf, OUTAGES, type Reply } from '../platform/platform.js'
import { CLIENT } from '../settings.js'
import type { Random } from '../world/random.js'

export type { Subscription } from '../platform/platform.js'

/** How the platform fails now. Mistakes of an operator are in the app's options instead. */
export type Outage = 'none' | keyof typeof OUTAGES | 'no records' | 'no tokens'

/** The platform's answers to an app with a wrong secret, and to a request for an unknown address. */
export interface Manners {
  wrongSecret: string
  unknownAddress: Reply
  /** The answer to a read of a subscription that has moved to another business. */
  movedAway: 'its record' | 'nothing' | '403'
}

export interface Call {
  at: number
  kind: 'token' | 'read'
  /** The business of a token call, or the subscription of a read. */
  of: string
}

export type Platform = ReturnType<typeof createPlatformOfMonths>

/** The platform of a world of months, which fails as a whole for hours or days. */
export function createPlatformOfMonths(options: { time: VirtualClock; random: Random; manners: Manners }) {
  const { time, random, manners } = options
  /** The state that a read of the subscription last showed. */
  const shownStates = new Map<string, string>()
  const calls: Call[] = []
  /** Settings that the world changes while it runs. */
  const now = { outage: 'none' as Outage, latencyMs: 40, lagMs: 0, movingField: false }

  const faultOf: FaultOf = ({ kind }) => {
    const isRead = kind === 'read'
    if (now.outage === 'no tokens') return isRead ? 'revoked' : 'token refused'
    if (now.outage === 'no records') return isRead ? 'empty' : undefined
    return OUTAGES[now.outage as keyof typeof OUTAGES]
  }

  const platform = createPlatform({
    ...{ clock: time, clientSecret: CLIENT.clientSecret, manners, faultOf },
    latencyMs({ url }) {
      const { latencyMs } = now
      return [random.of(`${time.passed()} ${url}`).between(latencyMs / 2, latencyMs * 1.5), 0]
    },
    lagMs: () => now.lagMs,
    fields: () => ({ purchase_price: '9.99', ...(now.movingField ? { served_at: time.passed() } : {}) }),
    onCall: ({ kind, of }) => void calls.push({ at: time.passed(), kind, of }),
    onShown: ({ uid, state }) => void shownStates.set(uid, state),
  })

  return {
    ...platform,
    now,
    manners,
    calls,
    fetch: ((...args) => {
      time.lookOn()
      return time.follow(platform.fetch(...args))
    }) as typeof fetch,
    /** Whether the last read that showed the subscription showed it as paid. */
    isShownAsPaid: (uid: string) => shownStates.get(uid) === 'purchased',
  }
}
