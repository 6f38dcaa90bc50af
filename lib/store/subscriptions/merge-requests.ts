import { DAY } from '../../base/clock.js'
import { CAUSES, type Cause, type RefreshRequest } from '../port/store.js'
import { byBytes } from '../sql/lock-order.js'

/** A refresh request, and its cause. The cause of an event outranks `track`, `refresh` and imports. */
export interface Requested {
  request: RefreshRequest
  cause: Cause
}

/** Requests of the kind `subscription` for the same business. */
interface NamedRow {
  uid: string
  business: string
  /** The item of the first. */
  purchasable: string | null
  times: number
  /** The place of the strongest cause in `CAUSES`. */
  cause: number
  /** 1: every request is quiet. */
  quiet: 0 | 1
  /** 1: an `update` is among them. */
  updates: 0 | 1
}

/** Requests of the kind `stored`. */
interface StoredRow {
  uid: string
  times: number
  cause: number
}

/** Requests of the kind `business`, and the newest install or uninstall among them: all have a date, or none has. */
interface BusinessRow {
  business: string
  installed: 0 | 1 | null
  at: number | null
  /** When it arrived, if it has no date. */
  arrived: number | null
  /** 1: an uninstall is among them, also one that is not the newest. */
  updates: 0 | 1
  wall: number
  times: number
  cause: number
}

/** What events announce for a subscription of one business, apart from the updates in a `NamedRow`. */
interface RecordRow {
  uid: string
  business: string
  /** 1: by the last record the business may not use the app. 0: it may. Null: there is no record. */
  ends: 0 | 1 | null
  /** 1: an `update` or an `end` is among them. */
  updates: 0 | 1
}

/** The statements of a round, in their order. */
const KINDS = ['subscription', 'stored', 'business'] as const

/**
 * How far a date of the platform may be ahead of the wall clock of a process. A later one is a mistake or forged, and
 * would hold up all that follow.
 */
export const DATE_TOLERANCE_MS = DAY

export const NAMED_COLUMNS = {
  uid: 'text',
  business: 'text',
  purchasable: 'text',
  times: 'integer',
  cause: 'integer',
  quiet: 'integer',
  updates: 'integer',
} as const
export const STORED_COLUMNS = { uid: 'text', times: 'integer', cause: 'integer' } as const
export const RECORD_COLUMNS = {
  uid: 'text',
  business: 'text',
  ends: 'integer',
  updates: 'integer',
} as const
export const BUSINESS_COLUMNS = {
  business: 'text',
  installed: 'integer',
  at: 'integer',
  arrived: 'integer',
  updates: 'integer',
  wall: 'integer',
  times: 'integer',
  cause: 'integer',
} as const

/**
 * The requests of a batch as few rows, which end as if each request had come in a batch of its own, in their order. Rows of a
 * round are written by one statement for each kind, which changes a row of the table only once. Most batches are one round.
 * The rows are sorted by bytes, so that two transactions lock the same ones in the same order.
 *
 * @param wall the time by the wall clock of this process
 */
export function mergeRequests(requests: readonly Requested[], wall: number) {
  const rounds: ReturnType<typeof newRound>[] = []
  const records = new Map<string, RecordRow>()
  const roundOf = createOrder(wall)
  for (const each of requests) {
    const at = roundOf(each)
    rounds[at] ??= newRound()
    addRequest(rounds[at], each, wall)
    addRecord(records, each.request)
  }
  return {
    rounds: rounds.map(({ named, stored, businesses }) => ({
      named: sorted(named),
      stored: sorted(stored),
      businesses: sorted(businesses),
    })),
    records: sorted(records),
  }
}

function newRound() {
  return {
    named: new Map<string, NamedRow>(),
    stored: new Map<string, StoredRow>(),
    businesses: new Map<string, BusinessRow>(),
  }
}

/**
 * Finds the round of each request: the first in which it comes after those before it whose order matters. These are:
 *
 * - those of the same subscription, since the first business decides and a later one becomes the candidate;
 * - for a business, the requests that may have added one of its subscriptions, and the reverse: a new row has nothing
 *   that came before it;
 * - of the same business, an install with a date beside one without;
 * - for a business, those of any subscription, and the reverse, unless both are of events: `track` and `refresh` delay a read
 *   differently, and give it another class.
 *
 * Requests that a statement treats as one share a row.
 */
