import type { EraseOptions, EraseSummary } from './erase.js'
import type { BusinessData } from './export-data.js'
import type { HistoryItem, HistoryOptions } from './history.js'
import type { JournalApi } from './journal-api.js'
import type { SubscriptionStatus, SubscriptionsFilter } from './subscriptions.js'

/** What is kept, as a marketplace has it. All reject `argument_invalid`, `store_unavailable`, `closed`. */
export interface RecordsApi {
  subscriptions: {
    /**
     * What is kept of subscriptions, in the order of their uids (by bytes). Rejects `argument_invalid`,
     * `store_unavailable`, `closed`, as all of these.
     *
     * @example
     * const lost = await marketplace.subscriptions.list({ reason: 'missing', limit: 50 })
     * const nextPage = await marketplace.subscriptions.list({ reason: 'missing', after: lost.at(-1)?.subscription_uid })
     */
    list(filter?: SubscriptionsFilter): Promise<SubscriptionStatus[]>
    /**
     * One of them; undefined when it is not known.
     *
     * @example
     * const subscription = await marketplace.subscriptions.get('subscription-1')
     */
    get(subscriptionUid: string | number): Promise<SubscriptionStatus | undefined>
  }
  journal: JournalApi
  /**
   * What came in for a business, the changes that reads showed, what became of both, and what people did: one timeline,
   * newest first. `before` is the `id` of the last item of the page before: no item is left out or shown twice.
   *
   * @example
   * const page = await marketplace.history('business-1', { limit: 20 })
   * const older = await marketplace.history('business-1', { limit: 20, before: page.at(-1)?.id })
   */
  history(businessUid: string | number, options?: HistoryOptions): Promise<HistoryItem[]>
  /**
   * All that is kept of a business: its subscriptions, and the entries of the journal that name it or one of them.
   *
   * @example
   * await writeFile('business-1.json', JSON.stringify(await marketplace.exportData('business-1')))
   */
  exportData(businessUid: string | number): Promise<BusinessData>
  /**
   * Deletes all that `exportData` shows, in small batches, and keeps an action `erase` in the journal: which business,
   * when, and `actor`. Reads and handlers that had begun bring nothing back; what comes in later is new. When it rejects,
   * call it again.
   *
   * @example
   * const { erasedAt, rows } = await marketplace.erase('business-1', { actor: 'ada@example.com' })
   */
  erase(businessUid: string | number, options?: EraseOptions): Promise<EraseSummary>
}
