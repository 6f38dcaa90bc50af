import type { Random } from '../simulation/random.js'
import { SECOND } from './durations.js'
import type { Time } from './time.js'

export const OUR_ITEM = 'item-ours'
export const ADDRESSES = { baseUrl: 'https://platform.test', authUrl: 'https://auth.test' }
export const CLIENT = { clientId: 'client', clientSecret: 'the-right-secret' }

export interface Subscription {
  uid: string
  business: string
  state: 'purchased' | 'suspended' | 'canceled'
  updatedAt: number
  /** The record that reads show until `visibleAt`; null if they show none. */
  before: { state: string; updatedAt: number } | null
  visibleAt: number
  /** What reads get instead of the record; null: the record. */
  hidden: 'nothing' | '403' | null
}

/** How the platform fails now. Mistakes of an operator are in the app's options instead. */
export type Outage = 'none' | '503' | '429' | 'html' | 'hang' | 'reset' | 'no records' | 'no tokens'
/** The platform's answers to an app with a wrong secret, and to a request for an unknown address. */
export interface Manners {
  wrongSecret: string
  unknownAddress: [status: number, text: string]
  /** The answer to a read of a subscription that has moved to another business. */
  movedAway: 'its record' | 'nothing' | '403'
}

export interface Call {
  at: number
  kind: 'token' | 'read'
  /** The business of a token call, or the subscription of a read. */
  of: string
}

export type Platform = ReturnType<typeof createPlatform>

