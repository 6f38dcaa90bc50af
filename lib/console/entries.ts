import { setImmediate as nextTurn } from 'node:timers/promises'
import type { JournalEntry } from '../index.js'
import type { ConsoleMarketplace } from './needs.js'

/** All entries that match the filter, newest first, read page by page. Other work has its turn between two pages. */
export async function* entriesOf(
  marketplace: ConsoleMarketplace,
  filter: Omit<JournalFilter, 'limit' | 'before'>,
  pageSize: number,
): AsyncGenerator<JournalEntry> {
  let before: string | undefined
  for (;;) {
    const page = await marketplace.journal.list({ ...filter, limit: pageSize, ...(before ? { before } : {}) })
    yield* page
    if (page.length < pageSize) return
    before = page.at(-1)?.id
    await nextTurn()
  }
}

type JournalFilter = NonNullable<Parameters<ConsoleMarketplace['journal']['list']>[0]>
