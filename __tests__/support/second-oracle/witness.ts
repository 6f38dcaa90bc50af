import type { Marketplace, MarketplaceOptions } from '../../../lib/index.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import type { Disk } from '../months/disk.js'
import type { Platform } from '../platform/platform.js'
import type { DoorReply } from '../world/door.js'
import { createDoors } from './doors.js'
import type { Answer, Door, Entry, Observation, Observed, Reply, Rules, Topic } from './log.js'

/** Watches the processes of a world from outside and writes the log of a second oracle. */
export function createWitness(time: { passed(): number }) {
  const log: Observation[] = []
  const businessOf = new Map<string, string>()
  let numbers = 0
  const note = (observed: Observed) => void log.push({ at: time.passed(), ...observed })
  const numbered = () => numbers++

  /** What one process does; `settings` are its options. */
  function process(settings: Settings, isRight = true) {
    const name = `process ${numbered()}`
    note({ kind: 'process began', process: name, rules: rulesOf(settings, isRight) })
    const registrations = new Map<Topic, number>()
    let hasEnded = false

    async function fetchSeen(
      real: typeof fetch,
      ...[input, init]: Parameters<typeof fetch>
    ): Promise<Response> {
      const url = new URL(String(input))
      const isToken = url.pathname.endsWith('/oauth/token')
      const call = numbered()
      const token = new Headers(init?.headers).get('authorization')?.replace(/^Bearer /, '') ?? ''
      const business = (isToken ? url.searchParams.get('business_uid') : businessOf.get(token)) ?? ''
      const uid = url.searchParams.get('filter[uid]') ?? ''
      note({ kind: 'called', process: name, call, of: isToken ? 'token' : 'read', business, uid, token })
      let isOver = false
      const answered = (reply: Reply) => {
        // The app that has given up a call does not hear its reply.
        if (isOver) return
        isOver = true
        if (reply.is === 'token') businessOf.set(reply.token, business)
        note({ kind: 'answered call', call, reply })
      }
      init?.signal?.addEventListener('abort', () => answered({ is: 'failed' }), { once: true })
      try {
        return watchedBody(await real(input, init), (response, text) =>
          answered(text === undefined ? { is: 'failed' } : replyOf(response, text, { isToken, uid })),
        )
      } catch (error) {
        answered({ is: 'failed' })
        throw error
      }
    }

    function watched(topic: Topic, handler: Handle): Handle {
      const count = registrations.get(topic) ?? 0
      registrations.set(topic, count + 1)
      const own = `${topic} ${count}`
      note({ kind: 'registered', process: name, topic })
      return async (payload, context) => {
        const run = numbered()
        const { attempt, signal } = context
        if (!hasEnded) {
          const entry = entryOf(topic, payload as Record<string, unknown>)
          note({ kind: 'handler began', process: name, run, handler: own, topic, entry, attempt })
        }
        const aborted = () => hasEnded || note({ kind: 'handler aborted', run })
        if (signal.aborted) aborted()
        signal.addEventListener('abort', aborted, { once: true })
        let isDone = false
        try {
          await handler(payload, context)
          isDone = true
        } finally {
          signal.removeEventListener('abort', aborted)
          if (!hasEnded) note({ kind: 'handler ended', run, isDone })
        }
      }
    }

    async function ask(by: Door, business: unknown, answer: () => Promise<Answer>) {
      const number = numbered()
      note({ kind: 'asked', process: name, ask: number, by, business: String(business) })
      const got = await answer().catch(() => ({ entitled: false, isRejected: true }))
      if (!hasEnded) note({ kind: 'answered', ask: number, answer: got })
    }

    function marketplace(real: Marketplace): Marketplace {
      const doors = createDoors(real)
      let questions = 0
      /** The other doors, at every third question: a visit of them costs more than the question. */
      const others = (business: unknown) => {
        if (typeof business !== 'string' || business === '' || hasEnded || questions++ % 3 !== 0) return
        void ask('gate', business, () => doors.gate(business))
        void ask('route', business, () => doors.route(business))
        void ask('nobody', '', () => doors.gate(''))
      }
      real.onHandlerError(({ id, retryInMs }) => {
        if (!hasEnded) note({ kind: 'handler error', process: name, id, retryInMs })
      })
      const requested = (what: 'track' | 'refresh' | 'all' | 'replay' | 'look', business = '', uid = '') =>
        note({ kind: 'requested', process: name, what, business, uid })
      return {
        ...real,
        async isEntitled(business, options) {
          if (options) return real.isEntitled(business, options)
          const answer = real.isEntitled(business)
          await ask('isEntitled', business, async () => ({ entitled: await answer }))
          void ask('explain', business, async () => explained(await real.explain(business)))
          others(business)
          return answer
        },
        async explain(business, options) {
          if (options) return real.explain(business, options)
          const answer = real.explain(business)
          await ask('explain', business, async () => explained(await answer))
          others(business)
          return answer
        },
        onAny: (handler) => real.onAny(watched('event', handler as Handle)),
        onUnrecognised: (handler) => real.onUnrecognised(watched('unrecognised', handler as Handle)),
        onPurchaseChange: (handler) => real.onPurchaseChange(watched('change', handler as Handle)),
        onEntitlementChange: (handler) => real.onEntitlementChange(watched('entitlement', handler as Handle)),
        async health() {
          const found = await real.health()
          const { status, problems } = found
          note({ kind: 'health', process: name, status, problems: problems.map(({ code }) => code) })
          return found
        },
        async close() {
          note({ kind: 'closing', process: name })
          await real.close()
          if (!hasEnded) note({ kind: 'closed', process: name })
        },
        subscriptions: {
          ...real.subscriptions,
          async track(given) {
            requested('track', String(given.businessUid), String(given.subscriptionUid))
            const tracked = await real.subscriptions.track(given)
            note({ kind: 'tracked', uid: String(given.subscriptionUid) })
            return tracked
          },
          refreshAll() {
            requested('all')
            return real.subscriptions.refreshAll()
          },
        },
        businesses: {
          ...real.businesses,
          refresh(business) {
            requested('refresh', String(business))
            return real.businesses.refresh(business)
          },
        },
        journal: {
          ...real.journal,
          replay(...given) {
            requested('replay')
            return real.journal.replay(...given)
          },
          replayAll(...given) {
            requested('replay')
            return real.journal.replayAll(...given)
          },
        },
      }
    }

    return {
      name,
      fetch: (real: typeof fetch) => ((...given) => fetchSeen(real, ...given)) as typeof fetch,
      marketplace,
      /** Returns a function that takes the reply. */
      delivered(body: string, isWhole: boolean) {
        const delivery = numbered()
        note({ kind: 'delivered', process: name, delivery, body, isWhole })
        return ({ status }: DoorReply) => hasEnded || note({ kind: 'replied', delivery, status })
      },
      trouble: (forMs: number) => note({ kind: 'trouble', process: name, forMs }),
      ended() {
        if (!hasEnded) note({ kind: 'process ended', process: name })
        hasEnded = true
      },
    }
  }

  return {
    log: log as readonly Observation[],
    note,
    process,
    /** The clock of the machine, whose leaps and sleeps are noted. */
    clock<C extends Pick<VirtualClock, 'leap' | 'suspend'>>(real: C): C {
      return {
        ...real,
        leap(ms: number) {
          note({ kind: 'machine', what: 'leapt' })
          real.leap(ms)
        },
        async suspend(ms: number) {
          note({ kind: 'machine', what: 'slept' })
          await real.suspend(ms)
          note({ kind: 'machine', what: 'slept' })
        },
      }
    },
    disk<D extends Pick<Disk, 'be'>>(real: D): D {
      return {
        ...real,
        be(how: Parameters<Disk['be']>[0]) {
          note({ kind: 'machine', what: how === 'well' ? 'disk is well' : 'disk fails' })
          real.be(how)
        },
      }
    },
    /** The platform, whose changes are noted. */
    platform<P extends Platform>(real: P): P {
      return {
        ...real,
        set(...given: Parameters<Platform['set']>) {
          const changed = real.set(...given)
          const { uid, business, item, state, updatedAt } = changed
          note({ kind: 'truth', uid, business, item, state, updatedAt })
          return changed
        },
        hide(uid: string, how: Parameters<Platform['hide']>[1]) {
          real.hide(uid, how)
          note({ kind: 'hidden', uid, isHidden: how !== null })
        },
        refuse(business: string, forMs = Number.POSITIVE_INFINITY) {
          real.refuse(business, forMs)
          note({ kind: 'tokens refused', business, forMs })
        },
      }
    },
  }
}

