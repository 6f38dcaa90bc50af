import { MarketplaceError } from '../errors.js'

/**
 * Many callers, one commit: while one batch is being committed and synced, the next collects. No timer to tune; a lone
 * caller waits for nobody. A batch is bounded in rows and bytes, so that no commit holds the event loop for long, and
 * so is what waits: beyond that callers are refused at once.
 *
 * A batch that fails because of one item's data is split until that item is alone, so that the others are kept.
 */
export function createGroupCommit<Item>(options: {
  commit(batch: readonly Item[]): Promise<void>
  isDataError(error: unknown): boolean
  sizeOf(item: Item): Size
  /** What one commit holds at most, but for a single item that is larger. */
  maxBatch?: Size
  /** Items beyond this are refused with `store_unavailable` at once. */
  maxWaiting?: Size
}): (item: Item) => Promise<void> {
  const { commit, isDataError, sizeOf, maxBatch = BATCH, maxWaiting = WAITING } = options
  const waiting: Waiter<Item>[] = []
  let waitingSize: Size = { rows: 0, bytes: 0 }
  let running = false

  return function submit(item) {
    const size = sizeOf(item)
    // A lone item may be of any size.
    if (waiting.length > 0 && isBeyond(sum(waitingSize, size), maxWaiting)) {
      return Promise.reject(
        new MarketplaceError(
          'store_unavailable',
          'Cannot keep the delivery: too many are waiting for the store',
        ),
      )
    }
    return new Promise((resolve, reject) => {
      waitingSize = sum(waitingSize, size)
      waiting.push({ item, size, resolve, reject })
      if (!running) {
        running = true
        // Everything that arrives in this turn of the event loop shares the first commit too.
        setImmediate(run)
      }
    })
  }

  async function run() {
    while (waiting.length > 0) await commitBatch(nextBatch())
    running = false
  }

  function nextBatch(): Waiter<Item>[] {
    let size: Size = { rows: 0, bytes: 0 }
    let count = 0
    for (const waiter of waiting) {
      const grown = sum(size, waiter.size)
      if (count > 0 && isBeyond(grown, maxBatch)) break
      size = grown
      count++
    }
    waitingSize = { rows: waitingSize.rows - size.rows, bytes: waitingSize.bytes - size.bytes }
    return waiting.splice(0, count)
  }

  async function commitBatch(batch: readonly Waiter<Item>[]) {
    try {
      await commit(batch.map((waiter) => waiter.item))
      for (const waiter of batch) waiter.resolve()
    } catch (error) {
      if (batch.length > 1 && isDataError(error)) {
        const half = Math.ceil(batch.length / 2)
        await commitBatch(batch.slice(0, half))
        await commitBatch(batch.slice(half))
      } else {
        for (const waiter of batch) waiter.reject(error)
      }
    }
  }
}

export interface Size {
  rows: number
  bytes: number
}

/** Some 10 ms of the event loop on SQLite: 30 µs for a delivery with its refresh request. */
const BATCH: Size = { rows: 300, bytes: 1024 * 1024 }
const WAITING: Size = { rows: 10_000, bytes: 64 * 1024 * 1024 }

interface Waiter<Item> {
  item: Item
  size: Size
  resolve(): void
  reject(error: unknown): void
}

function sum(a: Size, b: Size): Size {
  return { rows: a.rows + b.rows, bytes: a.bytes + b.bytes }
}

function isBeyond(size: Size, bound: Size): boolean {
  return size.rows > bound.rows || size.bytes > bound.bytes
}
