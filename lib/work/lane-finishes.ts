import type { Clock } from '../clock.js'
import type { LaneFinish, Store } from '../store/store.js'
import { nextTurn, sleep } from '../waiting.js'
import { isRetryable, writePauseMs } from './write-while-leased.js'

/** Entries in one transaction. SQLite takes about 2 ms if each is of another lane. */
const BATCH = 64
/** Their payloads, apart from the last finish: SQLite writes the whole row of an entry again. */
const BATCH_BYTES = 1024 * 1024

/**
 * Writes the results of entries, many lanes in one transaction: while one batch is written, the next collects. A short
 * outage of the database must not cost a whole lease, so a failed write is tried again while its lane is leased.
 */
export function createLaneFinishes(options: { store: Pick<Store, 'finishLanes'>; clock: Clock }) {
  const { store, clock } = options
  let waiting: Waiter[] = []
  let running = false

  async function run() {
    for (let failures = 0; waiting.length > 0; ) {
      const batch = takeBatch()
      try {
        const held = new Set(await store.finishLanes(batch.map(({ finish }) => finish)))
        failures = 0
        for (const { finish, resolve } of batch) resolve(held.has(finish.id))
      } catch (error) {
        const again = batch.filter(({ lost }) => isRetryable(error) && !lost.aborted)
        for (const each of batch) if (!again.includes(each)) each.reject(error)
        if (again[0]) await sleep(writePauseMs(failures++), clock, again[0].lost)
        for (const each of again.filter(({ lost }) => lost.aborted)) each.reject(error)
        waiting = [...again.filter(({ lost }) => !lost.aborted), ...waiting]
      }
      await nextTurn()
    }
    running = false
  }

  function takeBatch(): Taken[] {
    const batch: Taken[] = []
    let [entries, bytes] = [0, 0]
    while (entries < BATCH && bytes < BATCH_BYTES && batch.length < waiting.length) {
      const each = waiting[batch.length] as Waiter
      const taken = Object.assign(each, each.finish ? {} : each.take()) as Taken
      batch.push(taken)
      entries += Math.max(1, taken.finish.results.length)
      bytes += taken.bytes
    }
    waiting = waiting.slice(batch.length)
    return batch
  }

  return {
    /**
     * Writes the finish that `take` returns, called just before the write, so that later results share the transaction.
     * Resolves with whether the lease was still held. Rejects if it was lost before the write succeeded.
     */
    write(take: () => SizedFinish, lost: AbortSignal): Promise<boolean> {
      return new Promise((resolve, reject) => {
        waiting.push({ take, lost, resolve, reject })
        if (running) return
        running = true
        setImmediate(run)
      })
    },
  }
}

/** A finish, and the length of the payloads of its entries. */
interface SizedFinish {
  finish: LaneFinish
  bytes: number
}

interface Waiter extends Partial<SizedFinish> {
  take(): SizedFinish
  lost: AbortSignal
  resolve(held: boolean): void
  reject(error: unknown): void
}

type Taken = Waiter & SizedFinish
