import type { VirtualClock } from '../machine/virtual-clock.js'
import { type CallFault, createPlatform, type FaultOf, type Reply } from '../platform/platform.js'
import type { Random } from '../simulation/random.js'

export type { Subscription } from '../platform/platform.js'

export const OUR_ITEM = 'item-ours'
export const ADDRESSES = { baseUrl: 'https://platform.test', authUrl: 'https://auth.test' }
export const CLIENT = { clientId: 'client', clientSecret: 'the-right-secret' }

/** How the platform fails now. Mistakes of an operator are in the app's options instead. */
export type Outage = 'none' | '503' | '429' | 'html' | 'hang' | 'reset' | 'no records' | 'no tokens'
const OUTAGES: Partial<Record<Outage, CallFault | Reply>> = {
  '503': 'failing',
  '429': { status: 429, text: '{}', retryAfter: '30' },
  html: 'html',
  hang: 'hang',
  reset: 'network',
}

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

export type Platform = ReturnType<typeof createFailingPlatform>

/** The platform of a world of months, which fails as a whole for hours or days. */
export function createFailingPlatform(options: { time: VirtualClock; random: Random; manners: Manners }) {
  const { time, random, manners } = options
  /** What reads of a subscription get instead of the record, until it changes. */
  const hidden = new Map<string, 'nothing' | '403'>()
  /** The state that a read of the subscription last showed. */
  const shownStates = new Map<string, string>()
  const calls: Call[] = []
  /** Settings that the world changes while it runs. */
  const now = { outage: 'none' as Outage, latencyMs: 40, lagMs: 0, movingField: false }

  const faultOf: FaultOf = ({ kind, of, business }) => {
    const isRead = kind === 'read'
    if (now.outage === 'no tokens') return isRead ? 'revoked' : 'token refused'
    if (now.outage === 'no records') return isRead ? 'empty' : undefined
    const how = isRead && !platform.isRefused(business) && hidden.get(of)
    if (how) return how === '403' ? 'forbidden' : 'empty'
    return OUTAGES[now.outage]
  }

  const platform = createPlatform({
    ...{ clock: time, item: OUR_ITEM, clientSecret: CLIENT.clientSecret, manners, faultOf },
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
    set(uid: string, business: string, state: string) {
      hidden.delete(uid)
      return platform.set(uid, business, state)
    },
    hide(uid: string, how: 'nothing' | '403' | null) {
      if (how) hidden.set(uid, how)
      else hidden.delete(uid)
    },
    /** Whether the last read that showed the subscription showed it as paid. */
    isShownAsPaid: (uid: string) => shownStates.get(uid) === 'purchased',
    isPaying: (business: string) =>
      !platform.isRefused(business) &&
      platform.of(business).some(({ uid, state }) => state === 'purchased' && !hidden.has(uid)),
  }
}