export type Witness = ReturnType<typeof createWitness>

type Settings = Partial<Omit<MarketplaceOptions, 'platform'>>
// biome-ignore lint/suspicious/noExplicitAny: a handler of any topic
type Handle = (payload: any, context: any) => unknown

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** The defaults are those of docs/options.md. */
function rulesOf(settings: Settings, isRight: boolean): Rules {
  const { app, freshness = {}, reads = {}, handlers = {}, closeTimeoutMs = 10_000, worker = true } = settings
  const { maxStaleMs = 72 * HOUR, reconcileEveryMs = 24 * HOUR, waitMs = 2_000 } = freshness
  const { timeoutMs = 30_000, retryDelaysMs = RETRY_DELAYS_MS } = handlers
  return {
    items: [app?.purchasableUid ?? []].flat() as string[],
    ...{ maxStaleMs, waitMs, timeoutMs, retryDelaysMs, closeTimeoutMs, isRight },
    // "at most half of `freshness.maxStaleMs`"
    reconcileEveryMs: Math.min(reconcileEveryMs, maxStaleMs / 2),
    isWorker: worker,
    hasRule: settings.entitledWhen !== undefined,
    readsAtOnce: reads.concurrency ?? 4,
    handlersAtOnce: handlers.concurrency ?? 8,
  }
}