function createOrder(wall: number) {
  /** The last place of each name: the round and its statement, as one number. */
  const places = new Map<string, number>()
  /** What requests have in common that share the last row of a key. */
  const rows = new Map<string, string>()

  return function roundOf({ request, cause }: Requested): number {
    const statement = KINDS.indexOf(request.kind)
    const by = cause === 'event' ? 'event' : 'call'
    const { key, row, marks, follows } = orderOf(request, by, wall)
    const isShared = rows.get(key) === row
    let round = isShared ? Math.floor((places.get(key) ?? 0) / KINDS.length) : 0
    for (const name of isShared ? follows : [key, ...follows]) {
      const place = places.get(name)
      if (place === undefined) continue
      const isBehind = place % KINDS.length < statement
      round = Math.max(round, Math.floor(place / KINDS.length) + (isBehind ? 0 : 1))
    }
    rows.set(key, row)
    const place = round * KINDS.length + statement
    for (const name of [key, ...marks]) places.set(name, Math.max(places.get(name) ?? 0, place))
    return round
  }
}

/** `marks`: the names under which a request is found by later ones. `follows`: the names of those that it comes after. */
function orderOf(request: RefreshRequest, by: 'event' | 'call', wall: number) {
  const { kind, businessUid: business } = request
  const others = by === 'event' ? ['call'] : ['event', 'call']
  if (kind === 'business') {
    const { install } = request
    const dated = install ? String(isDated(install.at, wall)) : 'none'
    return {
      key: `business ${business}`,
      row: `${by} ${dated}`,
      marks: [`businesses by ${by}`],
      follows: [`subscriptions of ${business}`, ...others.map((other) => `subscriptions by ${other}`)],
    }
  }
  const isNamed = kind === 'subscription'
  return {
    key: `subscription ${request.subscriptionUid}`,
    row: isNamed ? `${by} ${business}` : by,
    marks: [`subscriptions by ${by}`, ...(isNamed ? [`subscriptions of ${business}`] : [])],
    follows: [
      ...others.map((other) => `businesses by ${other}`),
      ...(isNamed ? [`business ${business}`] : []),
    ],
  }
}

function addRequest(round: ReturnType<typeof newRound>, { request, cause: name }: Requested, wall: number) {
  const cause = CAUSES.indexOf(name)
  if (request.kind === 'subscription') {
    const { subscriptionUid: uid, businessUid: business, purchasableUid, quiet, announces } = request
    const { times, purchasable, ...before } = round.named.get(uid) ?? {
      ...{ times: 0, purchasable: purchasableUid, cause, quiet: 1, updates: 0 },
    }
    round.named.set(uid, {
      ...{ uid, business, purchasable, times: times + 1, cause: Math.min(before.cause, cause) },
      quiet: before.quiet === 1 && quiet === true ? 1 : 0,
      updates: before.updates === 1 || announces === 'update' ? 1 : 0,
    })
  } else if (request.kind === 'stored') {
    const uid = request.subscriptionUid
    const before = round.stored.get(uid) ?? { times: 0, cause }
    round.stored.set(uid, { uid, times: before.times + 1, cause: Math.min(before.cause, cause) })
  } else {
    const { businessUid: business, install } = request
    const before = round.businesses.get(business) ?? {
      ...{ business, installed: null, at: null, arrived: null, updates: 0, wall, times: 0, cause },
    }
    const last = install && newest(before, install)
    round.businesses.set(business, {
      ...before,
      ...last,
      updates: before.updates === 1 || install?.installed === false ? 1 : 0,
      times: before.times + 1,
      cause: Math.min(before.cause, cause),
    })
  }
}

/** The install or uninstall, if it is newer than those before it: a statement compares it with the row in the same way. */
function newest(before: BusinessRow, { installed, at }: { installed: boolean; at: number | null }) {
  const given = { installed: installed ? 1 : 0 } as const
  if (!isDated(at, before.wall)) return { ...given, arrived: before.wall }
  return at < (before.at ?? at) ? {} : { ...given, at }
}

function isDated(at: number | null, wall: number): at is number {
  return at !== null && at <= wall + DATE_TOLERANCE_MS
}

function addRecord(records: Map<string, RecordRow>, request: RefreshRequest) {
  if (request.kind === 'business' || request.announces === undefined) return
  const { kind, subscriptionUid: uid, businessUid: business, announces } = request
  if (kind === 'subscription' && announces === 'update') return
  // No identifier contains NUL.
  const key = `${uid}\0${business}`
  const before = records.get(key)
  const ends = announces === 'update' ? (before?.ends ?? null) : announces === 'end' ? 1 : 0
  const updates = before?.updates === 1 || announces !== 'access' ? 1 : 0
  records.set(key, { uid, business, ends, updates })
}

function sorted<Row>(rows: Map<string, Row>): Row[] {
  return [...rows].sort(([a], [b]) => byBytes(a, b)).map(([, row]) => row)
}
