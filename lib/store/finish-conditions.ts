import type { Engine } from './engine.js'
import { type Connection, sql } from './sql.js'
import type { ReadClaim, ReadFinish } from './store.js'

/** The subscriptions of these claims that are quiet now. An event may have ended that since the claim, so the rows are read. */
export async function quietAmong(
  engine: Pick<Engine, 'isOneOf' | 'forUpdate'>,
  trx: Connection,
  claims: readonly ReadClaim[],
): Promise<ReadonlySet<string>> {
  const firstReads = claims.filter(({ subscription }) => subscription.record === null)
  if (firstReads.length === 0) return new Set()
  const rows = await sql<{ uid: string; quiet: number }>`
    select subscription_uid as uid, quiet_until_read as quiet from subscriptions
    where ${engine.isOneOf(
      'subscription_uid',
      firstReads.map(({ id }) => id),
    )} order by subscription_uid ${engine.forUpdate}`.execute(trx)
  return new Set(rows.flatMap(({ uid, quiet }) => (quiet === 1 ? uid : [])))
}

/** Whether the business that the record names was erased during the read. The subscription is then read again. */
export async function isErasedSince(
  trx: Connection,
  claim: ReadClaim,
  { found }: ReadFinish,
): Promise<boolean> {
  const businessUid = found?.record?.business_uid
  if (businessUid === undefined || businessUid === claim.subscription.businessUid) return false
  const rows = await sql`
    select 1 from journal where business_uid = ${businessUid} and kind = 'action' and name = 'erase'
      and received_at >= ${claim.claimedAt} limit 1`.execute(trx)
  return rows.length > 0
}
