import type { MarketplaceError } from '../errors.js'
import type { Engine } from './engine.js'
import { createGroupCommit } from './group-commit.js'
import type { Journal } from './journal.js'
import type { Requested } from './merge-requests.js'
import type { Ownership } from './ownership.js'
import type { RefreshRequests } from './request-refresh.js'
import type { Hint, NewEvent } from './store.js'
import { asStoreError } from './store-error.js'
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
