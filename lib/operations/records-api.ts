import type { EraseOptions, EraseSummary } from './erase.js'
import type { BusinessData } from './export-data.js'
import type { HistoryItem, HistoryOptions } from './history.js'
import type { JournalApi } from './journal-api.js'
import type { SubscriptionStatus, SubscriptionsFilter } from './subscriptions.js'

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
  }
  journal: JournalApi
  /**
   * The history of a business, newest first: deliveries, changes found by reads, the outcomes of both, and actions of
   * people. To page, pass the `id` of the last item as `before`: no item is missing or appears twice.
   *
   * @example
   * const page = await marketplace.history('business-1', { limit: 20 })
   * const older = await marketplace.history('business-1', { limit: 20, before: page.at(-1)?.id })
   */
  history(businessUid: string | number, options?: HistoryOptions): Promise<HistoryItem[]>
  /**
   * All stored data of a business: its subscriptions, and the journal entries that name it or one of them.
   *
   * @example
   * await writeFile('business-1.json', JSON.stringify(await marketplace.exportData('business-1')))
   */
  exportData(businessUid: string | number): Promise<BusinessData>
  /**
   * Deletes all data that `exportData` returns, in small batches, and records an action `erase` in the journal: the
   * business, the time, and `actor`. Reads and handlers under way do not restore deleted data. A later delivery is stored
   * as a new one. If it rejects, call it again.
   *
   * @example
   * const { erasedAt, rows } = await marketplace.erase('business-1', { actor: 'ada@example.com' })
   */
  erase(businessUid: string | number, options?: EraseOptions): Promise<EraseSummary>
}
