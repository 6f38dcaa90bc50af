import { createBatches } from '../../base/batches.js'
import type { WrittenChange } from '../journal/journal.js'
import type { Hint, ReadClaim, ReadFinish } from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, sql } from '../sql/sql.js'
import { createFinishWrites, type Finished } from './write-finishes.js'

/** The reads of one transaction: on SQLite the event loop waits for it (16 with a change each take 3 ms). */
const BATCH = 16

interface Finish {
  claim: ReadClaim
  finish: ReadFinish
  /** The businesses of the finish, sorted by bytes. */
  businesses: string[]
}

/**
 * Writes the results of reads, several in one transaction. With 32 concurrent reads on SQLite that takes two thirds of
 * the CPU of a transaction for each.
 */
export function createReadFinishes(options: {
  engine: Pick<
    Engine,
    | 'holdNames'
    | 'clock'
    | 'compile'
    | 'given'
    | 'queriesOf'
    | 'isOneOf'
    | 'forUpdate'
    | 'announceIn'
    | 'isDataError'
  >
  write: Engine['write']
  insertChanges(trx: Connection, changes: readonly WrittenChange[]): Promise<void>
  /** Called in the transaction that writes a record read with this app's token. */
  recordRead(trx: Connection): Promise<void>
}) {
  const { engine, write, insertChanges, recordRead } = options
  const finishAll = createFinishWrites(engine)

  const batches = createBatches<Finish, Finished>({
    /** No two of one subscription: one statement changes a row once. */
    take() {
      const taken = new Set<string>()
      return ({ claim: { id } }) => {
        if (taken.size >= BATCH || taken.has(id)) return false
        taken.add(id)
        return true
      }
    },
    async write(batch) {
      // Every transaction that locks several rows locks them in this order.
      const sorted = [...batch].sort((a, b) => (a.claim.id < b.claim.id ? -1 : 1))
      const finished = await write((trx) => writeAll(trx, sorted))
      return batch.map((each) => finished[sorted.indexOf(each)] as Finished)
    },
    split: (error) => engine.isDataError(error),
  })

  async function writeAll(trx: Connection, batch: readonly Finish[]): Promise<Finished[]> {
    const changing = batch.filter(({ finish }) => (finish.changes ?? []).length > 0)
    // A read that names another business must not go on while that business is erased.
    const held = batch.filter(({ businesses }) => businesses.length > 1)
    if (held.length > 0)
      await engine.holdNames?.(trx, [...new Set(held.flatMap(({ businesses }) => businesses))].sort())
    const quiet = await quietAmong(
      engine,
      trx,
      changing.map(({ claim }) => claim),
    )
    const erased = new Set<ReadClaim>()
    for (const { claim, finish } of batch) if (await isErasedSince(trx, claim, finish)) erased.add(claim)
    const finished = await finishAll(trx, batch, erased)
    const written = batch.filter((_, i) => finished[i] === 'written')
    if (written.some(({ finish }) => finish.found)) await recordRead(trx)
    const changes: WrittenChange[] = []
    for (const { claim, finish } of written) {
      if (quiet.has(claim.id)) continue
      const { subscriptionUid } = claim.subscription
      changes.push(...(finish.changes ?? []).map((change) => ({ ...change, subscriptionUid })))
    }
    await insertChanges(trx, changes)
    const hints = written.flatMap(({ claim, finish }) => hintsOfNews(claim, finish))
    if (hints.length > 0) await engine.announceIn?.(trx, hints)
    return finished
  }

  return (claim: ReadClaim, finish: ReadFinish): Promise<Finished> =>
    batches.add({ claim, finish, businesses: businessesOf(claim, finish) })
}

/** The subscriptions of these claims that are quiet now. An event may have ended that since the claim, so the rows are read. */
async function quietAmong(
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
async function isErasedSince(trx: Connection, claim: ReadClaim, { found }: ReadFinish): Promise<boolean> {
  const businessUid = found?.record?.business_uid
  if (businessUid === undefined || businessUid === claim.subscription.businessUid) return false
  const rows = await sql`
    select 1 from journal where business_uid = ${businessUid} and kind = 'action' and name = 'erase'
      and received_at >= ${claim.claimedAt} limit 1`.execute(trx)
  return rows.length > 0
}

/** The businesses of a finish, sorted by bytes: every transaction that holds several names takes them in this order. */
export function businessesOf({ subscription }: ReadClaim, { found, changes = [] }: ReadFinish): string[] {
  const uids = [subscription.businessUid, ...changes.map(({ businessUid }) => businessUid)]
  if (found?.record) uids.push(found.record.business_uid)
  return [...new Set(uids)].sort()
}

/**
 * The hints that must not be lost once the result is committed: an answer from a read before this one must not be used
 * again. The first read of a subscription replaces no such answer: until then it gave no access.
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
