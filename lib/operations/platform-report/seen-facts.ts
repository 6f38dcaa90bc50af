import type { IncomingHttpHeaders } from 'node:http'
import { type Clock, MINUTE, SECOND } from '../../base/clock.js'
import { withDeadline } from '../../base/waiting.js'
import { createRepeats } from '../../events/fields.js'
import type { HttpReply, PlatformCall } from '../../platform/http.js'
import type { Store } from '../../store/port/store.js'
import { shapeOf } from './shapes.js'

/** What the processes on the database have seen of the platform that no delivery and no record has. */
export interface SeenFacts {
  /** Since when: ISO 8601, UTC. Null if nothing was seen. */
  since: string | null
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
  /** Of how many the headers were examined: in each ten minutes of a process of the first 100, then of every 100th. */
  examined: number
  /** The names of their headers in lower case, at most 100. A name that may be a value is `*`. */
  headers: Named[]
  /** The first product of their `User-Agent`, such as `sender/1.2`, at most 20. What may be a value is `*`: `sender/*`. */
  userAgents: Named[]
}

/** A name, and how often it was there. */
interface Named {
  /** The name, printable and of at most 64 characters. */
  name: string
  /** In how many of the examined deliveries it was. */
  count: number
}

/** A reply of the platform without the record or the token that was asked for. A redirect is not followed, and none. */
interface Refusal {
  /** The call: `read` of a subscription, or `token`. */
  call: PlatformCall
  /** The status of the reply. */
  status: number
  /** Its media type without parameters; null if there was none, or one that may be a value. */
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
/** What a process has seen is stored after this time at the latest, and when it closes. */
const SAVED_AFTER_MS = 10 * MINUTE
/** Closing waits no longer for it. */
const LAST_SAVE_MS = SECOND

/**
 * Counts what is not stored otherwise. It costs a delivery one look in a map, and notes never throw: they would fail the
 * delivery. Facts are for people: a process that dies loses those of its last minutes.
 */
export function createSeenFacts(options: {
  store: Pick<Store, 'platformFacts' | 'addPlatformFacts'>
  /** What no name may repeat: the delivery secrets, and the id and the secret of the app. */
  secrets: readonly string[]
  clock: Clock
}) {
  const { store, secrets, clock } = options
  const since = new Date(clock.now()).toISOString()
  let unsaved = newFacts()
  let timer: unknown
  let saving: Promise<void> = Promise.resolve()

  function changed() {
    timer ??= clock.setTimeout(() => {
      save().catch(() => {})
    }, SAVED_AFTER_MS)
  }

  /** One at a time: who asks meanwhile gets what the one under way stores too. */
  function save(): Promise<void> {
    saving = saving.catch(() => {}).then(saveUnsaved)
    return saving
  }

  async function saveUnsaved() {
    if (timer === undefined) return
    clock.clearTimeout(timer)
    timer = undefined
    const saved = shown(unsaved, since)
    unsaved = newFacts()
    try {
      await store.addPlatformFacts((stored) =>
        JSON.stringify(sum(stored === null ? [saved] : [JSON.parse(stored), saved])),
      )
    } catch (error) {
      addTo(unsaved, saved)
      changed()
      throw error
    }
  }

  return {
    /** A delivery was accepted. `event`: its name, '' if it was not recognised. `identifiersOf` returns those that it names. */
    noteDelivery(event: string, headers: IncomingHttpHeaders, identifiersOf: () => readonly string[]) {
      const sent = eventOf(unsaved, event || 'unrecognised')
      changed()
      if (++sent.deliveries > EXAMINED && sent.deliveries % EXAMINED !== 0) return
      sent.examined++
      try {
        const isHidden = createRepeats([], [...secrets, ...identifiersOf()])
        const names = Object.keys(headers).map((name) => (isHeader(name, isHidden) ? name : '*'))
        for (const name of new Set(names)) add(sent.headers, name, MAX_HEADERS)
        const agent = headers['user-agent']
        if (agent) add(sent.userAgents, productOf(String(agent), isHidden), MAX_AGENTS)
      } catch {
        // A middleware has replaced the headers.
      }
    },

    /** The platform gave a token. `expiresIn`: the lifetime as it was sent. */
    noteToken(expiresIn: unknown) {
      const { tokens } = unsaved
      changed()
      tokens.count++
      tokens.expiresIn[typeOfLifetime(expiresIn)]++
      const seconds = typeof expiresIn === 'string' && expiresIn.trim() !== '' ? Number(expiresIn) : expiresIn
      if (typeof seconds === 'number' && Number.isFinite(seconds)) addLifetimes(tokens, seconds, seconds)
    },

    /** The platform refused a call. `sent`: what its reply may repeat. */
    noteRefusal(call: PlatformCall, { status, contentType, json }: HttpReply, sent: readonly string[]) {
      const isHidden = createRepeats([], [...secrets, ...sent])
      const all = shapeOf(json, isHidden).map(({ path, type }) => `${path === '' ? 'body' : path}: ${type}`)
      const fields = [...new Set(all)].sort().slice(0, MAX_FIELDS)
      addRefusal(unsaved, { call, status, contentType: mediaTypeOf(contentType, isHidden), fields, count: 1 })
      changed()
    },

    /** Those of all processes, as far as they are stored, with all of this one. */
    async facts(): Promise<SeenFacts> {
      await save()
      const stored = await store.platformFacts()
      return stored === null ? shown(newFacts(), null) : JSON.parse(stored)
    },

    /** Stores what is not stored, if the store takes it soon. */
    async close() {
      await withDeadline(save(), LAST_SAVE_MS, clock, () => new Error('the store did not answer')).catch(
        () => {},
      )
      clock.clearTimeout(timer)
    },
  }
}

export type SeenNotes = Pick<ReturnType<typeof createSeenFacts>, 'noteDelivery'>

interface Facts {
  // The names of events come from the registry, so there are few.
  events: Map<
    string,
    { deliveries: number; examined: number; headers: Map<string, number>; userAgents: Map<string, number> }
  >
  tokens: SeenFacts['tokens']
  refusals: Map<string, Refusal>
}

function newFacts(): Facts {
  return {
    events: new Map(),
    tokens: {
      ...{ count: 0, shortestSeconds: null, longestSeconds: null },
      expiresIn: { number: 0, string: 0, none: 0, other: 0 },
    },
    refusals: new Map(),
  }
}

function eventOf({ events }: Facts, event: string) {
  const known = events.get(event)
  if (known) return known
  const sent = {
    deliveries: 0,
    examined: 0,
    headers: new Map<string, number>(),
    userAgents: new Map<string, number>(),
  }
  events.set(event, sent)
  return sent
}

function addLifetimes(tokens: Facts['tokens'], shortest: number | null, longest: number | null) {
  const known = (...each: (number | null)[]) => each.filter((seconds) => seconds !== null)
  if (shortest !== null) tokens.shortestSeconds = Math.min(...known(tokens.shortestSeconds, shortest))
  if (longest !== null) tokens.longestSeconds = Math.max(...known(tokens.longestSeconds, longest))
}

function addRefusal({ refusals }: Facts, { count, ...refusal }: Refusal) {
  const key = JSON.stringify(refusal)
  const known = refusals.get(key)
  if (known) known.count += count
  else if (refusals.size < MAX_REFUSALS) refusals.set(key, { ...refusal, count })
}

function add(names: Map<string, number>, name: string, most: number, count = 1) {
  const before = names.get(name)
  if (before !== undefined || names.size < most) names.set(name, (before ?? 0) + count)
}

function addTo(facts: Facts, { events, tokens, refusals }: SeenFacts) {
  for (const { event, deliveries, examined, headers, userAgents } of events) {
    const sent = eventOf(facts, event)
    sent.deliveries += deliveries
    sent.examined += examined
    for (const { name, count } of headers) add(sent.headers, name, MAX_HEADERS, count)
    for (const { name, count } of userAgents) add(sent.userAgents, name, MAX_AGENTS, count)
  }
  facts.tokens.count += tokens.count
  for (const type of LIFETIMES) facts.tokens.expiresIn[type] += tokens.expiresIn[type]
  addLifetimes(facts.tokens, tokens.shortestSeconds, tokens.longestSeconds)
  for (const refusal of refusals) addRefusal(facts, refusal)
}

/** The facts of several times. A process that began later may have stored its facts first. */
function sum(all: readonly SeenFacts[]): SeenFacts {
  const facts = newFacts()
  for (const each of all) addTo(facts, each)
  const [since = null] = all.flatMap((each) => each.since ?? []).sort()
  return shown(facts, since)
}

function shown({ events, tokens, refusals }: Facts, since: string | null): SeenFacts {
  const namesOf = (names: ReadonlyMap<string, number>) =>
    [...names].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count)
  return {
    since,
    events: [...events].map(([event, { headers, userAgents, ...numbers }]) => ({
      ...{ event, ...numbers },
      ...{ headers: namesOf(headers), userAgents: namesOf(userAgents) },
    })),
    tokens: { ...tokens, expiresIn: { ...tokens.expiresIn } },
    refusals: [...refusals.values()],
  }
}

