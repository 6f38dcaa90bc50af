import type { Decision } from '../entitlement/decide.js'
import type { EraseSummary } from '../operations/businesses/erase.js'
import type { BusinessData } from '../operations/businesses/export.js'
import type { HistoryItem, HistoryOptions } from '../operations/businesses/history.js'
import type { JournalFilter } from '../operations/journal/entry-filter.js'
import type { Action, ReplayFilter, ReplaySummary } from '../operations/journal/journal-operations.js'
import type { JournalEntry } from '../operations/journal/public-entry.js'
import type { ImportLine, ImportOptions, ImportSummary } from '../operations/subscriptions/import.js'
import type {
  SubscriptionStatus,
  SubscriptionsFilter,
  TrackedSubscription,
} from '../operations/subscriptions/subscriptions.js'

/** The methods for stored data. All of them reject with `argument_invalid`, `store_unavailable` or `closed`. */
export interface RecordsApi {
  subscriptions: {
    /**
     * Lists stored subscriptions in the order of their uids (by bytes).
     *
     * @example
     * const lost = await marketplace.subscriptions.list({ reason: 'missing', limit: 50 })
     * const nextPage = await marketplace.subscriptions.list({ reason: 'missing', after: lost.at(-1)?.subscription_uid })
     */
    list(filter?: SubscriptionsFilter): Promise<SubscriptionStatus[]>
    /**
     * One stored subscription, or undefined.
     *
     * @example
     * const subscription = await marketplace.subscriptions.get('subscription-1')
     */
    get(subscriptionUid: string | number): Promise<SubscriptionStatus | undefined>
    /**
     * Adds a subscription without an event, for a lost `create`. Resolves when it is on disk; the read follows. With
     * `announce: false`, the change that the first successful read finds does not reach `onPurchaseChange`; changes of
     * later reads do. An event before that read, or a `track` without this option, cancels it.
     *
     * @example
     * await marketplace.subscriptions.track({ subscriptionUid, businessUid }, { announce: false })
     */
    track(subscription: TrackedSubscription, options?: { announce?: boolean }): Promise<void>
    /**
     * `track` for many subscriptions. Each line gets its result from the platform's answer. Batches share a commit, at most
     * 250 lines wait for their reads at a time, and reads that events request go first. Run it again with the same lines
     * after an abort, a crash or an error: it skips the lines that are read. A worker on this database does the reads: this
     * process, or with `worker: false` the running app. It also rejects with the error of the iterable or of `onProgress`.
     * The reads requested until then are on disk.
     *
     * @example
     * const { read, notRead } = await marketplace.subscriptions.import(customers, { announce: false })
     * await marketplace.subscriptions.import(notRead, { announce: false }) // later: tries these lines again
     */
    import(
      lines: Iterable<TrackedSubscription | ImportLine> | AsyncIterable<TrackedSubscription | ImportLine>,
      options?: ImportOptions,
    ): Promise<ImportSummary>
    /**
     * Makes a read of every known subscription due, for a database that was restored from a backup. The reads are spread
     * evenly over a quarter of a second for each, but within `withinMs`: 1 second to 24 hours, default 10 minutes. The
     * worker of any process on the database reads. Resolves when that is written.
     *
     * @example const { subscriptions } = await marketplace.subscriptions.refreshAll({ withinMs: 600_000 })
     */
    refreshAll(options?: { withinMs?: number }): Promise<{ subscriptions: number }>
  }
  businesses: {
    /**
     * Reads all known subscriptions of the business again, waits for the reads (at most 21 s + `freshness.waitMs`), and
     * answers like `explain`.
     *
     * @example const { entitled, explanation } = await marketplace.businesses.refresh('business-1')
     */
    refresh(businessUid: string | number): Promise<Decision>
    /**
     * The history of a business, newest first: deliveries, changes found by reads, the outcomes of both, and actions of
     * people. To page, pass the `id` of the last item as `before`: no item is missing or appears twice.
     *
     * @example
     * const page = await marketplace.businesses.history('business-1', { limit: 20 })
     * const older = await marketplace.businesses.history('business-1', { limit: 20, before: page.at(-1)?.id })
     */
    history(businessUid: string | number, options?: HistoryOptions): Promise<HistoryItem[]>
    /**
     * All stored data of a business: its subscriptions, and the journal entries that name it or one of them.
     *
     * @example
     * await writeFile('business-1.json', JSON.stringify(await marketplace.businesses.export('business-1')))
     */
    export(businessUid: string | number): Promise<BusinessData>
    /**
     * Deletes all data that `businesses.export` returns, in small batches, and records an action `erase` in the journal:
     * the business, the time, and `actor`, who requested it. Reads and handlers under way do not restore deleted data. A
     * later delivery is stored as a new one. If it rejects, call it again.
     *
     * @example
     * const { erasedAt, rows } = await marketplace.businesses.erase('business-1', { actor: 'ada@example.com' })
     */
    erase(businessUid: string | number, options?: { actor?: string }): Promise<EraseSummary>
  }
  journal: {
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
     * needs a `status`; the kind `action` is refused. `dryRun` changes nothing.
     *
     * @example
     * const { matched, ids } = await marketplace.journal.replayAll({ status: 'dead' }, { dryRun: true })
     * await marketplace.journal.replayAll({ status: 'dead', name: 'application/installed' }, { limit: 10 })
     */
    replayAll(filter: ReplayFilter, options?: { limit?: number; dryRun?: boolean }): Promise<ReplaySummary>
    /**
     * Records an action of a person as an entry of the kind `action`. No handler gets it. Its retention is that of finished
     * events.
     *
     * @example
     * await marketplace.journal.recordAction({ actor: 'ada', action: 'replay', entryId: id, reason: 'ticket 812' })
     */
    recordAction(action: Action): Promise<{ id: string }>
  }
}
