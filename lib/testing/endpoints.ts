import type { Clock } from '../base/clock.js'
import type { TokenKind } from '../base/envelope.js'
import { EVENTS, type EventName } from '../events/registry.js'
import { type Happening, readable } from './envelopes.js'
import type { ActiveFault, Endpoint, Subject } from './faults.js'
import { hexDigits } from './random.js'
import type { World } from './world.js'

/** The three calls of the interface document, Endpoints. `under` is the base address of each. */
export const ENDPOINTS = {
  register: { under: 'base', method: 'POST', path: '/platform/v1/webhook/subscribe' },
  read: { under: 'base', method: 'GET', path: '/business/subscriptionsmng/v1/subscriptions' },
  token: { under: 'auth', method: 'POST', path: '/oauth/token' },
} as const satisfies Record<Endpoint, { under: 'base' | 'auth'; method: string; path: string }>

/** A request to one of them, with its body. */
export interface Call {
  query: URLSearchParams
  authorization: string | undefined
  contentType: string | undefined
  body: string
}

/** A reply. A string body is sent as HTML, any other as JSON. */
export interface Reply {
  status: number
  body: unknown
  headers?: Record<string, string>
}

export interface Answerer {
  /** What the call concerns, for faults and the log. */
  subjectOf(call: Call): Subject
  answer(call: Call, fault?: ActiveFault): Reply
}

/** Answers by the rules of the interface document. Where it is silent (refusals, statuses), a comment marks our choice. */
export function createAnswerers(options: {
  clientId: string
  clientSecret: string
  world: World
  tokens: Tokens
  registrations: Registrations
  /** Whether the read call lists the subscriptions of a business. */
  listsSubscriptions: boolean
  /** The value of `expires_in` in token replies; undefined leaves it out. */
  expiresIn: () => unknown
}): Record<Endpoint, Answerer> {
  const { clientId, clientSecret, world, tokens, registrations, listsSubscriptions, expiresIn } = options

  /** The token if it is valid, else the refusal: 401 for an unknown token, 403 for one without the permission. */
  function admit(call: Call): Token | Reply {
    const token = tokens.find(call.authorization)
    if (token === undefined) return refusal(401, 'unauthorized', 'The token is missing, unknown or expired')
    if (token.businessUid !== null && !world.businesses.serves(token.businessUid)) {
      return refusal(403, 'forbidden', 'The business does not use the app')
    }
    return token
  }

  const register: Answerer = {
    subjectOf(call) {
      const event = String(parsed(call.body)?.event)
      return {
        key: `register/${event}`,
        event,
        businessUid: tokens.find(call.authorization)?.businessUid ?? undefined,
      }
    },
    answer(call) {
      const token = admit(call)
      if ('status' in token) return token
      if (!/^application\/json\b/i.test(call.contentType ?? '')) {
        return refusal(415, 'unsupported_media_type', 'The Content-Type must be application/json')
      }
      const body = parsed(call.body)
      if (body === undefined) return refusal(400, 'bad_request', 'The body is not a JSON object')
      const { event, target_url } = body
      if (!isEventName(event)) return refusal(422, 'invalid', 'event is not registrable')
      if (!isTargetUrl(target_url)) return refusal(422, 'invalid', 'target_url is not an HTTP address')
      const accepted: readonly string[] = EVENTS[event].tokens
      if (!accepted.includes(token.kind)) {
        return refusal(403, 'forbidden', `${event} is registered with: ${accepted.join(', ')} token`)
      }
      if (registrations.add(event, target_url, token) === 'exists') {
        return refusal(422, 'already_exists', 'The webhook already exists')
      }
      return { status: 201, body: { success: true, data: { event, target_url } } }
    },
  }

  const read: Answerer = {
    subjectOf(call) {
      const subscriptionUid = call.query.get('filter[uid]') ?? undefined
      const businessUid = tokens.find(call.authorization)?.businessUid ?? undefined
      return { key: `read/${subscriptionUid}`, subscriptionUid, businessUid }
    },
    answer(call, fault) {
      const token = admit(call)
      if ('status' in token) return token
      if (token.kind !== 'app') return refusal(403, 'forbidden', 'Subscriptions are read with an app token')
      const uid = call.query.get('filter[uid]')
      const listed = call.query.get('filter[business_uid]')
      if (listsSubscriptions && !uid && listed) {
        // As for the read of one: what belongs to another business looks unknown.
        const subscriptions = world
          .all()
          .filter(({ business_uid }) => business_uid === token.businessUid && business_uid === listed)
        return { status: 200, body: { success: true, data: { subscriptions: subscriptions.map(readable) } } }
      }
      // Not stated by the document; we chose to refuse a form of the call that it does not describe.
      if (!uid) return refusal(400, 'bad_request', 'filter[uid] is missing')
      const record = fault?.kind === 'lag' ? world.seen(uid, fault) : world.get(uid)
      // Not stated by the document; we chose that another business's subscription looks like an unknown one.
      const own = record?.business_uid === token.businessUid ? [record] : []
      const subscriptions = fault ? mixedUp(own, fault, world) : own
      return { status: 200, body: { success: true, data: { subscriptions: subscriptions.map(readable) } } }
    },
  }

  const token: Answerer = {
    subjectOf(call) {
      const businessUid = call.query.get('business_uid') ?? undefined
      return { key: `token/${businessUid}`, businessUid }
    },
    answer({ query }) {
      if (query.get('client_id') !== clientId || query.get('client_secret') !== clientSecret) {
        return { status: 401, body: { error: 'invalid_client' } }
      }
      if (query.get('grant_type') !== 'assertion')
        return { status: 400, body: { error: 'unsupported_grant_type' } }
      const businessUid = query.get('business_uid')
      if (query.get('type') !== 'token' || !businessUid)
        return { status: 400, body: { error: 'invalid_request' } }
      // Unknown and uninstalled businesses are refused alike: 403 access_denied.
      if (!world.businesses.serves(businessUid)) return { status: 403, body: { error: 'access_denied' } }
      const expires_in = expiresIn()
      const access_token = tokens.issue('app', businessUid)
      return {
        status: 200,
        body: { access_token, token_type: 'Bearer', ...(expires_in === undefined ? {} : { expires_in }) },
      }
    },
  }

  return { register, read, token }
}

