import { MarketplaceError } from '../errors.js'
import { nextTurn } from '../waiting.js'

/**
 * Many callers share a commit: while one batch is committed and synced, the next one collects. There is no timer to tune,
 * and a lone caller does not wait. A batch is bounded in rows and bytes, so that no commit holds the event loop for long.
 * The waiting items are bounded too; beyond that, callers are rejected at once.
 *
 * The callers of a batch share one promise. A batch that fails because of the data of one item is split until that item
 * is alone, so that the others are stored.
 */
export function createGroupCommit<Item>(options: {
  commit(batch: readonly Item[]): Promise<void>
  isDataError(error: unknown): boolean
  sizeOf(item: Item): Size
  /** Turns an error of `commit` into the one for callers; by default they get the error itself. */
  explain?(error: unknown): unknown
  /** The largest batch. A single item may be larger. */
  maxBatch?: Size
  /** The most that waits. Items beyond it are rejected with `store_unavailable`. */
  maxWaiting?: Size
}) {
  const { commit, isDataError, sizeOf, explain = (error) => error } = options
  const { maxBatch = BATCH, maxWaiting = WAITING } = options
  const waiting: Batch<Item>[] = []
  const waitingSize: Size = { rows: 0, bytes: 0 }
  let isRunning = false
  let committing: Batch<Item> | undefined

  async function run() {
    // Items that arrive in this turn of the event loop share the first commit too.
    await nextTurn()
    for (committing = waiting.shift(); committing; committing = waiting.shift()) {
      waitingSize.rows -= committing.size.rows
      waitingSize.bytes -= committing.size.bytes
      await commitBatch(committing.items, committing.failures)
      committing.end()
    }
    isRunning = false
  }

  /** Never rejects. */
  async function commitBatch(items: readonly Item[], failures: Map<Item, unknown>): Promise<void> {
    try {
      await commit(items)
    } catch (error) {
      if (items.length > 1 && isDataError(error)) {
        const half = Math.ceil(items.length / 2)
        await commitBatch(items.slice(0, half), failures)
        await commitBatch(items.slice(half), failures)
      } else {
        for (const item of items) failures.set(item, explain(error))
      }
    }
  }

  return {
    /** Resolves when the item is committed. Each item is an object of its own. */
    submit(item: Item): Promise<void> {
      const size = sizeOf(item)
      // A lone item may be of any size.
      if (waiting.length > 0 && isBeyond(waitingSize, size, maxWaiting)) {
        return Promise.reject(
          new MarketplaceError(
            'store_unavailable',
            'Cannot store the delivery: too many deliveries wait for the store',
          ),
        )
      }
      let batch = waiting.at(-1)
      if (!batch || isBeyond(batch.size, size, maxBatch)) {
        batch = newBatch()
        waiting.push(batch)
        if (!isRunning) {
          isRunning = true
          void run()
        }
      }
      batch.items.push(item)
      add(batch.size, size)
      add(waitingSize, size)
      const { ended, failures } = batch
      return ended.then(() => {
        if (failures.has(item)) throw failures.get(item)
      })
    },

    /** Resolves when no item waits and none is being committed. */
    async settled(): Promise<void> {
      for (let last = waiting.at(-1) ?? committing; last; last = waiting.at(-1) ?? committing)
        await last.ended
    },
  }
}

export interface Size {
  rows: number
  bytes: number
}

/** About 10 ms of the event loop on SQLite: 30 µs for a delivery with its refresh request. */
const BATCH: Size = { rows: 300, bytes: 1024 * 1024 }
const WAITING: Size = { rows: 10_000, bytes: 64 * 1024 * 1024 }

interface Batch<Item> {
  items: Item[]
  size: Size
  failures: Map<Item, unknown>
  ended: Promise<void>
  end(): void
}

function newBatch<Item>(): Batch<Item> {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { items: [], size: { rows: 0, bytes: 0 }, failures: new Map(), ended, end }
}

function add(total: Size, more: Size): void {
  total.rows += more.rows
  total.bytes += more.bytes
}

function isBeyond(size: Size, more: Size, bound: Size): boolean {
  return size.rows + more.rows > bound.rows || size.bytes + more.bytes > bound.bytes
}
