import { retryAfterMs } from '../backoff.js'
import type { ErrorCode } from '../errors.js'
import type { SubscriptionRecord } from '../record.js'
import { isError, isObject } from './error-replies.js'
import type { HttpReply } from './http.js'

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
