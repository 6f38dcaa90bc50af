import { nextTurn } from '../../base/waiting.js'
import type { EntryFilter, Store, SubscriptionFilter } from '../../store/port/store.js'

/** The journal entries that match the filter, in pages, newest first. */
export function entryPages(
  store: Pick<Store, 'listEntries'>,
  filter: Omit<EntryFilter, 'before' | 'limit'>,
  limit: number,
) {
  const list = (before: string | undefined) =>
    store.listEntries({ ...filter, limit, ...(before === undefined ? {} : { before }) })
  return pages(list, ({ id }) => id, limit)
}

/** The subscriptions that match the filter, in pages, in the order of their uids. `after` is where the first page begins. */
export function subscriptionPages(
  store: Pick<Store, 'listSubscriptions'>,
  { after: first, ...filter }: Omit<SubscriptionFilter, 'limit'>,
  limit: number,
) {
  const list = (after = first) =>
    store.listSubscriptions({ ...filter, limit, ...(after === undefined ? {} : { after }) })
  return pages(list, ({ subscriptionUid }) => subscriptionUid, limit)
}

/** Reads all pages: each begins after the last row of the page before, and the event loop has a turn between two. */
async function* pages<Row>(
  list: (after: string | undefined) => Promise<Row[]>,
  placeOf: (row: Row) => string,
  limit: number,
): AsyncGenerator<Row[], void> {
  for (let after: string | undefined; ; await nextTurn()) {
    const page = await list(after)
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < limit) return
    after = placeOf(last)
  }
}
