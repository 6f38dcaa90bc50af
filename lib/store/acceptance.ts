import type { Script } from './dialect.js'
import type { Engine } from './engine.js'
import { createGroupCommit } from './group-commit.js'
import type { Journal } from './journal.js'
import type { Requested } from './merge-requests.js'
import type { Ownership } from './ownership.js'
import type { RefreshRequests } from './request-refresh.js'
import type { Hint, NewEvent } from './store.js'
import { asStoreError } from './store-error.js'
import type { WriteHealth } from './write-health.js'

/** With a million subscriptions, whose pages are not in memory, a delivery takes ten times as long. */
const SLOW_MS = 5

/** The events and refresh requests of one call. */
interface Accepted {
  events: readonly NewEvent[]
  requests: readonly Requested[]
}

/** Writes events and refresh requests durably. Concurrent calls share a transaction, a sync and the hints. */
export function createAcceptance(options: {
  engine: Pick<Engine, 'clock' | 'transact' | 'transactsAtOnce' | 'mark' | 'durable' | 'isDataError'>
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  journal: Pick<Journal, 'insert'>
  health: Pick<WriteHealth, 'watch'>
  announce(hint: Hint): void
}) {
  const { engine, ownership, request, journal, health, announce } = options

  /** How long the last transaction took. On SQLite the event loop waits for it. */
  let lastMs = 0

  const { submit, settled } = createGroupCommit<Accepted>({
    atOnce: engine.transactsAtOnce,
    clock: engine.clock,
    isSlow: () => lastMs > SLOW_MS,
    isDataError: engine.isDataError,
    explain: (error) => asStoreError(error, 'Cannot use the store'),
    sizeOf({ events }) {
      let bytes = 0
      for (const { payload } of events) bytes += Buffer.byteLength(payload)
      return { rows: Math.max(1, events.length), bytes }
    },
    commit: (batch) => health.watch(() => commit(batch)),
  })

  /**
   * Named, because V8 makes a hidden class for each new generator function when it is first called. That class is old at
   * once and keeps the function alive, so with one for each batch the events of all batches stayed in memory until the
   * next full collection: 15 % of all garbage was copied twice, now 1 %.
   */
  function* write(requests: readonly Requested[], events: readonly NewEvent[]): Script {
    yield* ownership.check(true)
    // Subscriptions before lanes, as the finish of a read locks them, so that neither deadlocks the other.
    yield* request(requests)
    yield* journal.insert(events)
  }

  async function commit(batch: readonly Accepted[]) {
    const events: NewEvent[] = []
    const requests: Requested[] = []
    const businesses = new Set<string>()
    for (const call of batch) {
      events.push(...call.events)
      requests.push(...call.requests)
      for (const { request } of call.requests) businesses.add(request.businessUid)
    }
    const beganAt = engine.clock.monotonic()
    const mark = engine.mark()
    await engine.transact(() => write(requests, events))
    lastMs = engine.clock.monotonic() - beganAt
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
