import type { Decision } from '../entitlement/decide.js'
import type { ItemOptions } from '../entitlement/items.js'
import type { ImportOptions } from './import-options.js'
import type { ImportSummary } from './import-results.js'
import type { TrackedSubscription, TrackOptions } from './track.js'

/** The answers of the gate, and ways to add and refresh subscriptions without an event. */
export interface AnswersApi {
  /**
   * Whether the business may use the app now. Never rejects. An uncertain answer is false.
   *
   * Never use it without `await`: the promise itself is always true, so everybody would get in. The lint rule
   * `@typescript-eslint/no-misused-promises` reports it.
   *
   * @example
   * if (await marketplace.isEntitled(business_uid, { purchasableUid: ['pro', 'team'] })) showReports()
   */
  isEntitled(businessUid: string | number, options?: ItemOptions): Promise<boolean>
  /**
   * The same answer with its reason, evidence and age. Never rejects.
   *
   * @example
   * const { entitled, reason, explanation } = await marketplace.explain('business-1')
   */
  explain(businessUid: string | number, options?: ItemOptions): Promise<Decision>
  /**
   * Adds a subscription without an event, for an import or a lost `create`. Resolves when it is on disk; the read follows.
   * Rejects `argument_invalid` or `store_unavailable`.
   *
   * @example
   * await marketplace.track({ subscription_uid, business_uid }, { announce: false }) // no change for handlers
   */
  track(subscription: TrackedSubscription, options?: TrackOptions): Promise<void>
  /**
   * `track` for many subscriptions. Each line gets its result from the platform's answer. Batches share a commit, at most
   * 250 lines wait for their reads at a time, and reads that events request go first. Run it again with the same lines
   * after an abort, a crash or an error: it skips the lines that are read. A worker on this database does the reads: this
   * process, or with `worker: false` the running app. Rejects `argument_invalid`, `store_unavailable`, `closed`, and with
   * the error of the iterable or of `onProgress`. The reads requested until then are on disk.
   *
   * @example
   * const { read, notRead } = await marketplace.importSubscriptions(customers, { announce: false })
   */
  importSubscriptions(
    lines: Iterable<TrackedSubscription> | AsyncIterable<TrackedSubscription>,
    options?: ImportOptions,
  ): Promise<ImportSummary>
  /**
   * Reads all known subscriptions of the business again, waits for the reads (at most 2 × `platform.timeoutMs` + 1 s +
   * `freshness.waitMs`), and answers like `explain`. Rejects `argument_invalid` or `store_unavailable`.
   *
   * @example const { entitled, explanation } = await marketplace.refresh('business-1')
   */
  refresh(businessUid: string | number): Promise<Decision>
}
