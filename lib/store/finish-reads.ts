import { createBatches } from '../batches.js'
import { MarketplaceError } from '../errors.js'
import type { Engine } from './engine.js'
import { isErasedSince, quietAmong } from './finish-conditions.js'
import type { WrittenChange } from './journal.js'
import { businessesOf, hintsOfNews } from './read-finish.js'
import type { Connection } from './sql.js'
import type { ReadClaim, ReadFinish } from './store.js'
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
    'holdNames' | 'clock' | 'compile' | 'given' | 'queriesOf' | 'isOneOf' | 'forUpdate' | 'announceIn'
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
    split: (error) => !(error instanceof MarketplaceError && error.retryable),
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
