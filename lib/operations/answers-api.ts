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
   * Whether the business may use the app now. Never rejects; what is not known for certain is false.
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
   * them. What is not recorded, or not any more, is `not_recorded` and not `known`. Then it rejects `argument_invalid`,
   * `store_unavailable` or `closed`.
   *
   * @example
   * const { entitled, explanation, restsOn } = await marketplace.explain('business-1', { at: '2026-03-01T09:00:00Z' })
   */
  explain(businessUid: string | number, options?: ExplainOptions): Promise<Decision>
  /**
   * Learns of a subscription without an event: an import, or a `created` that never came.
   * Rejects `argument_invalid` or `store_unavailable`; resolves when it is on disk, the read follows.
   *
   * @example
   * await marketplace.track({ subscription_uid, business_uid }, { announce: false }) // no change for handlers
   */
  track(subscription: TrackedSubscription, options?: TrackOptions): Promise<void>
  /**
   * `track` for many: batches share a commit, few wait for their reads at a time, events go first, and each line gets its
   * result from the platform's answer. Run again with the same lines after whatever has ended it, it skips what is read
   * and asks for nothing twice. The reads are done by the workers on this database: this one, or with `worker: false`
   * those of the app that runs beside. Rejects `argument_invalid`, `store_unavailable`, `closed`, and what the iterable or
   * `onProgress` throws; what was asked for until then is on disk.
   *
   * @example
   * const { read, notRead } = await marketplace.importSubscriptions(customers, { announce: false })
   */
  importSubscriptions(
    lines: Iterable<TrackedSubscription> | AsyncIterable<TrackedSubscription>,
    options?: ImportOptions,
  ): Promise<ImportSummary>
  /**
   * Reads everything known of the business again, waits for it (at most twice the platform's time limit and a second) and answers
   * as `explain`. Rejects `argument_invalid` or `store_unavailable`.
   *
   * @example const { entitled, explanation } = await marketplace.refresh('business-1')
   */
  refresh(businessUid: string | number): Promise<Decision>
}
