import type { JournalFilter } from '../store/entry-filter.js'
import type { Action, ReplaySummary } from './journal-operations.js'
import type { JournalEntry } from './public-entry.js'

/** The journal as a marketplace has it. All reject `argument_invalid`, `store_unavailable`, `closed`. */
export interface JournalApi {
  /**
   * Newest first.
   *
   * @example
   * const dead = await marketplace.journal.list({ status: 'dead', since: '2026-03-01', limit: 50 })
   * const nextPage = await marketplace.journal.list({ status: 'dead', since: '2026-03-01', before: dead.at(-1)?.id })
   */
  list(filter?: JournalFilter): Promise<JournalEntry[]>
  /**
   * One entry; undefined when there is none of that id.
   *
   * @example
   * const entry = await marketplace.journal.get(id)
   */
  get(id: string): Promise<JournalEntry | undefined>
  /**
   * Hands an entry to its handlers once more, whatever became of it. False when there is none of that id, or it is an action.
   *
   * @example const isReplayed = await marketplace.journal.replay(id)
   */
  replay(id: string): Promise<boolean>
  /**
   * The same for many: of those that fit, the oldest first, at most `limit` (100 unless told, up to 1,000). The filter
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
   * Keeps what a person did as an entry of the kind `action`. It is never handled, and kept as long as entries that are
   * done.
   *
   * @example
   * await marketplace.journal.recordAction({ actor: 'ada', action: 'replay', entry_id: id, reason: 'ticket 812' })
   */
  recordAction(action: Action): Promise<{ id: string }>
}
