import { createBatches } from '../base/batches.js'
import { MarketplaceError } from '../base/errors.js'
import type { Journal } from './journal/journal.js'
import type { Ownership } from './ownership.js'
import type { Hint, NewEvent } from './port/store.js'
import type { Engine } from './sql/engine.js'
import type { Requested } from './subscriptions/merge-requests.js'
import type { RefreshRequests } from './subscriptions/requests.js'
import type { Subscriptions } from './subscriptions/subscriptions.js'
import type { WriteHealth } from './write-health.js'

/** The events and refresh requests of one call. */
interface Accepted {
  events: readonly NewEvent[]
  requests: readonly Requested[]
}

/**
 * Writes events and refresh requests durably. Many calls share a transaction, a sync and the hints: while one batch is
 * committed and synced, the next one collects. A batch is bounded in rows and bytes, so that no commit holds the event loop
 * for long.
 *
 * What waits is bounded too. When more waits than fits into one batch, the order is that of every queue here: first what
 * the app asked for, then what names a subscription that was read before, then the rest, the calls with the fewest rows
 * first. So somebody who makes up deliveries delays only what nobody can tell from them, and those are the ones that are
 * refused when too much waits.
 */
export function createAcceptance(options: {
  engine: Pick<Engine, 'read' | 'writeAll' | 'mark' | 'durable' | 'isDataError'>
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  journal: Pick<Journal, 'insert'>
  subscriptions: Pick<Subscriptions, 'readAmong'>
  health: Pick<WriteHealth, 'watch'>
  announce(hint: Hint): void
  /** The largest batch. A single call may be larger. */
  maxBatch?: Size
  /** The most that waits. */
  maxWaiting?: Size
}) {
  const { engine, ownership, request, journal, subscriptions, health, announce } = options
  const { maxBatch = BATCH, maxWaiting = WAITING } = options
  const waiting: Size = { rows: 0, bytes: 0 }

  const batches = createBatches<Waiting, void>({
    /** In their order: the first call that does not fit ends the batch. */
    take() {
      const batch: Size = { rows: 0, bytes: 0 }
      let isFull = false
      return ({ size }) => {
        isFull ||= batch.rows > 0 && isBeyond(batch, size, maxBatch)
        if (isFull) return false
        add(batch, size)
        subtract(waiting, size)
        return true
      }
    },
    arrange: (calls) => (isBeyond(waiting, NOTHING, maxBatch) ? byPrecedence(calls) : undefined),
    refused: tooMuch,
    async write(batch) {
      await health.watch(() => commit(batch))
      return []
    },
    split: (error) => engine.isDataError(error),
  })

  /** Sorts the calls by precedence, and leaves out the last ones that do not fit into the room. */
  async function byPrecedence(calls: readonly Waiting[]): Promise<readonly Waiting[]> {
    await findUnread(calls.filter(({ isUnread }) => isUnread === undefined))
    const sorted = [...calls].sort(
      (a, b) => Number(a.isUnread) - Number(b.isUnread) || (a.isUnread ? a.size.rows - b.size.rows : 0),
    )
    const kept: Size = { rows: 0, bytes: 0 }
    return sorted.filter(({ size }) => {
      const fits = kept.rows === 0 || !isBeyond(kept, size, maxWaiting)
      if (fits) add(kept, size)
      else subtract(waiting, size)
      return fits
    })
  }

  /** Looks up which calls name nothing that was read before. While the store cannot tell, none does. */
  async function findUnread(calls: readonly Waiting[]) {
    const named = calls.flatMap(({ events }) => events.slice(0, LOOKED_AT))
    try {
      const isRead = await engine.read((db) => subscriptions.readAmong(db, named))
      for (const call of calls)
        call.isUnread = call.events.length > 0 && !call.events.slice(0, LOOKED_AT).some(isRead)
    } catch {
      for (const call of calls) call.isUnread = false
    }
  }

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
    async accept(call: Accepted): Promise<void> {
      const size = sizeOf(call)
      // A lone call may be of any size. A small one may be of somebody who was read before, which is looked up later.
      const most = isSmall(size) ? double(maxWaiting) : maxWaiting
      if (waiting.rows > 0 && isBeyond(waiting, size, most)) throw tooMuch()
      add(waiting, size)
      return batches.add({ ...call, size, isUnread: undefined })
    },
  }
}

function tooMuch() {
  return new MarketplaceError(
    'store_unavailable',
    'Cannot store the delivery: too many deliveries wait for the store',
  )
}

export interface Size {
  rows: number
  bytes: number
}

interface Waiting extends Accepted {
  size: Size
  /** Whether it names nothing that was read before; undefined: not looked up. */
  isUnread: boolean | undefined
}

/** About 10 ms of the event loop on SQLite: 30 µs for a delivery with its refresh request. */
const BATCH: Size = { rows: 300, bytes: 1024 * 1024 }
const WAITING: Size = { rows: 10_000, bytes: 64 * 1024 * 1024 }
const NOTHING: Size = { rows: 0, bytes: 0 }
/** The events of a call by which it is looked up. */
const LOOKED_AT = 16
/** The payload of a small call, such as a notice. */
const SMALL_BYTES = 16 * 1024

function sizeOf({ events }: Accepted): Size {
  let bytes = 0
  for (const { payload } of events) bytes += Buffer.byteLength(payload)
  return { rows: Math.max(1, events.length), bytes }
}

function isSmall({ rows, bytes }: Size): boolean {
  return rows === 1 && bytes <= SMALL_BYTES
}

function double({ rows, bytes }: Size): Size {
  return { rows: 2 * rows, bytes: 2 * bytes }
}

function add(total: Size, more: Size): void {
  total.rows += more.rows
  total.bytes += more.bytes
}

function subtract(total: Size, less: Size): void {
  add(total, { rows: -less.rows, bytes: -less.bytes })
}

function isBeyond(size: Size, more: Size, bound: Size): boolean {
  return size.rows + more.rows > bound.rows || size.bytes + more.bytes > bound.bytes
}
