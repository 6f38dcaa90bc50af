import { MarketplaceError } from '../errors.js'

/**
 * Many callers, one commit: while one batch is being committed and synced, the next collects. No timer and no batch
 * size to tune; a lone caller waits for nobody.
 *
 * A batch that fails because of one item's data is committed item by item, so that the others are kept.
 */
export function createGroupCommit<Item>(options: {
  commit(batch: readonly Item[]): Promise<void>
  isDataError(error: unknown): boolean
  /** Items waiting beyond this are refused with `store_unavailable` at once. */
  maxWaiting?: number
}): (item: Item) => Promise<void> {
  const { commit, isDataError, maxWaiting = 10_000 } = options
  let waiting: Waiter<Item>[] = []
  let running = false

  return function submit(item) {
    if (waiting.length >= maxWaiting) {
      return Promise.reject(
        new MarketplaceError(
          'store_unavailable',
          'Cannot keep the delivery: too many are waiting for the store',
        ),
      )
    }
    return new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (!running) {
        running = true
        // Everything that arrives in this turn of the event loop shares the first commit too.
        setImmediate(run)
      }
    })
  }

  async function run() {
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await commitBatch(batch)
    }
    running = false
  }

  async function commitBatch(batch: Waiter<Item>[]) {
    try {
      await commit(batch.map((waiter) => waiter.item))
      for (const waiter of batch) waiter.resolve()
    } catch (error) {
      if (batch.length > 1 && isDataError(error)) {
        for (const waiter of batch) await commitBatch([waiter])
      } else {
        for (const waiter of batch) waiter.reject(error)
      }
    }
  }
}

interface Waiter<Item> {
  item: Item
  resolve(): void
  reject(error: unknown): void
}
