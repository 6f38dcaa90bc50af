import { createBatches } from '../base/batches.js'
import { MarketplaceError } from '../base/errors.js'
import type { Journal } from './journal/journal.js'
import type { Ownership } from './ownership.js'
import type { Hint, NewEvent } from './port/store.js'
import type { Engine } from './sql/engine.js'
import { asStoreError } from './sql/store-error.js'
import type { Requested } from './subscriptions/merge-requests.js'
import type { RefreshRequests } from './subscriptions/requests.js'
import type { WriteHealth } from './write-health.js'

/** The events and refresh requests of one call. */
interface Accepted {
  events: readonly NewEvent[]
  requests: readonly Requested[]
}

/** Writes events and refresh requests durably. Concurrent calls share a transaction, a sync and the hints. */
export function createAcceptance(options: {
  engine: Pick<Engine, 'writeAll' | 'mark' | 'durable' | 'isDataError'>
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  journal: Pick<Journal, 'insert'>
  health: Pick<WriteHealth, 'watch'>
  announce(hint: Hint): void
}) {
  const { engine, ownership, request, journal, health, announce } = options

  const { submit, settled } = createGroupCommit<Accepted>({
    isDataError: (error) => engine.isDataError((error as MarketplaceError).cause),
    sizeOf({ events }) {
      let bytes = 0
      for (const { payload } of events) bytes += Buffer.byteLength(payload)
      return { rows: Math.max(1, events.length), bytes }
    },
    async commit(batch) {
      try {
        await health.watch(() => commit(batch))
      } catch (error) {
        throw asStoreError(error, 'Cannot use the store')
      }
    },
  })

  async function commit(batch: readonly Accepted[]) {
    const events: NewEvent[] = []
    const requests: Requested[] = []
    const businesses = new Set<string>()
    for (const call of batch) {
      events.push(...call.events)
      requests.push(...call.requests)
      for (const { request } of call.requests) businesses.add(request.businessUid)
    }
    await ownership.check()
    const mark = engine.mark()
    // Subscriptions before lanes, as the finish of a read locks them, so that neither deadlocks the other.
    await engine.writeAll([...request(requests), ...journal.insert(events)])
    // Others may see the commit before it is durable. Only the reply must wait.
    await engine.durable(mark)
    for (const businessUid of businesses) announce({ kind: 'requested', businessUid })
    if (events.length > 0) announce({ kind: 'journal' })
  }

  return {
    /** Resolves when the call is on disk. Rejects with a `MarketplaceError`. */
    accept: submit,
    /** Resolves when every call before is on disk or has failed. */
    settled,
  }
}

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