/** The platform behind `platform.fetch`: records by subscription, the token endpoint and the read. */
export function createPlatform(options: { time: Time; random: Random; manners: Manners }) {
  const { time, random, manners } = options
  const subscriptions = new Map<string, Subscription>()
  const refusedUntil = new Map<string, number>()
  /** The state that a read of the subscription last showed. */
  const shownStates = new Map<string, string>()
  const calls: Call[] = []
  let tokens = 0
  /** Settings that the world changes while it runs. */
  const now = { outage: 'none' as Outage, latencyMs: 40, lagMs: 0, movingField: false }

  const isRefused = (business: string) => (refusedUntil.get(business) ?? 0) > time.passed()

  function token(url: URL): Reply {
    const business = String(url.searchParams.get('business_uid'))
    calls.push({ at: time.passed(), kind: 'token', of: business })
    if (url.searchParams.get('client_secret') !== CLIENT.clientSecret) return [401, manners.wrongSecret]
    if (isRefused(business) || now.outage === 'no tokens') return [403, '{"error":"access_denied"}']
    return [200, JSON.stringify({ access_token: `${++tokens}.${business}` })]
  }

  function read(url: URL, authorization: string): Reply {
    const uid = String(url.searchParams.get('filter[uid]'))
    calls.push({ at: time.passed(), kind: 'read', of: uid })
    const business = authorization.replace(/^Bearer \d+\./, '')
    if (isRefused(business) || now.outage === 'no tokens') return [401, '{"error":"revoked"}']
    if (now.outage === 'no records') return NOTHING
    const subscription = subscriptions.get(uid)
    if (subscription && subscription.business !== business) {
      if (manners.movedAway === '403') return [403, '{"error":"forbidden"}']
      if (manners.movedAway === 'nothing') return NOTHING
    }
    if (subscription?.hidden === '403') return [403, '{"error":"forbidden"}']
    const record = subscription && shown(subscription)
    if (record) shownStates.set(uid, record.purchase_state)
    return record ? [200, JSON.stringify({ data: { subscriptions: [record] } })] : NOTHING
  }

  function shown(subscription: Subscription) {
    const { before, visibleAt, hidden } = subscription
    const version = visibleAt <= time.passed() ? subscription : before
    return version && !hidden ? recordOf(subscription, version) : undefined
  }

  function recordOf({ uid, business }: Subscription, version: { state: string; updatedAt: number }) {
    return {
      uid,
      business_uid: business,
      purchasable_uid: OUR_ITEM,
      purchase_state: version.state,
      updated_at: new Date(version.updatedAt).toISOString(),
      purchase_price: '9.99',
      ...(now.movingField ? { served_at: time.passed() } : {}),
    }
  }

  async function answer(url: URL, init: RequestInit | undefined): Promise<Response> {
    const { latencyMs } = now
    await time.sleep(random.of(`${time.passed()} ${url}`).between(latencyMs / 2, latencyMs * 1.5))
    const headers = new Headers(init?.headers)
    const [status, text, more = {}] = OUTAGES[now.outage] ?? route(url, headers.get('authorization') ?? '')
    const type = text.startsWith('<') ? 'text/html' : 'application/json'
    return new Response(text, { status, headers: { 'content-type': type, ...more } })
  }

  function route(url: URL, authorization: string): Reply {
    const address = url.origin + url.pathname
    if (address === `${ADDRESSES.authUrl}/oauth/token`) return token(url)
    if (address === `${ADDRESSES.baseUrl}${READ_PATH}`) return read(url, authorization)
    return manners.unknownAddress
  }

  return {
    now,
    manners,
    calls,
    subscriptions: subscriptions as ReadonlyMap<string, Subscription>,

    fetch: (async (input, init) => {
      const url = new URL(String(input))
      time.lookOn()
      if (now.outage === 'reset') throw new TypeError('fetch failed')
      if (now.outage !== 'hang') return time.follow(answer(url, init))
      const { signal } = init ?? {}
      return time.follow(
        new Promise<never>((_resolve, reject) => {
          if (signal) signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
        }),
      )
    }) as typeof fetch,

    set(uid: string, business: string, state: Subscription['state']): Subscription {
      const old = subscriptions.get(uid)
      const updatedAt = Math.max(time.date(), (old?.updatedAt ?? 0) + 1)
      const before = old ? { state: old.state, updatedAt: old.updatedAt } : null
      const visibleAt = time.passed() + now.lagMs
      const subscription = { uid, business, state, updatedAt, before, visibleAt, hidden: null }
      subscriptions.set(uid, subscription)
      return subscription
    },
    /** Refuses tokens for the business for this long. */
    refuse: (business: string, forMs = Number.POSITIVE_INFINITY) =>
      void refusedUntil.set(business, time.passed() + forMs),
    isRefused,
    hide(uid: string, hidden: Subscription['hidden']) {
      const subscription = subscriptions.get(uid)
      if (subscription) subscription.hidden = hidden
    },
    /** The record as an event carries it, whatever reads show. */
    recordOf: (subscription: Subscription) => recordOf(subscription, subscription),
    /** Writes a record while the platform's own clock is wrong. */
    datedBack(uid: string, byMs: number) {
      const subscription = subscriptions.get(uid)
      if (subscription) subscription.updatedAt -= byMs
    },
    /** Whether the last read that showed the subscription showed it as paid. */
    isShownAsPaid: (uid: string) => shownStates.get(uid) === 'purchased',
    of: (business: string) => [...subscriptions.values()].filter((each) => each.business === business),
    isPaying: (business: string) =>
      !isRefused(business) &&
      [...subscriptions.values()].some(
        (each) => each.business === business && each.state === 'purchased' && !each.hidden,
      ),
  }
}

type Reply = [status: number, text: string, headers?: Record<string, string>]

const READ_PATH = '/business/subscriptionsmng/v1/subscriptions'
const NOTHING: Reply = [200, '{"data":{"subscriptions":[]}}']
const PAGE = '<html><body>Back soon</body></html>'
const OUTAGES: Partial<Record<Outage, Reply>> = {
  '503': [503, '{"message":"oops"}'],
  '429': [429, '{}', { 'retry-after': String((30 * SECOND) / SECOND) }],
  html: [200, PAGE],
}
