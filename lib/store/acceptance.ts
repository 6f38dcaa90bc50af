import type { Engine } from './engine.js'
import { createGroupCommit } from './group-commit.js'
import { asStoreError } from './guarded-store.js'
import type { Journal } from './journal.js'
import type { Ownership } from './ownership.js'
import type { RefreshRequests, Requested } from './request-refresh.js'
import type { Hint, NewEvent } from './store.js'
import type { WriteHealth } from './write-health.js'

/** What one call asks to be kept. */
export interface Asked {
  events: readonly NewEvent[]
  requests: readonly Requested[]
}

/** Keeps events and requests durably. What belongs to a transaction, a sync or a hint happens once for a batch. */
export function createAcceptance(options: {
  engine: Pick<Engine, 'transact' | 'durable' | 'isDataError'>
  ownership: Pick<Ownership, 'check'>
  request: RefreshRequests['request']
  journal: Pick<Journal, 'insert'>
  health: Pick<WriteHealth, 'watch'>
  announce(hint: Hint): void
}) {
  const { engine, ownership, request, journal, health, announce } = options

  const { submit, settled } = createGroupCommit<Asked>({
    isDataError: engine.isDataError,
    explain: (error) => asStoreError(error, 'Cannot use the store'),
    sizeOf({ events }) {
      let bytes = 0
      for (const { payload } of events) bytes += Buffer.byteLength(payload)
      return { rows: Math.max(1, events.length), bytes }
    },
    commit: (batch) => health.watch(() => commit(batch), true),
  })

  async function commit(batch: readonly Asked[]) {
    const events: NewEvent[] = []
    const requests: Requested[] = []
    const businesses = new Set<string>()
    for (const asked of batch) {
      events.push(...asked.events)
      requests.push(...asked.requests)
      for (const { request } of asked.requests) businesses.add(request.businessUid)
    }
    await engine.transact(function* () {
      yield* ownership.check(true)
      // In the order of a read's finish, so that neither waits for the other: subscriptions, then lanes.
      yield* request(requests)
      yield* journal.insert(events)
    })
    // What is committed is visible to others before it is durable; only the reply must wait.
    await engine.durable()
    for (const businessUid of businesses) announce({ kind: 'requested', businessUid })
    if (events.length > 0) announce({ kind: 'journal' })
  }

  return {
    /** Resolves when it is on disk; rejects with a `MarketplaceError`. */
    keep: submit,
    /** Resolves when all that was asked before is kept or has failed. */
    settled,
  }
}
