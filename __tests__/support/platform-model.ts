import type { Clock } from '../../lib/clock.js'
import { type PurchaseState, type Trigger, transition } from '../../lib/entitlement/purchase-state.js'

/** The faults of one call of the platform. */
export type CallFault = (typeof CALL_FAULTS)[number]
export const CALL_FAULTS = [
  'network',
  'status 500',
  'html',
  'hang',
  'throttle',
  'unauthorized',
  'older',
  'empty',
] as const

const READ_FAULTS = new Set<CallFault>(['unauthorized', 'older', 'empty'])

interface Version {
  state: PurchaseState
  updated_at: string
  visibleAt: number
}

export interface Emitted {
  subscriptionUid: string
  event_type: 'created' | 'update'
  businessUid: string
}

/**
 * The platform in memory: the transition table, and `fetch` for a receiver. Reads may lag: a version becomes visible
 * `lagMs` after it was written, and never before an earlier version.
 */
export function createPlatformModel(options: { clock: Clock; purchasableUid: string }) {
  const { clock, purchasableUid } = options
  const now = clock.now
  const subscriptions = new Map<string, { businessUid: string; versions: Version[] }>()
  const served = new Map<string, Set<string>>()
  const faults: CallFault[] = []
  const shownEmpty = new Set<string>()
  let tokens = 0
  let endedTokens = 0
  let lagMs = 0
  let latencyMs = 10

  function add(uid: string, businessUid: string, state: PurchaseState) {
    const subscription = subscriptions.get(uid) ?? { businessUid, versions: [] }
    subscriptions.set(uid, subscription)
    const last = subscription.versions.at(-1)
    const updated_at = new Date(now()).toISOString()
    subscription.versions.push({
      state,
      updated_at,
      visibleAt: Math.max(last?.visibleAt ?? 0, now() + lagMs),
    })
  }

  function recordOf(uid: string, { state, updated_at }: Version) {
    const business_uid = subscriptions.get(uid)?.businessUid
    return { uid, business_uid, purchasable_uid: purchasableUid, purchase_state: state, updated_at }
  }

  function read(uid: string, businessUid: string, fault: CallFault | undefined) {
    const subscription = subscriptions.get(uid)
    const visible = (subscription?.versions ?? []).filter(({ visibleAt }) => visibleAt <= now())
    // A record that is hidden three times over a minute counts as missing, so this platform never hides one twice in a
    // row.
    const isEmpty = fault === 'empty' && !shownEmpty.has(uid)
    if (isEmpty) shownEmpty.add(uid)
    else shownEmpty.delete(uid)
    const version = fault === 'older' ? (visible.at(-2) ?? visible.at(-1)) : visible.at(-1)
    if (isEmpty || !version || subscription?.businessUid !== businessUid) return []
    served.set(uid, (served.get(uid) ?? new Set()).add(version.state))
    return [recordOf(uid, version)]
  }

  /** The next fault that applies to this kind of call. */
  function nextFault(isRead: boolean): CallFault | undefined {
    const fault = faults.find((each) => isRead || !READ_FAULTS.has(each))
    if (fault) faults.splice(faults.indexOf(fault), 1)
    return fault
  }

  /** Decides the answer at once and returns it after `latencyMs`, so the answer does not show later changes. */
  async function answer(url: URL, authorization: string | null, signal: AbortSignal): Promise<Response> {
    const arrives = new Promise<void>((resolve) => clock.setTimeout(resolve, latencyMs))
    const reply = await decide(url, authorization, signal)
    await arrives
    return reply
  }

  async function decide(url: URL, authorization: string | null, signal: AbortSignal): Promise<Response> {
    const fault = nextFault(url.pathname !== '/oauth/token')
    if (fault === 'network') throw new TypeError('fetch failed')
    if (fault === 'hang')
      return new Promise((_, reject) => signal.addEventListener('abort', reject, { once: true }))
    if (fault === 'status 500') return Response.json({ message: 'oops', status: 'Error' }, { status: 500 })
    if (fault === 'html') return new Response('<html><body>Back soon</body></html>')
    if (fault === 'throttle') return new Response('{}', { status: 429, headers: { 'retry-after': '7' } })
    if (url.pathname === '/oauth/token') {
      return Response.json({ access_token: `${++tokens}.${url.searchParams.get('business_uid')}` })
    }
    const [, number, businessUid] = /^Bearer (\d+)\.(.*)$/.exec(authorization ?? '') ?? []
    if (fault === 'unauthorized') endedTokens = tokens
    if (businessUid === undefined || Number(number) <= endedTokens) return Response.json({}, { status: 401 })
    return Response.json({
      data: { subscriptions: read(`${url.searchParams.get('filter[uid]')}`, businessUid, fault) },
    })
  }

  return {
    fetch: (async (input, init) => {
      const { headers, signal } = init as RequestInit
      return answer(new URL(String(input)), new Headers(headers).get('authorization'), signal as AbortSignal)
    }) satisfies typeof fetch,

    /**
     * Makes one step along the transition table. Returns the event that the step emits, or undefined if it emits none.
     */
    move(
      uid: string,
      businessUid: string,
      trigger: Trigger,
      condition: 'Payment succeeded' | 'Payment failed' | null = null,
    ): Emitted | undefined {
      const current = subscriptions.get(uid)?.versions.at(-1)?.state ?? 'none'
      const row = transition(current, trigger, condition)
      if (!row) return undefined
      if (row.next !== current) add(uid, businessUid, row.next)
      if (!row.emits) return undefined
      return {
        subscriptionUid: uid,
        businessUid,
        event_type: row.emits.endsWith('create') ? 'created' : 'update',
      }
    },

    fail: (fault: CallFault, times: number) => void faults.push(...Array<CallFault>(times).fill(fault)),
    lag(ms: number) {
      lagMs = ms
    },
    slow(ms: number) {
      latencyMs = ms
    },
    /** Ends all faults; records hidden by a lag become visible at their time. */
    heal() {
      faults.splice(0)
      lagMs = 0
      latencyMs = 10
    },
    state: (uid: string) => subscriptions.get(uid)?.versions.at(-1)?.state,
    /** Whether any read has returned this state. */
    hasServed: (uid: string, state: string) => served.get(uid)?.has(state) ?? false,
  }
}

export type PlatformModel = ReturnType<typeof createPlatformModel>
