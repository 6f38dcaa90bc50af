import type { FoundByRead } from '../journal/journal.js'
import type { NewEntitlement, ReadClaim, ReadFinish } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, sql } from '../sql/sql.js'

/**
 * The subscriptions of these finishes that are quiet now. An event may have ended that since the claim, so the rows are
 * read. Locks the rows of all finishes, in the order of all transactions: the statements that write them may each leave some
 * out.
 */
export async function quietAmong(
  engine: Pick<Engine, 'isOneOf' | 'forUpdate' | 'holdNames'>,
  trx: Connection,
  finishes: readonly { claim: ReadClaim; finish: ReadFinish }[],
): Promise<ReadonlySet<string>> {
  const isFirstRead = ({ claim, finish }: (typeof finishes)[0]) =>
    claim.subscription.record === null && finish.found !== undefined
  const isSeveral = engine.holdNames !== undefined && finishes.length > 1
  if (!isSeveral && !finishes.some(isFirstRead)) return new Set()
  const rows = await sql<{ uid: string; quiet: number }>`
    select subscription_uid as uid, quiet_until_read as quiet from subscriptions
    where ${engine.isOneOf(
      'subscription_uid',
      finishes.map(({ claim }) => claim.id),
    )} order by subscription_uid ${engine.forUpdate}`.execute(trx)
  return new Set(rows.flatMap(({ uid, quiet }) => (quiet === 1 ? uid : [])))
}

/**
 * These reads, as they are in the store now, with what they change for their businesses: an item that another subscription gives
 * too neither begins nor ends. The caller holds the names of the businesses, so that of two subscriptions that end at once
 * the later one sees the end of the other.
 */
export async function withItemChanges(
  engine: Pick<Engine, 'isOneOf'>,
  trx: Connection,
  reads: readonly FoundByRead[],
): Promise<readonly FoundByRead[]> {
  // What a quiet read finds is known to the app, so it counts as if it had been there.
  const changing = reads.filter(({ quiet, entitlements }) => !quiet && entitlements.length > 0)
  if (changing.length === 0) return reads
  const flips = changing.flatMap(({ entitlements }) => entitlements)
  const others = await sql<{ business: string; item: string }>`
    select distinct business_uid as business, purchasable_uid as item from subscriptions
    where ${engine.isOneOf('business_uid', [...new Set(flips.map(({ businessUid }) => businessUid))])} and unread = 0 and entitles = 1
      and not (${engine.isOneOf(
        'subscription_uid',
        changing.map(({ subscriptionUid }) => subscriptionUid),
      )})`.execute(trx)
  const given = new Map<string, Set<string>>()
  for (const { business, item } of others) given.set(business, (given.get(business) ?? new Set()).add(item))
  return reads.map((read) => ({ ...read, entitlements: itemChanges(read.entitlements, flips, given) }))
}

/**
 * Those of `all` flips of a transaction, with the items that begin or end with them. The items in `given` are given to a
 * business by other subscriptions before and after it.
 */
export function itemChanges(
  some: readonly NewEntitlement[],
  all: readonly NewEntitlement[],
  given: ReadonlyMap<string, ReadonlySet<string>>,
): NewEntitlement[] {
  return some.flatMap((flip) => {
    const ofBusiness = all.filter(({ businessUid }) => businessUid === flip.businessUid)
    const isGiven = (item: string) => given.get(flip.businessUid)?.has(item) === true
    // One subscription may begin with the item with which another one ends.
    const ends = (item: string) => !isGiven(item) && ofBusiness.every(({ after }) => after !== item)
    const begins = (item: string) => !isGiven(item) && ofBusiness.every(({ before }) => before !== item)
    const before = flip.before !== null && ends(flip.before) ? flip.before : null
    const after = flip.after !== null && begins(flip.after) ? flip.after : null
    return before === null && after === null ? [] : [{ ...flip, before, after }]
  })
}
