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

interface Waiter {
  claim: ReadClaim
  finish: ReadFinish
  /** The businesses of the finish, sorted by bytes. */
  businesses: string[]
  resolve(finished: Finished): void
  reject(error: unknown): void
}

/**
 * Writes the results of reads, several in one transaction: while one batch is written, the next one collects. With 32
 * concurrent reads on SQLite that takes two thirds of the CPU of a transaction for each.
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
  let waiting: Waiter[] = []
  let isRunning = false

  async function run() {
    while (waiting.length > 0) {
      const batch = takeBatch()
      const error = await writeTogether(batch)
      if (error === undefined) continue
      const isOfOne = batch.length > 1 && !(error instanceof MarketplaceError && error.retryable)
      for (const each of batch) {
        // Each is written alone, so that a row that cannot be written does not fail the others.
        const own = isOfOne ? await writeTogether([each]) : error
        if (own !== undefined) each.reject(own)
      }
    }
    isRunning = false
  }

  /** No two of one subscription: one statement changes a row once. */
  function takeBatch(): Waiter[] {
    const taken = new Set<string>()
    const batch: Waiter[] = []
    const left: Waiter[] = []
    for (const each of waiting) {
      const fits = batch.length < BATCH && !taken.has(each.claim.id)
      taken.add(each.claim.id)
      ;(fits ? batch : left).push(each)
    }
    waiting = left
    // Every transaction that locks several rows locks them in this order.
    return batch.sort((a, b) => (a.claim.id < b.claim.id ? -1 : 1))
  }

  async function writeTogether(batch: readonly Waiter[]): Promise<unknown> {
    try {
      const finished = await write((trx) => writeAll(trx, batch))
      batch.forEach(({ resolve }, i) => {
        resolve(finished[i] as Finished)
      })
      return undefined
    } catch (error) {
      return error ?? new Error('the store rejected without an error')
    }
  }

  async function writeAll(trx: Connection, batch: readonly Waiter[]): Promise<Finished[]> {
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
    new Promise((resolve, reject) => {
      waiting.push({ claim, finish, businesses: businessesOf(claim, finish), resolve, reject })
      if (isRunning) return
      isRunning = true
      // Reads that end in the same turn of the event loop share the first batch.
      setImmediate(run)
    })
}
