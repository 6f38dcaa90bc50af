import type { ReadClaim, ReadFinish } from './reads.js'
import type { Hint } from './store.js'

/** The businesses of a finish, sorted by bytes: every transaction that holds several names takes them in this order. */
export function businessesOf({ subscription }: ReadClaim, { found, changes = [] }: ReadFinish): string[] {
  const uids = [subscription.businessUid, ...changes.map(({ businessUid }) => businessUid)]
  if (found?.record) uids.push(found.record.business_uid)
  return [...new Set(uids)].sort()
}

/**
 * The hints that must not be lost once the result is committed: an answer from a read before this one must not be used
 * again. The first read of a subscription supersedes no yes.
 */
export function hintsOfNews(claim: ReadClaim, finish: ReadFinish): Hint[] {
  if (claim.subscription.record === null || !isNews(claim, finish)) return []
  return businessesOf(claim, finish).map((businessUid) => ({
    kind: 'decided',
    businessUid,
    superseded: true,
  }))
}

/** Whether the read changed the subscription, so that an earlier decision must not be used again. */
export function isNews({ subscription }: ReadClaim, { found }: ReadFinish): boolean {
  if (!found) return false
  return (
    found.gone !== subscription.gone || JSON.stringify(found.record) !== JSON.stringify(subscription.record)
  )
}