const RETRY_DELAYS_MS = [
  ...[5_000, 30_000, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE],
  ...[1, 2, 4, 8, 12, 24, 24].map((hours) => hours * HOUR),
]

/** The meaning of a reply: its status comes first, and an error may have the status 200. */
export function replyOf(
  response: { status: number; headers: { get(name: string): string | null } },
  text: string,
  { isToken, uid }: { isToken: boolean; uid: string },
): Reply {
  const { status } = response
  const body = parsed(text)
  if (status === 429)
    return { is: 'throttled', afterMs: Number(response.headers.get('retry-after') ?? 0) * 1_000 }
  const isRefusal = status === 401 || status === 403 || status === 404 || (status === 200 && isError(body))
  if (isRefusal) {
    if (body?.error === 'invalid_client') return { is: 'failed' }
    return { is: 'refused', status }
  }
  if (status !== 200) return { is: 'failed' }
  if (isToken) {
    const token = body?.access_token
    return typeof token === 'string' ? { is: 'token', token } : { is: 'failed' }
  }
  const list = (body?.data as { subscriptions?: unknown } | undefined)?.subscriptions
  if (!Array.isArray(list)) return { is: 'failed' }
  const record = (list as Record<string, string>[]).find((each) => each.uid === uid)
  if (!record) return { is: 'nothing' }
  const { business_uid = '', purchasable_uid = '', purchase_state = '', updated_at = '' } = record
  const state = purchase_state === 'cancelled' ? 'canceled' : purchase_state
  return {
    is: 'record',
    business: business_uid,
    item: purchasable_uid,
    state,
    updatedAt: Date.parse(updated_at),
  }
}

/** An error that was sent with the status 200 is a refusal: docs/errors.md, `platform_refused`. */
function isError(body: Record<string, unknown> | undefined): boolean {
  return body?.success === false || Boolean(body?.error)
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The response, whose text is given to `onText` when all of it was read; undefined if it ends in an error. */
function watchedBody(
  response: Response,
  onText: (response: Response, text: string | undefined) => void,
): Response {
  const { body } = response
  if (!body) {
    onText(response, '')
    return response
  }
  const decoder = new TextDecoder()
  let text = ''
  let isOver = false
  const over = (whole: string | undefined) => {
    if (!isOver) onText(response, whole)
    isOver = true
  }
  const getReader = () => {
    const reader = body.getReader()
    return {
      async read() {
        try {
          const piece = await reader.read()
          if (piece.done) over(text)
          else text += decoder.decode(piece.value, { stream: true })
          return piece
        } catch (error) {
          over(undefined)
          throw error
        }
      },
      cancel: (reason?: unknown) => {
        over(undefined)
        return reader.cancel(reason)
      },
    }
  }
  return {
    status: response.status,
    headers: response.headers,
    body: {
      getReader,
      cancel: (reason?: unknown) => {
        over(undefined)
        return body.cancel(reason)
      },
    },
  } as unknown as Response
}

const explained = (decision: Awaited<ReturnType<Marketplace['explain']>>): Answer => {
  const { entitled, known, reason, entitledItems, accessUntil, explanation } = decision
  return { entitled, known, reason, items: entitledItems, accessUntil, explanation }
}

function entryOf(topic: Topic, payload: Record<string, unknown>): Entry {
  const data = (payload.data ?? payload.envelope ?? {}) as Record<string, unknown>
  const named = topic === 'event' || topic === 'unrecognised' ? data : payload
  const text = (value: unknown) => (typeof value === 'string' ? value : '')
  const record = payload.record as { updated_at?: string } | null | undefined
  return {
    id: text(payload.id),
    business: text(named.business_uid) || text(named.business_id),
    uid: text(named.subscription_uid) || text(named.uid),
    name: text(payload.name),
    data: topic === 'event' ? JSON.stringify(data) : '',
    from: (payload.from ?? null) as string | null,
    to: (payload.to ?? null) as string | null,
    gone: (payload.gone ?? null) as string | null,
    updatedAt: record?.updated_at ? Date.parse(record.updated_at) : null,
    entitled: (payload.entitled ?? null) as boolean | null,
    reason: text(payload.reason),
    cause: text(payload.cause),
    items: (payload.entitledItems ?? []) as string[],
    previousItems: (payload.previousItems ?? []) as string[],
  }
}
