import { canonicalState } from '../../../lib/entitlement/purchase-state.js'
import { ENDPOINTS } from '../../../lib/testing/endpoints.js'
import { type Trigger, transition } from '../../../lib/testing/transitions.js'
import { OUR_ITEM } from '../settings.js'

/** What may happen to a call of the platform instead of its ordinary reply. */
export type CallFault =
  | 'network'
  | 'hang'
  | 'hang in the body'
  | 'truncated'
  | 'cut off'
  | 'failing'
  | 'html'
  | 'throttle'
  | 'throttle without a time'
  | 'error with 200'
  | 'credentials'
  | 'token refused'
  | 'forbidden'
  | 'not found'
  | 'unauthorized'
  | 'revoked'
  | 'older'
  | 'empty'
  | 'mismatch'
  | 'another record first'

/** Replies that do not depend on the state of the platform. */
const FIXED_REPLIES: Partial<Record<CallFault, Reply>> = {
  failing: { status: 503, text: '{"message":"oops","status":"Error"}' },
  html: { status: 200, text: '<html><body>Back soon</body></html>' },
  throttle: { status: 429, text: '{}', retryAfter: '7' },
  'throttle without a time': { status: 429, text: '{}' },
  'error with 200': { status: 200, text: '{"success":false,"errors":[{"code":"x","message":"later"}]}' },
  credentials: { status: 401, text: '{"error":"invalid_client"}' },
  'token refused': { status: 403, text: '{"error":"access_denied"}' },
  forbidden: { status: 403, text: '{"error":"forbidden"}' },
  'not found': { status: 404, text: '{"error":"no such thing"}' },
  revoked: { status: 401, text: '{"error":"revoked"}' },
}

/** What happens to every call while the platform fails as a whole. */
export const OUTAGES = {
  '503': 'failing',
  '429': { status: 429, text: '{}', retryAfter: '30' },
  html: 'html',
  hang: 'hang',
  reset: 'network',
} satisfies Record<string, CallFault | Reply>

/** A call of the platform. `of` is the business of a token call, or the subscription of a read. */
export interface Call {
  kind: 'token' | 'read'
  of: string
  business: string
  url: URL
}

/** A subscription as last written. Another write makes a new object. */
export interface Subscription {
  uid: string
  business: string
  item: string
  state: string
  updatedAt: number
  versions: readonly Version[]
}

/** A state of a subscription, which reads show from `visibleAt` on. */
interface Version {
  state: string
  updatedAt: number
  visibleAt: number
}

/** A record that the platform has returned to a read. */
export interface Shown {
  at: number
  uid: string
  business: string
  item: string
  state: string
  updatedAt: string
}

export interface Platform {
  fetch: typeof fetch
  subscriptions: ReadonlyMap<string, Subscription>
  of(business: string): Subscription[]
  state(uid: string): string | undefined
  /** The record as an event carries it, whatever reads show. */
  recordOf(subscription: Subscription): Record<string, unknown>
  /** Writes any state. `item` is the app's own, unless a subscription begins with another. */
  set(uid: string, business: string, state: string, item?: string): Subscription
  /** Makes a step of the transition table. Returns the event that it emits, or undefined if it emits none. */
  step(uid: string, business: string, trigger: Trigger, condition?: Condition): string | undefined
  /** What reads of the subscription get instead of its record, until it changes. */
  hide(uid: string, how: 'nothing' | '403' | null): void
  /** Whether the business pays for the app, and the platform shows that. */
  isPaying(business: string): boolean
  /** Writes the record of a subscription while the platform's own clock is wrong. */
  datedBack(uid: string, byMs: number): void
  /** Refuses tokens for the business for this long. */
  refuse(business: string, forMs?: number): void
  isRefused(business: string): boolean
  refusedSince(business: string): number | undefined
}

/** What happens to a call, decided when it begins. */
export type FaultOf = (call: Call) => CallFault | Reply | undefined

type Condition = 'Payment succeeded' | 'Payment failed' | null

/** No lag and no fault shows an older version. */
const MAX_VERSIONS = 20
const NOTHING: Reply = { status: 200, text: '{"data":{"subscriptions":[]}}' }

/**
 * The platform behind `platform.fetch`, in the time of a virtual clock: its records by subscription, the token endpoint
 * and the read. The caller decides which calls fail, and how long they take. Beside
 * the transition table it can do what the interface document leaves open: move a subscription, date a record back, hide
 * one.
 */
