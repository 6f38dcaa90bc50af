import type { JournalFilter } from '../operations/journal/entry-filter.js'
import type { Action, ReplayFilter, ReplaySummary } from '../operations/journal/journal-operations.js'
import type { JournalEntry } from '../operations/journal/public-entry.js'

/**
 * The methods for the journal, which has what arrived, what reads found, and what people did. They reject with
 * `argument_invalid`, `store_unavailable` or `closed`.
 *
 * @example const dead = await marketplace.journal.list({ status: 'dead' })
 */
export interface JournalMethods {
  /**
   * Lists the entries that meet the filter, newest first: at most `limit` (1 to 1,000, default 100). Pass the last `id` as
   * `before` to get the next page.
   *
   * @example
   * const dead = await marketplace.journal.list({ status: 'dead', since: '2026-03-01', limit: 50 })
   * const nextPage = await marketplace.journal.list({ status: 'dead', since: '2026-03-01', before: dead.at(-1)?.id })
   */
  list(filter?: JournalFilter): Promise<JournalEntry[]>
  /**
   * The entry with this id, with the message and the stack of the last error of its handler; undefined if none has it.
   *
   * @example
   * const entry = await marketplace.journal.get(id)
   */
  get(id: string): Promise<JournalEntry | undefined>
  /**
   * Passes an entry to its handlers again, whatever its status, or only if it has the given one. False when it does not, no
   * entry has this id, or it is an action.
   *
   * @example const isReplayed = await marketplace.journal.replay(id, { status: 'dead' })
   */
  replay(id: string, only?: Pick<JournalFilter, 'status'>): Promise<boolean>
  /**
   * Replays the entries that match the filter, the oldest first, at most `limit` (1 to 1,000, default 100). The filter
   * needs a `status`; the kind `action` is refused. `dryRun` changes nothing.
   *
   * @example
   * const { matched, ids } = await marketplace.journal.replayAll({ status: 'dead' }, { dryRun: true })
   * await marketplace.journal.replayAll({ status: 'dead', name: 'application/installed' }, { limit: 10 })
   */
  replayAll(filter: ReplayFilter, options?: ReplayOptions): Promise<ReplaySummary>
  /**
   * Records an action of a person as an entry of the kind `action`, and gives the logger a line of it. No handler gets it.
   * Its retention is `retention.actionsMs`. Name the business and the subscription in their own fields: an erasure
   * removes them there, also when it does not know them any more.
   *
   * @example
   * await marketplace.journal.recordAction({ actor: 'ada', action: 'replay', entryId: id, reason: 'ticket 812' })
   */
  recordAction(action: Action): Promise<RecordedAction>
}

/** How to replay several entries. */
interface ReplayOptions {
  /** The most entries: 1 to 1,000, default 100. */
  limit?: number
  /** Only shows what would be replayed. */
  dryRun?: boolean
}

/** An action that the journal has recorded. */
interface RecordedAction {
  /** The id of its entry. */
  id: string
}
