import { MarketplaceError } from '../errors.js'

/**
 * Many callers, one commit: while one batch is being committed and synced, the next collects. No timer to tune; a lone
 * caller waits for nobody. A batch is bounded in rows and bytes, so that no commit holds the event loop for long, and
 * so is what waits: beyond that callers are refused at once.
 *
 * All callers of a batch share one promise. A batch that fails because of one item's data is split until that item is
 * alone, so that the others are kept.
 */
export function createGroupCommit<Item>(options: {
  commit(batch: readonly Item[]): Promise<void>
  isDataError(error: unknown): boolean
  sizeOf(item: Item): Size
  /** What one commit holds at most, but for a single item that is larger. */
  maxBatch?: Size
  /** Items beyond this are refused with `store_unavailable` at once. */
  maxWaiting?: Size
  /** Commits under way at once. */
  concurrency?: number
}) {
  const { commit, isDataError, sizeOf, maxBatch = BATCH, maxWaiting = WAITING, concurrency = 1 } = options
  const waiting: Batch<Item>[] = []
  const waitingSize: Size = { rows: 0, bytes: 0 }
  const committing = new Set<Promise<void>>()
  let isPlanned = false

  /** Begins what may begin. */
  function advance() {
    isPlanned = false
    while (committing.size < concurrency) {
      const batch = waiting.shift()
      if (!batch) return
      waitingSize.rows -= batch.size.rows
      waitingSize.bytes -= batch.size.bytes
      const committed = commitBatch(batch.items, batch.failures).then(() => {
        committing.delete(committed)
        batch.end()
        plan()
      })
      committing.add(committed)
    }
  }

  // Everything that arrives in this turn of the event loop shares a commit.
  function plan() {
    if (isPlanned || waiting.length === 0 || committing.size >= concurrency) return
    isPlanned = true
    setImmediate(advance)
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
        for (const item of items) failures.set(item, error)
      }
    }
  }

  return {
    /** Resolves when the item is committed. Each item is an object of its own. */
    async submit(item: Item): Promise<void> {
      const size = sizeOf(item)
      // A lone item may be of any size.
      if (waiting.length > 0 && isBeyond(waitingSize, size, maxWaiting)) {
        throw new MarketplaceError(
          'store_unavailable',
          'Cannot keep the delivery: too many are waiting for the store',
        )
      }
      let batch = waiting.at(-1)
      if (!batch || isBeyond(batch.size, size, maxBatch)) {
        batch = newBatch()
        waiting.push(batch)
        plan()
      }
      batch.items.push(item)
      for (const total of [batch.size, waitingSize]) {
        total.rows += size.rows
        total.bytes += size.bytes
      }
      await batch.ended
      if (batch.failures.size > 0 && batch.failures.has(item)) throw batch.failures.get(item)
    },

    /** Resolves when nothing waits and nothing is being committed. */
    async settled(): Promise<void> {
      while (waiting.length + committing.size > 0) {
        await Promise.all([...waiting.map(({ ended }) => ended), ...committing])
      }
    },
  }
}

export interface Size {
  rows: number
  bytes: number
}

/** Some 10 ms of the event loop on SQLite: 30 µs for a delivery with its refresh request. */
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

function isBeyond(size: Size, more: Size, bound: Size): boolean {
  return size.rows + more.rows > bound.rows || size.bytes + more.bytes > bound.bytes
}
