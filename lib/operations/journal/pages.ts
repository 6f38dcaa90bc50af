import { nextTurn } from '../../base/waiting.js'
import type {
  EntryFilter,
  JournalEntry,
  Store,
  StoredSubscription,
  SubscriptionFilter,
} from '../../store/port/store.js'

/** The journal entries that match the filter, in pages, newest first. The event loop has a turn between two pages. */
export async function* entryPages(
  store: Pick<Store, 'listEntries'>,
  filter: Omit<EntryFilter, 'before' | 'limit'>,
  pageSize: number,
): AsyncGenerator<JournalEntry[], void> {
  for (let before: string | undefined; ; ) {
    const page = await store.listEntries({
      ...filter,
      limit: pageSize,
      ...(before === undefined ? {} : { before }),
    })
    yield page
    before = page.at(-1)?.id
    if (page.length < pageSize) return
    await nextTurn()
  }
}

/** The subscriptions that match the filter, in pages, in the order of their uids. `after` is where the first page begins. */
export async function* subscriptionPages(
  store: Pick<Store, 'listSubscriptions'>,
  filter: Omit<SubscriptionFilter, 'limit'>,
  pageSize: number,
): AsyncGenerator<StoredSubscription[], void> {
  for (let after = filter.after; ; ) {
    const page = await store.listSubscriptions({
      ...filter,
      limit: pageSize,
      ...(after === undefined ? {} : { after }),
    })
    yield page
    after = page.at(-1)?.subscriptionUid
    if (page.length < pageSize) return
    await nextTurn()
  }
}