type Records = ReturnType<World['all']>

/** The reply of a platform that does not apply the filter. */
function mixedUp(own: Records, fault: ActiveFault, world: World): Records {
  if (fault.kind !== 'wrongRecord' && fault.kind !== 'extraRecords') return own
  const [right] = own
  const strangers = world.all().filter(({ uid }) => uid !== right?.uid)
  const template = right ?? strangers[0]
  // If the platform has only one subscription, invent another one: of the same business, and purchased.
  if (strangers.length === 0 && template) {
    strangers.push({ ...template, uid: `${template.uid}-other`, purchase_state: 'purchased' })
  }
  return fault.kind === 'wrongRecord' ? strangers.slice(0, 1) : [...strangers.slice(0, 3), ...own]
}

/** An error body in the most usual form of the platform API. */
export function refusal(status: number, code: string, message: string): Reply {
  return { status, body: { success: false, errors: [{ code, message }] } }
}

function parsed(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** A token known to the platform. `businessUid` is null for a directory token. */
export interface Token {
  kind: TokenKind
  businessUid: string | null
  expiresAt: number | null
}

/** The platform's tokens: opaque strings drawn from the seed. They expire after their lifetime, or all at once. */
export interface Tokens {
  issue(kind: TokenKind, businessUid: string | null): string
  /** The token of an Authorization header; undefined when it is missing, unknown or expired. */
  find(authorization: string | undefined): Token | undefined
  expireAll(): void
}

export function createTokens(options: {
  clock: Clock
  random: () => number
  lifetimeMs: () => number | undefined
}): Tokens {
  const { clock, random, lifetimeMs } = options
  const tokens = new Map<string, Token>()
  return {
    issue(kind, businessUid) {
      const value = `${kind}-${hexDigits(random, 40)}`
      const ms = lifetimeMs()
      tokens.set(value, { kind, businessUid, expiresAt: ms === undefined ? null : clock.now() + ms })
      return value
    },
    find(authorization) {
      const value = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1] ?? ''
      const token = tokens.get(value)
      if (token?.expiresAt == null || clock.now() < token.expiresAt) return token
      tokens.delete(value)
      return undefined
    },
    expireAll: () => tokens.clear(),
  }
}

/** A registered target of an event. `number` counts registrations, and is the same in every run with one seed. */
export interface Registration {
  number: number
  event: EventName
  target: string
  /** The business whose events it gets, for a business token; null (every business) for an app or directory token. */
  businessUid: string | null
}

/** All registrations: which target gets which events. */
export interface Registrations {
  /** `exists` when the same owner has registered this event and target before. */
  add(event: EventName, target: string, token: Pick<Token, 'kind' | 'businessUid'>): 'added' | 'exists'
  for(happening: Happening): Registration[]
}

export function createRegistrations(): Registrations {
  const all = new Map<string, Registration>()
  return {
    add(event, target, { kind, businessUid }) {
      // A registration with an app token belongs to the app, whichever business the token was issued for.
      const owner = kind === 'business' ? businessUid : null
      const key = JSON.stringify([event, target, kind, owner])
      if (all.has(key)) return 'exists'
      all.set(key, { number: all.size + 1, event, target, businessUid: owner })
      return 'added'
    },
    for(happening) {
      const business = 'record' in happening ? happening.record.business_uid : happening.businessUid
      const targets = new Set<string>()
      return [...all.values()].filter(({ event, target, businessUid }) => {
        if (event !== happening.name || (businessUid !== null && businessUid !== business)) return false
        // A target registered with several kinds of token gets the event once.
        return !targets.has(target) && targets.add(target)
      })
    },
  }
}

/** Whether the interface document lists the event. */
export function isEventName(name: unknown): name is EventName {
  return typeof name === 'string' && Object.hasOwn(EVENTS, name)
}

/** Whether a delivery can be sent there. */
export function isTargetUrl(value: unknown): value is string {
  return typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}