/** Words of letters, with at most two digits in all: an identifier has more. Servers give names in lower case. */
const HEADER = /^[A-Za-z_]+\d{0,2}(-[A-Za-z_]+\d{0,2}){0,7}$/
/** The first product. A comment may say anything. */
const PRODUCT = /^([A-Za-z][A-Za-z._-]{0,39}\d{0,2})(\/\S{1,40})?(?=\s|$)/
/** One to three short numbers: four may be an address, and a long one an identifier. */
const VERSION = /^\/\d{1,3}(\.\d{1,3}){0,2}$/
const MEDIA_TYPE = /^[a-z]{1,20}\/[a-z]{1,20}([.+-][a-z]{1,20}){0,4}(?=\s*(;|$))/i

const isHeader = (name: string, isHidden: (name: string) => boolean) =>
  name.length <= 64 && HEADER.test(name) && !isHidden(name)

function productOf(agent: string, isHidden: (name: string) => boolean): string {
  const [whole, product, version = ''] = PRODUCT.exec(agent) ?? []
  if (whole === undefined || isHidden(whole)) return '*'
  return version === '' || VERSION.test(version) ? whole : `${product}/*`
}

function mediaTypeOf(contentType: string | null, isHidden: (name: string) => boolean): string | null {
  const [type] = MEDIA_TYPE.exec(contentType ?? '') ?? []
  return type === undefined || isHidden(type) ? null : type
}

const LIFETIMES = ['number', 'string', 'none', 'other'] as const

function typeOfLifetime(expiresIn: unknown): (typeof LIFETIMES)[number] {
  if (expiresIn === undefined || expiresIn === null) return 'none'
  if (typeof expiresIn === 'number') return 'number'
  return typeof expiresIn === 'string' ? 'string' : 'other'
}
