import { identifierOf, parseRecord, updatedAtMs } from '../record.js'
import { isObject } from './error-replies.js'
import type { HttpReply } from './http.js'
import type { ReadResult } from './read-result.js'

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
