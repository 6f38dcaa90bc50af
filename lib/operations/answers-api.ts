import type { Decision } from '../entitlement/decide.js'
import type { ItemOptions } from '../entitlement/items.js'
import type { ImportOptions } from './import-options.js'
import type { ImportSummary } from './import-results.js'
import type { TrackedSubscription, TrackOptions } from './track.js'

/**
 * Which answer to explain.
 *
 * @example await marketplace.explain('business-1', { at: '2026-03-01T09:00:00Z' })
 */
export interface ExplainOptions extends ItemOptions {
  /** The answer at this time, by today's rules: a `Date`, or ISO 8601 with an offset or `Z`. */
  at?: Date | string
}

/** Who may use the app and why, and ways to bring that up to date without an event. */
export interface AnswersApi {
  /**
   * Whether the business may use the app now. Never rejects; false while the answer is uncertain.
   *
   * @example
   * if (await marketplace.isEntitled(business_uid, { purchasableUid: ['pro', 'team'] })) showReports()
   */
  isEntitled(businessUid: string | number, options?: ItemOptions): Promise<boolean>
  /**
   * The answer of `isEntitled` without a promise, for code that runs very often; undefined when it is not in memory, or
   * is no longer fresh. Never throws. Looks nothing up, also not in the background: `isEntitled` does that.
   *
   * @example
   * const entitled = marketplace.peek(business_uid) ?? (await marketplace.isEntitled(business_uid))
   */
  peek(businessUid: string | number, options?: ItemOptions): boolean | undefined
  /**
   * The same answer with its reason, evidence and age. Never rejects.
   *
   * With `at`, the answer as it was at that time, by the rules of today, from the changes in the journal: `restsOn` names
   * them. If the journal does not have them, the answer is `not_recorded` and not `known`. With `at` it rejects
   * `argument_invalid`, `store_unavailable` or `closed`.
   *
   * @example
   * const { entitled, explanation, restsOn } = await marketplace.explain('business-1', { at: '2026-03-01T09:00:00Z' })
   */
  explain(businessUid: string | number, options?: ExplainOptions): Promise<Decision>
  /**
   * Requests the read of a subscription without an event: for an import, or when its `created` never came. Resolves when
   * the request is on disk; the read follows. Rejects `argument_invalid` or `store_unavailable`.
   *
   * @example
   * await marketplace.track({ subscription_uid, business_uid }, { announce: false }) // no change for handlers
   */
  track(subscription: TrackedSubscription, options?: TrackOptions): Promise<void>
  /**
   * `track` for many subscriptions. Batches share a commit, few lines wait for their reads at a time, reads of events go
   * first, and each line gets its result from the platform's answer. A second run with the same lines skips those that are
   * read, and requests no read twice. The workers on this database do the reads: this one, or with `worker: false` those
   * of other processes. Rejects `argument_invalid`, `store_unavailable`, `closed`, and with the error that the iterable or
   * `onProgress` throws; the reads requested until then are on disk.
   *
   * @example
   * const { read, notRead } = await marketplace.importSubscriptions(customers, { announce: false })
   */
  importSubscriptions(
    lines: Iterable<TrackedSubscription> | AsyncIterable<TrackedSubscription>,
    options?: ImportOptions,
  ): Promise<ImportSummary>
  /**
   * Reads all known subscriptions of the business again, and answers as `explain`. It waits for the reads at most twice
   * `platform.timeoutMs` and a second. Rejects `argument_invalid` or `store_unavailable`.
   *
   * @example const { entitled, explanation } = await marketplace.refresh('business-1')
   */
  refresh(businessUid: string | number): Promise<Decision>
}
