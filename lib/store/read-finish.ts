import type { ReadClaim, ReadFinish } from './reads.js'

/** The businesses of a finish, sorted by bytes: every transaction that holds several names takes them in this order. */
export function businessesOf({ subscription }: ReadClaim, { found, changes = [] }: ReadFinish): string[] {
  const uids = [subscription.businessUid, ...changes.map(({ businessUid }) => businessUid)]
  if (found?.record) uids.push(found.record.business_uid)
  return [...new Set(uids)].sort()
}

/** Whether the read changed the subscription, so that an earlier decision must not be used again. */
export function isNews({ subscription }: ReadClaim, { found }: ReadFinish): boolean {
  if (!found) return false
  return (
    found.gone !== subscription.gone || JSON.stringify(found.record) !== JSON.stringify(subscription.record)
  )
}
