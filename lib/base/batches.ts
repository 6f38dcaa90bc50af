import { nextTurn } from './waiting.js'

interface Batches<Item, Result> {
  /** Resolves with the result of the item once its batch is written. Rejects with the error that concerns it. */
  add(item: Item): Promise<Result>
}

/**
 * Many callers share a transaction: while batches are written, the next one collects. A batch closes at the end of the
 * turn of the event loop in which its write may begin, so there is no timer to tune, and a lone item hardly waits.
 *
 * A batch that fails because of one of its items is split until that item is alone, so that the others are written.
 * What `take` throws rejects all that wait, and the next batch begins anew.
 */
export function createBatches<Item, Result>(options: {
  /**
   * Begins a batch. The function that it returns says of each waiting item, the oldest first, whether the batch takes it.
   * It takes at least the first.
   */
  take(): (item: Item) => boolean
  /**
   * Called before a batch begins. Returns those of the waiting items (`waiting()`) that still wait, in the order in which
   * batches take them; undefined: all, as they are. The others reject with `refused`. Must not reject.
   */
  arrange?(waiting: () => readonly Item[]): Promise<readonly Item[]> | undefined
  /** The error of an item that `arrange` leaves out. */
  refused?(item: Item): unknown
  /** Writes the items in one transaction. Resolves with the results in the same order. */
  write(items: readonly Item[]): Promise<readonly Result[]>
  /** Whether the data of a single item may have caused this error. */
  split(error: unknown): boolean
}): Batches<Item, Result> {
  const { take, write, split, arrange, refused } = options
  let waiting: Waiter<Item, Result>[] = []
  let isRunning = false

  async function run() {
    isRunning = true
    while (waiting.length > 0) {
      await nextTurn()
      const arranged = arrange?.(() => waiting.map(({ item }) => item))
      if (arranged) await reorder(arranged)
      await writeAll(takeBatch())
    }
    isRunning = false
  }

  async function reorder(arranged: Promise<readonly Item[]>) {
    const before = new Map(waiting.map((waiter) => [waiter.item, waiter]))
    waiting = []
    const kept: Waiter<Item, Result>[] = []
    for (const item of await arranged) {
      const waiter = before.get(item)
      if (waiter) kept.push(waiter)
      before.delete(item)
    }
    // Those that came meanwhile follow.
    waiting = [...kept, ...waiting]
    for (const { item, reject } of before.values()) reject(refused?.(item))
  }

  function takeBatch(): Waiter<Item, Result>[] {
    const all = waiting
    const batch: Waiter<Item, Result>[] = []
    waiting = []
    try {
      const takes = take()
      for (const each of all) (takes(each.item) ? batch : waiting).push(each)
      return batch
    } catch (error) {
      waiting = []
      for (const { reject } of all) reject(error)
      return []
    }
  }

  /** Never rejects. */
  async function writeAll(batch: readonly Waiter<Item, Result>[]): Promise<void> {
    if (batch.length === 0) return
    try {
      const results = await write(batch.map(({ item }) => item))
      batch.forEach(({ resolve }, i) => {
        resolve(results[i] as Result)
      })
    } catch (error) {
      if (batch.length > 1 && split(error)) {
        const half = Math.ceil(batch.length / 2)
        await writeAll(batch.slice(0, half))
        await writeAll(batch.slice(half))
      } else for (const { reject } of batch) reject(error)
    }
  }

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject })
        if (!isRunning) void run()
      }),
  }
}

interface Waiter<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}
