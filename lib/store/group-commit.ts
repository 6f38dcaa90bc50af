import { createBatches } from '../batches.js'
import { MarketplaceError } from '../errors.js'

/**
 * Many callers share a commit: while one batch is committed and synced, the next one collects. A batch is bounded in rows
 * and bytes, so that no commit holds the event loop for long. The waiting items are bounded too; beyond that, callers are
 * rejected at once.
 */
export function createGroupCommit<Item>(options: {
  commit(batch: readonly Item[]): Promise<void>
  /** Whether the data of a single item may have caused this error. */
  isDataError(error: unknown): boolean
  sizeOf(item: Item): Size
  /** The largest batch. A single item may be larger. */
  maxBatch?: Size
  /** The most that waits. Items beyond it are rejected with `store_unavailable`. */
  maxWaiting?: Size
}) {
  const { commit, isDataError, sizeOf, maxBatch = BATCH, maxWaiting = WAITING } = options
  const waiting: Size = { rows: 0, bytes: 0 }

  const batches = createBatches<Sized<Item>, void>({
    /** In the order of arrival: the first item that does not fit ends the batch. */
    take() {
      const batch: Size = { rows: 0, bytes: 0 }
      let isFull = false
      return ({ size }) => {
        isFull ||= batch.rows > 0 && isBeyond(batch, size, maxBatch)
        if (isFull) return false
        add(batch, size)
        add(waiting, { rows: -size.rows, bytes: -size.bytes })
        return true
      }
    },
    async write(batch) {
      await commit(batch.map(({ item }) => item))
      return []
    },
    split: isDataError,
  })

  return {
    /** Resolves when the item is committed. */
    async submit(item: Item): Promise<void> {
      const size = sizeOf(item)
      // A lone item may be of any size.
      if (waiting.rows > 0 && isBeyond(waiting, size, maxWaiting)) {
        throw new MarketplaceError(
          'store_unavailable',
          'Cannot store the delivery: too many deliveries wait for the store',
        )
      }
      add(waiting, size)
      return batches.add({ item, size })
    },

    /** Resolves when no item waits and none is being committed. */
    settled: batches.settled,
  }
}

export interface Size {
  rows: number
  bytes: number
}

interface Sized<Item> {
  item: Item
  size: Size
}

/** About 10 ms of the event loop on SQLite: 30 µs for a delivery with its refresh request. */
const BATCH: Size = { rows: 300, bytes: 1024 * 1024 }
const WAITING: Size = { rows: 10_000, bytes: 64 * 1024 * 1024 }

function add(total: Size, more: Size): void {
  total.rows += more.rows
  total.bytes += more.bytes
}

function isBeyond(size: Size, more: Size, bound: Size): boolean {
  return size.rows + more.rows > bound.rows || size.bytes + more.bytes > bound.bytes
}
