import type { Person } from '../shared/roles.js'
import type { AttentionReply, Replies } from '../shared/shapes.js'
import { createFailedGroups, shown } from './groups.js'
import { createReplay, rowsOf } from './replay.js'
import type { ConsoleMarketplace } from './rows.js'

const ROWS_A_PAGE = 50

/** Dead and retrying entries, grouped by their handlers and the error. */
export function createAttention(options: { marketplace: ConsoleMarketplace; now?: () => number }) {
  const { marketplace, now = Date.now } = options
  const failed = createFailedGroups({ marketplace, now })

  return {
    async attention(): Promise<AttentionReply> {
      const { groups, isAll } = await failed.look()
      const all = [...groups.values()].sort((a, b) => a.status.localeCompare(b.status) || b.count - a.count)
      const counts = { dead: 0, retrying: 0 }
      for (const { status, count } of all) counts[status] += count
      return { groups: all.map(shown), counts, isAll }
    },

    async group(
      person: Person,
      { key, from = 0 }: { key: string; from?: number | undefined },
    ): Promise<Replies['group']> {
      const { ids } = await failed.groupOf(key)
      const page = ids.slice(from, from + ROWS_A_PAGE)
      const next = from + ROWS_A_PAGE < ids.length ? from + ROWS_A_PAGE : null
      return { entries: await rowsOf(marketplace, person, page), next }
    },

    ...createReplay({ marketplace, failed }),
  }
}
