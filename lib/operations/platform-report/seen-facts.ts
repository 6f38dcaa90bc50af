import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../base/clock.js'
import type { HttpReply, PlatformCall } from '../../platform/http.js'
import { shapeOf } from './shapes.js'

/** What this process has seen of the platform since its marketplace was created. It is in memory only, and bounded. */
export interface ProcessFacts {
  /** When the marketplace was created: ISO 8601, UTC. */
  since: string
  /** How the events were sent, by their names, and `unrecognised`. */
  events: SentEvent[]
  /** The replies of the token endpoint with a token. */
  tokens: {
    /** How many there were. */
    count: number
    /** How many of them had a lifetime (`expires_in`) of each type: `number`, `string`, `none` or `other`. */
    expiresIn: Record<'number' | 'string' | 'none' | 'other', number>
    /** The shortest lifetime in seconds; null if none is known. */
    shortestSeconds: number | null
    /** The longest lifetime in seconds; null if none is known. */
    longestSeconds: number | null
  }
  /** The shapes of replies that refused a read or a token, at most 50; further shapes are not counted. */
  refusals: Refusal[]
}

/** How one event was sent. */
interface SentEvent {
  /** The registration name, or `unrecognised`. */
  event: string
  /** How many came. */
  deliveries: number
  /** Of how many the headers were examined: of the first 100, then of every 100th. */
  examined: number
  /** The names of their headers in lower case, at most 100. */
  headers: Named[]
  /** The first product of their `User-Agent`, such as `sender/1.2`, at most 20. */
  userAgents: Named[]
}

/** A name, and how often it was there. */
interface Named {
  /** The name, printable and of at most 64 characters. */
  name: string
  /** In how many of the examined deliveries it was. */
  count: number
}

/** A reply of the platform without the record or the token that was asked for. */
interface Refusal {
  /** The call: `read` of a subscription, or `token`. */
  call: PlatformCall
  /** The status of the reply. */
  status: number
  /** Its media type without parameters; null if there was none. */
  contentType: string | null
  /** The fields of its JSON with their types, such as `errors[].code: string`; empty if it is not JSON. */
  fields: string[]
  /** How many such replies there were. */
  count: number
}

const EXAMINED = 100
const MAX_HEADERS = 100
const MAX_AGENTS = 20
const MAX_REFUSALS = 50
const MAX_FIELDS = 50

/** Counts what is not stored. It costs a delivery one look in a map, and notes never throw: they would fail the delivery. */
export function createProcessFacts(clock: Pick<Clock, 'now'>) {
  const since = new Date(clock.now()).toISOString()
  // The names of events come from the registry, so there are few.
  const events = new Map<string, ReturnType<typeof newEvent>>()
  const tokens = { count: 0, expiresIn: { number: 0, string: 0, none: 0, other: 0 } }
  const lifetimes = { shortest: Number.POSITIVE_INFINITY, longest: Number.NEGATIVE_INFINITY }
  const refusals = new Map<string, Refusal>()

  return {
    /** A delivery was accepted. `event`: its name, '' if it was not recognised. */
    noteDelivery(event: string, headers: IncomingHttpHeaders) {
      const sent = events.get(event) ?? newEvent()
      if (sent.deliveries === 0) events.set(event, sent)
      if (++sent.deliveries > EXAMINED && sent.deliveries % EXAMINED !== 0) return
      sent.examined++
      try {
        for (const name of Object.keys(headers)) if (HEADER.test(name)) add(sent.headers, name, MAX_HEADERS)
        const [product] = PRODUCT.exec(String(headers['user-agent'] ?? '')) ?? []
        if (product) add(sent.userAgents, product, MAX_AGENTS)
      } catch {
        // A middleware has replaced the headers.
      }
    },

    /** The platform gave a token. `expiresIn`: the lifetime as it was sent. */
    noteToken(expiresIn: unknown) {
      tokens.count++
      tokens.expiresIn[typeOfLifetime(expiresIn)]++
      const seconds = typeof expiresIn === 'string' && expiresIn.trim() !== '' ? Number(expiresIn) : expiresIn
      if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return
      lifetimes.shortest = Math.min(lifetimes.shortest, seconds)
      lifetimes.longest = Math.max(lifetimes.longest, seconds)
    },

    /** The platform refused a call. */
    noteRefusal(call: PlatformCall, { status, contentType, json }: HttpReply) {
      const all = shapeOf(json).map(({ path, type }) => `${path === '' ? 'body' : path}: ${type}`)
      const fields = [...new Set(all)].sort().slice(0, MAX_FIELDS)
      const [type = null] = MEDIA_TYPE.exec(contentType ?? '') ?? []
      const key = JSON.stringify([call, status, type, fields])
      const known = refusals.get(key)
      if (known) known.count++
      else if (refusals.size < MAX_REFUSALS)
        refusals.set(key, { call, status, contentType: type, fields, count: 1 })
    },

    facts(): ProcessFacts {
      const isKnown = lifetimes.shortest <= lifetimes.longest
      return {
        since,
        events: [...events].map(([event, { headers, userAgents, ...numbers }]) => ({
          event: event || 'unrecognised',
          ...numbers,
          headers: namesOf(headers),
          userAgents: namesOf(userAgents),
        })),
        tokens: {
          count: tokens.count,
          expiresIn: { ...tokens.expiresIn },
          shortestSeconds: isKnown ? lifetimes.shortest : null,
          longestSeconds: isKnown ? lifetimes.longest : null,
        },
        refusals: [...refusals.values()].map((each) => ({ ...each, fields: [...each.fields] })),
      }
    },
  }
}

export type ProcessNotes = Omit<ReturnType<typeof createProcessFacts>, 'facts'>

/** The characters of a token (RFC 9110, 5.6.2). Servers give names in lower case. */
const HEADER = /^[\w!#$%&'*+.^`|~-]{1,64}$/
/** The first product and its version. A comment may say anything. */
const PRODUCT = /^[A-Za-z][\w.-]{0,39}(\/[\w.-]{1,20})?(?=\s|$)/
const MEDIA_TYPE = /^[a-z]+\/[\w.+-]{1,60}(?=\s*(;|$))/i

function newEvent() {
  return {
    ...{ deliveries: 0, examined: 0 },
    headers: new Map<string, number>(),
    userAgents: new Map<string, number>(),
  }
}

function add(names: Map<string, number>, name: string, most: number) {
  const count = names.get(name)
  if (count !== undefined || names.size < most) names.set(name, (count ?? 0) + 1)
}

function namesOf(names: ReadonlyMap<string, number>): Named[] {
  return [...names].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count)
}

function typeOfLifetime(expiresIn: unknown) {
  if (expiresIn === undefined || expiresIn === null) return 'none'
  if (typeof expiresIn === 'number') return 'number'
  return typeof expiresIn === 'string' ? 'string' : 'other'
}
