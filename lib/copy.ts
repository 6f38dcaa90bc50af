import { existsSync } from 'node:fs'
import { systemClock } from './base/clock.js'
import { MarketplaceError } from './base/errors.js'
import { newId } from './base/ids.js'
import { storable } from './base/record.js'
import { createKeepAlive } from './lifecycle.js'
import type { CopiedCounts } from './store/sql/copy/counts.js'
import { engineFor, type PostgresStore, sqlitePath, storeFaults } from './store-option.js'

/**
 * What `copyStore` takes beside the two stores.
 *
 * @example
 * const options: CopyOptions = { actor: 'ada', onProgress: ({ done, total }) => console.log(done, total) }
 */
export interface CopyOptions {
  /** The person who copies, for the journal of the target. */
  actor: string
  /** Why, for the journal of the target. */
  reason?: string
  /** Called after each batch of rows. */
  onProgress?: (rows: { done: number; total: number }) => void
}

/**
 * What `copyStore` has copied. Both stores have the same counts.
 *
 * @example
 * const isReady = ({ entries }: CopySummary) => entries.pending < 1_000
 */
export interface CopySummary {
  /** Number of subscriptions. */
  subscriptions: number
  /** The entries of the journal, by their status. Those that handlers had failed are `pending` until they are `dead`. */
  entries: Record<'pending' | 'unhandled' | 'done' | 'dead', number>
}

/**
 * Copies everything that one store contains into an empty one, on either database: subscriptions with their schedule and
 * evidence, the journal in its order, and the app to which the store belongs. The app on the target handles what handlers
 * had not finished, and nothing else again. The source keeps all rows.
 *
 * No process may use either store meanwhile. One on PostgreSQL that is not seen gets `store_unavailable` from the
 * source. The target has all rows or none: until the copy has ended, no app opens it, and an interrupted copy is
 * repeated.
 *
 * Rejects `argument_invalid` for something that is not the address of a store, `store_in_use`, `copy_failed` for a source
 * that is not a store, for a target that is not empty and for a copy that was interrupted, and the errors of an opening.
 *
 * @example
 * const { entries } = await copyStore('sqlite:marketplace.db', 'postgres://app@db/app', { actor: 'ada' })
 */
export async function copyStore(
  from: string | PostgresStore,
  to: string | PostgresStore,
  options: CopyOptions,
): Promise<CopySummary> {
  const { actor, reason, onProgress = () => {} } = options ?? {}
  if (typeof actor !== 'string' || actor === '') throw cannot('the actor must be a text that is not empty')
  await requireStores(from, to)
  const clock = systemClock
  const engines = { from: await engineFor(from, clock), to: await engineFor(to, clock) }
  const text = (given: string) => storable(given.slice(0, 500))
  const action = {
    id: newId(clock.now()),
    name: 'copy',
    businessUid: null,
    payload: JSON.stringify({
      actor: text(actor),
      action: 'copy',
      reason: reason === undefined ? null : text(reason),
      entry_id: null,
    }),
  }

  async function copy(): Promise<CopiedCounts> {
    const { copyTables } = await import('./store/sql/copy/copy.js')
    try {
      return await copyTables({ ...engines, action, onProgress })
    } finally {
      for (const engine of Object.values(engines)) await engine.close().catch(() => {})
    }
  }

  // Its timers do not keep the process alive.
  const { subscriptions, pending, unhandled, done, dead } = await createKeepAlive().during(copy())
  return { subscriptions, entries: { pending, unhandled, done, dead } }
}

/** Refuses what cannot be two stores. A missing file is not made: an empty source would look like a copy. */
async function requireStores(from: unknown, to: unknown) {
  const paths = [from, to].map((store, i) => {
    const which = i === 0 ? 'source' : 'target'
    const [fault] = storeFaults(store)
    if (fault) throw cannot(`the ${which}: ${fault}`)
    const path = typeof store === 'string' ? sqlitePath(store) : undefined
    if (path === ':memory:') throw cannot(`the ${which} is sqlite::memory:, which only one process can use`)
    return path
  })
  const [source, target] = paths
  if (source !== undefined && !existsSync(source))
    throw new MarketplaceError(
      'copy_failed',
      `Cannot copy the store: there is no database ${source}. Name the one that the app uses`,
    )
  const { realDatabasePath } = await import('./sqlite/file/path.js')
  const isSame =
    source !== undefined && target !== undefined
      ? realDatabasePath(source) === realDatabasePath(target)
      : from === to
  if (isSame) throw cannot('the source and the target are the same database')
}

function cannot(why: string): MarketplaceError {
  return new MarketplaceError('argument_invalid', `Cannot copy the store: ${why}`)
}
