import { DAY } from '../../base/clock.js'
import { CAUSES, type Cause, type RefreshRequest } from '../port/store.js'

/** A refresh request, and its cause. Requests of events precede those of `track`, `refresh` and imports. */
export interface Requested {
  request: RefreshRequest
  cause: Cause
}

/** The requests for a subscription that name its business: of the kind `subscription`. */
interface NamedRow {
  uid: string
  business: string
  purchasable: string | null
  times: number
  /** The place of the cause in `CAUSES`. */
  cause: number
  /** 1: every request is quiet. */
  quiet: 0 | 1
  /** 1: an `update` is among them. */
  updates: 0 | 1
}

/** The requests for a subscription if the store has it: of the kind `stored`. */
interface StoredRow {
  uid: string
  times: number
  cause: number
}

/** The last record among the events that name a subscription. `ends`: by that record the business may not use the app. */
interface RecordRow {
  uid: string
  business: string
  ends: 0 | 1
}

/** The requests for all subscriptions of a business, and the newest install or uninstall among them. */
interface BusinessRow {
  business: string
  installed: 0 | 1 | null
  /** The latest date; null: none has one. */
  at: number | null
  /** When those without a date arrived; null: all have one. */
  arrived: number | null
  wall: number
  times: number
  cause: number
}

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
export const RECORD_COLUMNS = { uid: 'text', business: 'text', ends: 'integer' } as const
export const BUSINESS_COLUMNS = {
  business: 'text',
  installed: 'integer',
  at: 'integer',
  arrived: 'integer',
  wall: 'integer',
  times: 'integer',
  cause: 'integer',
} as const

/**
 * The requests of a batch, merged into one row for each subscription or business, since a statement may change a row
 * only once. The rows are sorted, so that two transactions lock the same ones in the same order.
 *
 * @param wall the time by the wall clock of this process
 */
export function mergeRequests(requests: readonly Requested[], wall: number) {
  const named = new Map<string, NamedRow>()
  const stored = new Map<string, StoredRow>()
  const businesses = new Map<string, BusinessRow>()
  const records = new Map<string, RecordRow>()
  for (const each of requests) {
    const { request } = each
    const cause = CAUSES.indexOf(each.cause)
    const announces = 'announces' in request ? request.announces : undefined
    if ('subscriptionUid' in request && (announces === 'end' || announces === 'access')) {
      const { subscriptionUid: uid, businessUid: business } = request
      records.set(uid, { uid, business, ends: announces === 'end' ? 1 : 0 })
    }
    if (request.kind === 'subscription') {
      const { subscriptionUid: uid, businessUid: business, purchasableUid: purchasable } = request
      const before = named.get(uid)
      const times = (before?.times ?? 0) + 1
      const updates = before?.updates === 1 || announces === 'update' ? 1 : 0
      const quiet = request.quiet === true && (before?.quiet ?? 1) === 1 ? 1 : 0
      named.set(uid, { uid, business, purchasable, times, cause: stronger(before, cause), quiet, updates })
    } else if (request.kind === 'stored') {
      const uid = request.subscriptionUid
      const before = stored.get(uid)
      stored.set(uid, { uid, times: (before?.times ?? 0) + 1, cause: stronger(before, cause) })
    } else {
      const { businessUid: business, install } = request
      const before = businesses.get(business) ?? {
        ...{ business, installed: null, at: null, arrived: null, wall, times: 0, cause },
      }
      const last = install && newest(before, install)
      const times = before.times + 1
      businesses.set(business, { ...before, ...last, times, cause: stronger(before, cause) })
    }
  }
  return {
    named: sorted(named),
    stored: sorted(stored),
    businesses: sorted(businesses),
    records: sorted(records),
  }
}

/** The install or uninstall, if it is newer than those before it: a statement compares it with the row in the same way. */
function newest(before: BusinessRow, { installed, at }: { installed: boolean; at: number | null }) {
  const { wall, arrived } = before
  const given = { installed: installed ? 1 : 0 } as const
  if (at === null || at > wall + DATE_TOLERANCE_MS) return { ...given, arrived: wall }
  const isOlder = at < (before.at ?? at) || at < (arrived ?? at)
  return isOlder ? {} : { ...given, at }
}

function stronger(before: { cause: number } | undefined, cause: number): number {
  return Math.min(before?.cause ?? cause, cause)
}

function sorted<Row>(rows: Map<string, Row>): Row[] {
  return [...rows.keys()].sort().map((key) => rows.get(key) as Row)
}
