import type { ErrorCode } from '../base/errors.js'
import { identifierOf, parseRecord, type SubscriptionRecord, updatedAtMs } from '../base/record.js'
import { type HttpReply, isError, isObject, retryAfterMs } from './http.js'

/** The result of reading a subscription. A value, not an exception, because the caller acts on each kind. */
export type ReadResult =
  | { kind: 'found'; record: SubscriptionRecord }
  /** A good reply without a record of that uid. */
  | { kind: 'missing' }
  /** No reply, or an unusable one: it shows nothing about the business. */
  | { kind: 'outage'; code: ErrorCode }
  | { kind: 'throttled'; retryAfterMs?: number }
  /** The platform refuses this read, or shows a record of another business. */
  | { kind: 'refused'; code: 'platform_refused'; status?: number }
  | {
      kind: 'refused'
      code: 'platform_record_mismatch'
      /** The business in the records, if all of them name the same one. */
      recordBusinessUid?: string
    }
  /** The platform refuses a token for this business. */
  | { kind: 'token_refused'; status?: number }
  /** The platform refuses the app's own credentials, for every business. */
  | { kind: 'credentials_refused' }

/** An error that carries a result out of the token cache, where several callers may wait for it. */
export class ReadFailure extends Error {
  readonly result: ReadResult

  constructor(result: ReadResult) {
    super(result.kind)
    this.result = result
  }
}

/** The failure in a reply; undefined for a good reply with a JSON object. */
export function failureIn(
  reply: HttpReply,
  now: number,
): Exclude<ReadResult, { kind: 'found' | 'missing' }> | undefined {
  const { status } = reply
  if (status === 429) {
    const waitMs = retryAfterMs(reply.retryAfter, now)
    return { kind: 'throttled', ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) }
  }
  if (status >= 500 || status === 408) return { kind: 'outage', code: 'platform_failing' }
  if (status >= 400) return { kind: 'refused', code: 'platform_refused', status }
  if (!isObject(reply.json)) return { kind: 'outage', code: 'platform_reply_invalid' }
  // An error sent with 200 is an answer about this business too. If all get it, the comparison with the others shows that.
  return isError(reply) ? { kind: 'refused', code: 'platform_refused', status } : undefined
}

/** The requested record of a good reply: matched by uid, never by position. Of several, the one updated last. */
export function recordIn(
  { json }: HttpReply,
  { subscriptionUid, businessUid }: { subscriptionUid: string; businessUid: string },
): ReadResult {
  const { data } = json as Record<string, unknown>
  const list = isObject(data) ? data.subscriptions : undefined
  if (!Array.isArray(list)) return { kind: 'outage', code: 'platform_reply_invalid' }
  const matching = list.filter((each) => isObject(each) && identifierOf(each.uid) === subscriptionUid)
  if (matching.length === 0) return { kind: 'missing' }
  const records = matching.map(parseRecord).filter((record) => record !== undefined)
  if (records.length === 0) return { kind: 'outage', code: 'platform_reply_invalid' }
  const own = records.filter((record) => record.business_uid === businessUid)
  if (own.length === 0) {
    const [first, ...others] = new Set(records.map((record) => record.business_uid))
    const owner = first !== undefined && others.length === 0 ? { recordBusinessUid: first } : {}
    return { kind: 'refused', code: 'platform_record_mismatch', ...owner }
  }
  const newest = own.reduce((last, record) =>
    (updatedAtMs(record) || 0) > (updatedAtMs(last) || 0) ? record : last,
  )
  if (isDeeperThan(newest, MAX_RECORD_DEPTH)) return { kind: 'outage', code: 'platform_reply_invalid' }
  return { kind: 'found', record: newest }
}

/**
 * `JSON.parse` takes 500,000 levels, but `JSON.stringify` fails from about 5,000: a deeper record could not be
 * stored.
 */
const MAX_RECORD_DEPTH = 500

function isDeeperThan(value: unknown, levels: number): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []))
  }
  return false
}
