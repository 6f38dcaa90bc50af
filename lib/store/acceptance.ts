import { createBatches } from '../base/batches.js'
import { MarketplaceError } from '../base/errors.js'
import type { Journal } from './journal/journal.js'
import type { Ownership } from './ownership.js'
import type { Hint, NewEvent } from './port/store.js'
import type { Engine } from './sql/engine.js'
import type { Requested } from './subscriptions/merge-requests.js'
import type { RefreshRequests } from './subscriptions/requests.js'
import type { WriteHealth } from './write-health.js'

/** The events and refresh requests of one call. */
interface Accepted {
  events: readonly NewEvent[]
  requests: readonly Requested[]
}

/**
 * Writes events and refresh requests durably. Many calls share a transaction, a sync and the hints: while one batch is
 * committed and synced, the next one collects. A batch is bounded in rows and bytes, so that no commit holds the event loop
 * for long. What waits is bounded too; beyond that, calls are rejected at once.
 */
export function createAcceptance(options: {
  engine: Pick<Engine, 'writeAll' | 'mark' | 'durable' | 'isDataError'>
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  journal: Pick<Journal, 'insert'>
  health: Pick<WriteHealth, 'watch'>
  announce(hint: Hint): void
  /** The largest batch. A single call may be larger. */
  maxBatch?: Size
  /** The most that waits. Calls beyond it are rejected with `store_unavailable`. */
  maxWaiting?: Size
}) {
  const { engine, ownership, request, journal, health, announce } = options
  const { maxBatch = BATCH, maxWaiting = WAITING } = options
  const waiting: Size = { rows: 0, bytes: 0 }

  const batches = createBatches<Sized, void>({
    /** In the order of arrival: the first call that does not fit ends the batch. */
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
      await health.watch(() => commit(batch))
      return []
    },
    split: (error) => engine.isDataError(error),
  })

  async function commit(batch: readonly Accepted[]) {
    const events = batch.flatMap((call) => call.events)
    const requests = batch.flatMap((call) => call.requests)
    const businesses = new Set(requests.map(({ request }) => request.businessUid))
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
    /** Resolves when the call is on disk. */
    accept(call: Accepted): Promise<void> {
      const size = sizeOf(call)
      // A lone call may be of any size.
      if (waiting.rows > 0 && isBeyond(waiting, size, maxWaiting)) {
        throw new MarketplaceError(
          'store_unavailable',
          'Cannot store the delivery: too many deliveries wait for the store',
        )
      }
      add(waiting, size)
      return batches.add({ ...call, size })
    },
  }
}

export interface Size {
  rows: number
  bytes: number
}

interface Sized extends Accepted {
  size: Size
}

/** About 10 ms of the event loop on SQLite: 30 µs for a delivery with its refresh request. */
const BATCH: Size = { rows: 300, bytes: 1024 * 1024 }
const WAITING: Size = { rows: 10_000, bytes: 64 * 1024 * 1024 }

function sizeOf({ events }: Accepted): Size {
  let bytes = 0
  for (const { payload } of events) bytes += Buffer.byteLength(payload)
  return { rows: Math.max(1, events.length), bytes }
}

function add(total: Size, more: Size): void {
  total.rows += more.rows
  total.bytes += more.bytes
}

function isBeyond(size: Size, more: Size, bound: Size): boolean {
  return size.rows + more.rows > bound.rows || size.bytes + more.bytes > bound.bytes
}