export function createPlatform(options: {
  clock: { now(): number; sleep(ms: number): Promise<void> }
  /** Without it, any secret is right. */
  clientSecret?: string
  faultOf?: FaultOf
  /** How long a call takes before its reply is decided, and after. */
  latencyMs?(call: Call): readonly [before: number, after: number]
  /** How long reads show the version before a new one. */
  lagMs?(): number
  /** Whether two versions may have the same `updated_at`. */
  hasTies?: boolean
  /** How the platform spells a state. */
  spell?(state: string): string
  /** Further fields of each record. */
  fields?(): object
  /** The replies to a wrong secret, to an unknown address, and to a read of a subscription that has moved away. */
  manners?: { wrongSecret?: string; unknownAddress?: Reply; movedAway?: 'its record' | 'nothing' | '403' }
  onCall?(call: Call, fault: CallFault | Reply | undefined): void
  onShown?(shown: Shown): void
}): Platform {
  const { clock, clientSecret, hasTies = false, manners = {} } = options
  const {
    faultOf = () => undefined,
    latencyMs = () => [0, 10],
    lagMs = () => 0,
    fields = () => ({}),
  } = options
  const { onCall = () => {}, onShown = () => {}, spell = (state) => state } = options
  const now = clock.now
  const subscriptions = new Map<string, Subscription>()
  const hidden = new Map<string, 'nothing' | '403'>()
  const refused = new Map<string, { since: number; until: number }>()
  let tokens = 0
  let endedTokens = 0

  const isRefused = (business: string) => (refused.get(business)?.until ?? 0) > now()

  function recordOf(
    { uid, business, item: purchasable_uid }: Subscription,
    version: Omit<Version, 'visibleAt'>,
  ) {
    const { state: purchase_state, updatedAt } = version
    const updated_at = new Date(updatedAt).toISOString()
    return { uid, business_uid: business, purchasable_uid, purchase_state, updated_at, ...fields() }
  }

  function callOf(url: URL, authorization: string): Call | undefined {
    const { token, read } = ENDPOINTS
    if (url.pathname === token.path) {
      const business = String(url.searchParams.get('business_uid'))
      return { kind: 'token', of: business, business, url }
    }
    if (url.pathname !== read.path) return undefined
    const business = authorization.replace(/^Bearer \d+\./, '')
    return { kind: 'read', of: String(url.searchParams.get('filter[uid]')), business, url }
  }

  function decide(call: Call, authorization: string, fault: CallFault | Reply | undefined): Reply {
    if (typeof fault === 'object') return fault
    const fixed = fault && FIXED_REPLIES[fault]
    if (fixed) return fixed
    const reply = call.kind === 'token' ? tokenFor(call) : read(call, authorization, fault)
    if (fault === 'truncated') return { ...reply, text: reply.text.slice(0, reply.text.length / 2) }
    if (fault === 'cut off') return { ...reply, ends: 'in an error' }
    if (fault === 'hang in the body') return { ...reply, ends: 'never' }
    if (reply.shown) onShown(reply.shown)
    return reply
  }

  function tokenFor({ business, url }: Call): Reply {
    if (clientSecret !== undefined && url.searchParams.get('client_secret') !== clientSecret) {
      return { status: 401, text: manners.wrongSecret ?? '{"error":"invalid_client"}' }
    }
    if (isRefused(business)) return FIXED_REPLIES['token refused'] as Reply
    return { status: 200, text: `{"access_token":"${++tokens}.${business}"}` }
  }

  function read({ of: uid, business }: Call, authorization: string, fault: CallFault | undefined): Reply {
    if (fault === 'unauthorized') endedTokens = tokens
    if (Number(/\d+/.exec(authorization)?.[0]) <= endedTokens)
      return { status: 401, text: '{"error":"expired"}' }
    if (isRefused(business)) return FIXED_REPLIES.revoked as Reply
    const subscription = subscriptions.get(uid)
    if (hidden.get(uid) === '403') return FIXED_REPLIES.forbidden as Reply
    if (!subscription || fault === 'empty' || hidden.has(uid)) return NOTHING
    if (subscription.business !== business) {
      const { movedAway = 'nothing' } = manners
      if (movedAway === '403') return FIXED_REPLIES.forbidden as Reply
      if (movedAway === 'nothing') return NOTHING
    }
    const visible = subscription.versions.filter(({ visibleAt }) => visibleAt <= now())
    const version = (fault === 'older' ? visible.at(-2) : undefined) ?? visible.at(-1)
    if (!version) return NOTHING
    const record = recordOf(subscription, version)
    if (fault === 'mismatch') return records({ ...record, business_uid: 'somebody-else' })
    const { purchasable_uid, purchase_state: state, updated_at: updatedAt } = record
    const shown = { at: now(), uid, business, item: purchasable_uid, state, updatedAt }
    const other = { ...record, uid: 'main', purchase_state: 'purchased' }
    return { ...(fault === 'another record first' ? records(other, record) : records(record)), shown }
  }

  async function answer(input: unknown, init: RequestInit = {}): Promise<Response> {
    const url = new URL(String(input))
    const authorization = new Headers(init.headers).get('authorization') ?? ''
    const call = callOf(url, authorization)
    if (!call) return responseOf(manners.unknownAddress ?? { status: 404, text: '' })
    const fault = faultOf(call)
    onCall(call, fault)
    if (fault === 'hang') {
      return new Promise((_resolve, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason), { once: true })
      })
    }
    const [beforeMs, afterMs] = latencyMs(call)
    if (beforeMs > 0) await clock.sleep(beforeMs)
    const reply = fault === 'network' ? undefined : decide(call, authorization, fault)
    if (afterMs > 0) await clock.sleep(afterMs)
    if (!reply) throw new TypeError('fetch failed')
    return responseOf(reply)
  }

  function set(uid: string, business: string, given: string, item?: string): Subscription {
    const state = spell(given)
    const old = subscriptions.get(uid)
    const ofItem = item ?? old?.item ?? OUR_ITEM
    const last = old?.versions.at(-1)
    const updatedAt = Math.max(now(), last ? last.updatedAt + (hasTies ? 0 : 1) : 0)
    const version = { state, updatedAt, visibleAt: Math.max(last?.visibleAt ?? 0, now() + lagMs()) }
    const versions = [...(old?.versions ?? []).slice(-MAX_VERSIONS), version]
    const subscription = { uid, business, item: ofItem, state, updatedAt, versions }
    subscriptions.set(uid, subscription)
    hidden.delete(uid)
    return subscription
  }

  const of = (business: string) => [...subscriptions.values()].filter((each) => each.business === business)

  return {
    fetch: ((input, init) => answer(input, init)) as typeof fetch,
    subscriptions,
    of,
    state: (uid) => subscriptions.get(uid)?.state,
    recordOf: (subscription) => recordOf(subscription, subscription),
    set,
    step(uid, business, trigger, condition = null) {
      const current = subscriptions.get(uid)?.state ?? 'none'
      const row = transition(canonicalState(current) as 'none', trigger, condition)
      if (row && row.next !== current) set(uid, business, row.next)
      return row?.emits ?? undefined
    },
    hide(uid, how) {
      if (how) hidden.set(uid, how)
      else hidden.delete(uid)
    },
    isPaying: (business) =>
      !isRefused(business) &&
      of(business).some(
        ({ uid, item, state }) => state === 'purchased' && item === OUR_ITEM && !hidden.has(uid),
      ),
    datedBack(uid, byMs) {
      const subscription = subscriptions.get(uid) as Subscription
      const updatedAt = subscription.updatedAt - byMs
      const versions = subscription.versions.with(-1, {
        ...(subscription.versions.at(-1) as Version),
        updatedAt,
      })
      subscriptions.set(uid, { ...subscription, updatedAt, versions })
    },
    refuse: (business, forMs = Number.POSITIVE_INFINITY) =>
      void refused.set(business, { since: now(), until: now() + forMs }),
    isRefused,
    refusedSince: (business) => (isRefused(business) ? refused.get(business)?.since : undefined),
  }
}

export interface Reply {
  status: number
  text: string
  retryAfter?: string
  /** How the body ends, instead of well. */
  ends?: 'in an error' | 'never'
  shown?: Shown
}

const records = (...subscriptions: object[]): Reply => ({
  status: 200,
  text: JSON.stringify({ data: { subscriptions } }),
})

const encoder = new TextEncoder()

/** The part of a `Response` that the package uses. A real one costs more than the rest of the call. */
function responseOf({ status, text, retryAfter, ends }: Reply): Response {
  const headers: Record<string, string | undefined> = {
    'content-type': text.startsWith('<') ? 'text/html' : 'application/json',
    'retry-after': retryAfter,
  }
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
    headers: { get: (name: string) => headers[name] ?? null },
    body: { getReader: () => reader, cancel: async () => {} },
  } as unknown as Response
}
