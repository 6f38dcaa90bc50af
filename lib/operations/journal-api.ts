import type { JournalFilter } from '../store/entry-filter.js'
import type { Action, ReplaySummary } from './journal-operations.js'
import type { JournalEntry } from './public-entry.js'

/** `marketplace.journal`. All methods reject with `argument_invalid`, `store_unavailable` or `closed`. */
export interface JournalApi {
  /**
   * Lists entries, newest first.
   *
   * @example
   * const dead = await marketplace.journal.list({ status: 'dead', since: '2026-03-01', limit: 50 })
   * const nextPage = await marketplace.journal.list({ status: 'dead', since: '2026-03-01', before: dead.at(-1)?.id })
   */
  list(filter?: JournalFilter): Promise<JournalEntry[]>
  /**
   * The entry with this id, or undefined.
   *
   * @example
   * const entry = await marketplace.journal.get(id)
   */
  get(id: string): Promise<JournalEntry | undefined>
  /**
   * Passes an entry to its handlers again, whatever its status. False when no entry has this id, or it is an action.
   *
   * @example const isReplayed = await marketplace.journal.replay(id)
   */
  replay(id: string): Promise<boolean>
  /**
   * Replays the entries that match the filter, the oldest first, at most `limit` (1 to 1,000, default 100). The filter
   * needs a `status`. `dryRun` changes nothing.
   *
   * @example
   * const { matched, ids } = await marketplace.journal.replayAll({ status: 'dead' }, { dryRun: true })
   * await marketplace.journal.replayAll({ status: 'dead', name: 'application/installed' }, { limit: 10 })
   */
  replayAll(
    filter: Omit<JournalFilter, 'limit' | 'before'>,
    options?: { limit?: number; dryRun?: boolean },
  ): Promise<ReplaySummary>
  /**
   * Records an action of a person as an entry of the kind `action`. No handler gets it. Its retention is that of finished
   * entries.
   *
   * @example
   * await marketplace.journal.recordAction({ actor: 'ada', action: 'replay', entry_id: id, reason: 'ticket 812' })
   */
  recordAction(action: Action): Promise<{ id: string }>
}
