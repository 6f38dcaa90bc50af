import { createBatches } from '../batches.js'
import type { Clock } from '../clock.js'
import type { LaneFinish, Store } from '../store/store.js'
import { isRetryable, writeWhileLeased } from './write-while-leased.js'

/** Entries in one transaction. SQLite takes about 2 ms if each is of another lane. */
const BATCH = 64
/** Their payloads, apart from the last finish: SQLite writes the whole row of an entry again. */
const BATCH_BYTES = 1024 * 1024

/**
 * Writes the results of entries, many lanes in one transaction. A short outage of the database must not cost a whole
 * lease, so a failed write is tried again while its lane is leased.
 */
export function createLaneFinishes(options: { store: Pick<Store, 'finishLanes'>; clock: Clock }) {
  const { store, clock } = options

  const batches = createBatches<() => SizedFinish, boolean>({
    take() {
      let [entries, bytes] = [0, 0]
      return (finishOf) => {
        if (entries >= BATCH || bytes >= BATCH_BYTES) return false
        const { finish, bytes: more } = finishOf()
        entries += Math.max(1, finish.results.length)
        bytes += more
        return true
      }
    },
    async write(batch) {
      const finishes = batch.map((finishOf) => finishOf().finish)
      const held = new Set(await store.finishLanes(finishes))
      return finishes.map(({ id }) => held.has(id))
    },
    split: (error) => !isRetryable(error),
  })

  return {
    /**
     * Writes the finish that `take` returns, called just before the write, so that later results share the transaction.
     * Resolves with whether the lease was still held. Rejects if it was lost before the write succeeded.
     */
    write(take: () => SizedFinish, lost: AbortSignal): Promise<boolean> {
      let taken: SizedFinish | undefined
      const finishOf = () => {
        taken ??= take()
        return taken
      }
      return writeWhileLeased(() => batches.add(finishOf), lost, clock)
    },
  }
}

/** A finish, and the length of the payloads of its entries. */
interface SizedFinish {
  finish: LaneFinish
  bytes: number
}
