import { canonicalState, type Trigger, transition } from '../../../lib/entitlement/purchase-state.js'
import type { Random } from './random.js'
import type { Time } from './time.js'

/** The faults of a call, with their weights. Both kinds of calls can have `TOKEN_FAULTS`. */
const TOKEN_FAULTS = {
  network: 3,
  failing: 2,
  html: 1,
  hang: 1,
  'hang in the body': 1,
  throttle: 1,
  'throttle without a word': 1,
  truncated: 2,
  'cut off': 1,
  'error with 200': 1,
  credentials: 0.3,
} as const
const READ_FAULTS = {
  ...TOKEN_FAULTS,
  credentials: 0,
  unauthorized: 3,
  forbidden: 1,
  'not found': 1,
  older: 3,
  'another record first': 2,
} as const

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

export interface Version {
  state: string
  updated_at: string
  visibleAt: number
}

interface Subscription {
  uid: string
  businessUid: string
  item: string
  versions: Version[]
}

/** A record that the platform has returned to a read. */
export interface Shown {
  at: number
  uid: string
  businessUid: string
  item: string
  state: string
  updatedAt: string
}

/** The platform in memory: its transition table, its calls, and their faults. */
export function createPlatform(options: {
  time: Time
  random: Random
  profile: PlatformProfile
  item: string
  onShown(shown: Shown): void
  onCall(): void
  trace(line: () => string): void
}) {
  const { time, random, profile, item, onShown, onCall, trace } = options
  const subscriptions = new Map<string, Subscription>()
  /** The time since which each business is refused. */
  const refusing = new Map<string, number>()
  let isWell = false
  let tokens = 0
  let endedTokens = 0

  function state(uid: string): string {
    return subscriptions.get(uid)?.versions.at(-1)?.state ?? 'none'
  }

  function step(uid: string, businessUid: string, trigger: Trigger, condition: Condition = null) {
    const current = state(uid)
    const row = transition(canonicalState(current) as 'none', trigger, condition)
    if (!row) return undefined
    if (row.next !== current) add(uid, businessUid, row.next)
    return row.emits
  }

  function add(uid: string, businessUid: string, next: string) {
    const subscription = subscriptions.get(uid) ?? { uid, businessUid, item, versions: [] }
    subscriptions.set(uid, subscription)
    const last = subscription.versions.at(-1)
    const after = last ? Date.parse(last.updated_at) + (profile.ties ? 0 : 1) : 0
    const spelled = next === 'canceled' && random.chance(0.5) ? 'cancelled' : next
    subscription.versions.push({
      state: spelled,
      updated_at: new Date(Math.max(time.now(), after)).toISOString(),
      visibleAt: Math.max(last?.visibleAt ?? 0, time.now() + (isWell ? 0 : random.pick(profile.lagsMs))),
    })
    trace(() => `platform ${uid} is ${spelled}`)
  }

  function recordOf({ uid, businessUid, item: purchasable_uid }: Subscription, version: Version) {
    const { state: purchase_state, updated_at } = version
    return { uid, business_uid: businessUid, purchasable_uid, purchase_state, updated_at, purchase_price: 5 }
  }

  function faultOf(isToken: boolean): string | undefined {
    if (isWell || !random.chance(profile.callFaults)) return undefined
    if (profile.lies && random.chance(0.2)) {
      return isToken ? 'token refused' : random.pick(['empty', 'empty', 'mismatch'])
    }
    return isToken ? random.choose(TOKEN_FAULTS) : random.choose(READ_FAULTS)
  }

  function latency(): number {
    return isWell ? 5 : random.pick(profile.latenciesMs)
  }

  function decide(url: URL, authorization: string | undefined, fault: string | undefined): Reply {
    switch (fault) {
      case 'failing':
        return { status: 503, text: '{"message":"oops","status":"Error"}' }
      case 'html':
        return { status: 200, text: '<html><body>Back soon</body></html>' }
      case 'throttle':
        return { status: 429, text: '{}', retryAfter: '3' }
      case 'throttle without a word':
        return { status: 429, text: '{}' }
      case 'error with 200':
        return { status: 200, text: '{"success":false,"errors":[{"code":"x","message":"later"}]}' }
      case 'credentials':
        return { status: 401, text: '{"error":"invalid_client"}' }
      case 'token refused':
        return { status: 403, text: '{"error":"access_denied"}' }
      case 'forbidden':
        return { status: 403, text: '{"error":"forbidden"}' }
      case 'not found':
        return { status: 404, text: '{"error":"no such thing"}' }
    }
    const reply = url.pathname === '/oauth/token' ? token(url) : read(url, authorization, fault)
    if (fault === 'truncated') return { ...reply, text: reply.text.slice(0, reply.text.length / 2) }
    if (fault === 'cut off') return { ...reply, ends: 'in an error' }
    if (fault === 'hang in the body') return { ...reply, ends: 'never' }
    if (reply.shown) onShown(reply.shown)
    return reply
  }

  function token(url: URL): Reply {
    const businessUid = String(url.searchParams.get('business_uid'))
    if (refusing.has(businessUid)) return { status: 403, text: '{"error":"access_denied"}' }
    return { status: 200, text: `{"access_token":"${++tokens}.${businessUid}"}` }
  }

  function read(url: URL, authorization: string | undefined, fault: string | undefined): Reply {
    const [, number, businessUid = ''] = /^Bearer (\d+)\.(.*)$/.exec(authorization ?? '') ?? []
    if (fault === 'unauthorized') endedTokens = tokens
    if (Number(number) <= endedTokens) return { status: 401, text: '{"error":"expired"}' }
    if (refusing.has(businessUid)) return { status: 401, text: '{"error":"revoked"}' }
    const subscription = subscriptions.get(String(url.searchParams.get('filter[uid]')))
    const visible = (subscription?.versions ?? []).filter(({ visibleAt }) => visibleAt <= time.now())
    const version = (fault === 'older' ? visible.at(-2) : undefined) ?? visible.at(-1)
    const isShown = subscription && version && fault !== 'empty' && subscription.businessUid === businessUid
    if (!isShown) return { status: 200, text: '{"data":{"subscriptions":[]}}' }
    const record = recordOf(subscription, version)
    if (fault === 'mismatch') {
      const text = JSON.stringify({ data: { subscriptions: [{ ...record, business_uid: 'somebody-else' }] } })
      return { status: 200, text }
    }
    const others =
      fault === 'another record first' ? [{ ...record, uid: 'main', purchase_state: 'purchased' }] : []
    const text = JSON.stringify({ data: { subscriptions: [...others, record] } })
    const { uid, item: itsItem } = subscription
    const { state: itsState, updated_at: updatedAt } = version
    return {
      status: 200,
      text,
      shown: { at: time.now(), uid, businessUid, item: itsItem, state: itsState, updatedAt },
    }
  }

  return {
    /** `fetch` for one process; `enter` resolves when the process's code may continue. */
    fetchFor(process: { isCutOff(): boolean; enter(): Promise<void> | undefined }): typeof fetch {
      return (async (input: unknown, init: RequestInit) => {
        const url = new URL(String(input))
        const { authorization, Authorization } = (init.headers ?? {}) as Record<string, string>
        const fault = process.isCutOff()
          ? random.pick(['network', 'hang'])
          : faultOf(url.pathname === '/oauth/token')
        onCall()
        trace(() => `call ${url.pathname.slice(-13)} ${url.search.slice(-20)} ${fault ?? ''}`)
        if (fault === 'hang') return await new Promise<never>(() => {})
        await time.sleep(latency())
        const reply = fault === 'network' ? undefined : decide(url, authorization ?? Authorization, fault)
        await time.sleep(latency())
        await process.enter()
        if (!reply) throw new TypeError('fetch failed')
        return responseOf(reply)
      }) as typeof fetch
    },

    step,
    state,
    /** The business uninstalls the app. Its subscriptions are cancelled, and it gets no token any more. */
    uninstall(businessUid: string): string[] {
      const touched = uidsOf(businessUid).filter((uid) =>
        step(uid, businessUid, 'User cancels the app subscription'),
      )
      refusing.set(businessUid, time.now())
      trace(() => `platform ${businessUid} uninstalled`)
      return touched
    },
    install(businessUid: string) {
      refusing.delete(businessUid)
      trace(() => `platform ${businessUid} installed`)
    },
    isRefusing: (businessUid: string) => refusing.has(businessUid),
    refusingSince: (businessUid: string) => refusing.get(businessUid),
    uidsOf,
    recordOf(uid: string) {
      const subscription = subscriptions.get(uid) as Subscription
      return recordOf(subscription, subscription.versions.at(-1) as Version)
    },
    /** Ends all faults. A record that a lag hides becomes visible at its time. */
    heal() {
      isWell = true
    },
  }

  function uidsOf(businessUid: string): string[] {
    return [...subscriptions.values()]
      .filter((each) => each.businessUid === businessUid)
      .map(({ uid }) => uid)
  }
}

export type Platform = ReturnType<typeof createPlatform>
type Condition = 'Payment succeeded' | 'Payment failed' | null

interface Reply {
  status: number
  text: string
  retryAfter?: string
  ends?: 'in an error' | 'never'
  shown?: Shown
}

const encoder = new TextEncoder()

/** The part of a `Response` that the package uses. A real one costs more than the rest of the call. */
function responseOf({ status, text, retryAfter, ends }: Reply): Response {
  let isRead = false
  const reader = {
    async read() {
      if (!isRead) {
        isRead = true
        return { done: false, value: encoder.encode(text) }
      }
      if (ends === 'in an error') throw new TypeError('terminated')
      if (ends === 'never') return await new Promise<never>(() => {})
      return { done: true, value: undefined }
    },
    cancel: async () => {},
  }
  return {
    status,
    headers: { get: (name: string) => (name === 'retry-after' ? (retryAfter ?? null) : null) },
    body: { getReader: () => reader, cancel: async () => {} },
  } as unknown as Response
}
