import { setImmediate as nextTurn } from 'node:timers/promises'
import { addToGroup, type Group, shown } from './attention-groups.js'
import { entriesOf } from './entries.js'
import type { ConsoleMarketplace } from './needs.js'
import { Refusal } from './refusal.js'
import type { Person } from './roles.js'
import { rowsFor } from './rows.js'
import type { AttentionReply, AttentionStatus, EntryRow, ReplayPreview, Replies } from './shapes.js'

/** Limit of examined entries of one status, and how many are read at a time. */
const MAX_EXAMINED = 10_000
const PAGE = 50
/** All requests within this time share one result. */
const FRESH_MS = 3_000
/** Limit of entries that one call replays. */
export const MAX_REPLAYED = 1_000
const ROWS_A_PAGE = 50

interface Found {
  groups: Map<string, Group>
  isAll: boolean
}

/** Dead and retrying entries, grouped by their handlers and the error. */
export function createAttention(options: { marketplace: ConsoleMarketplace; now?: () => number }) {
  const { marketplace, now = Date.now } = options
  let latest: { at: number; result: Promise<Found> } | undefined

  function look(): Promise<Found> {
    if (latest === undefined || now() - latest.at > FRESH_MS) {
      const fresh = { at: now(), result: lookNow() }
      fresh.result.catch(() => {
        if (latest === fresh) latest = undefined
      })
      latest = fresh
    }
    return latest.result
  }

  async function lookNow(): Promise<Found> {
    const groups = new Map<string, Group>()
    let isAll = true
    for (const status of ['dead', 'retrying'] as const) {
      let examined = 0
      for await (const entry of entriesOf(marketplace, { status }, PAGE)) {
        if (examined === MAX_EXAMINED) {
          isAll = false
          break
        }
        addToGroup(groups, status, entry)
        examined++
      }
    }
    return { groups, isAll }
  }

  async function groupOf(key: string): Promise<Group> {
    const group = (await look()).groups.get(key)
    if (group) return group
    throw new Refusal(
      404,
      'group_gone',
      'This group no longer exists: its entries have been handled, or fail with another error now.',
    )
  }

  /** The entries of a replay, oldest first, with a phrase that describes them. */
  async function selected({
    entry_id,
    group,
    status,
  }: Selection): Promise<{ ids: string[]; which: string; businesses: number }> {
    const given = [entry_id, group, status].filter((each) => each !== undefined).length
    if (given !== 1)
      throw new Refusal(400, 'argument_invalid', 'Cannot replay: select one entry, one group, or one status.')
    if (entry_id !== undefined) return { ids: [entry_id], which: THIS_ENTRY, businesses: 1 }
    if (group !== undefined) {
      const { ids, businesses, name, kind } = await groupOf(group)
      return { ids: ids.toReversed(), which: `of ${name || kind}`, businesses: businesses.size }
    }
    const all = [...(await look()).groups.values()].filter((each) => each.status === status)
    // An id begins with the time at which the entry was received.
    const ids = all.flatMap((each) => each.ids).sort()
    return {
      ids,
      which: `that are ${status}`,
      businesses: new Set(all.flatMap((each) => [...each.businesses])).size,
    }
  }

  return {
    async attention(): Promise<AttentionReply> {
      const { groups, isAll } = await look()
      const all = [...groups.values()].sort((a, b) => a.status.localeCompare(b.status) || b.count - a.count)
      const counts = { dead: 0, retrying: 0 }
      for (const { status, count } of all) counts[status] += count
      return { groups: all.map(shown), counts, isAll }
    },

    async group(
      person: Person,
      { key, from = 0 }: { key: string; from?: number | undefined },
    ): Promise<Replies['group']> {
      const { ids } = await groupOf(key)
      const page = ids.slice(from, from + ROWS_A_PAGE)
      const next = from + ROWS_A_PAGE < ids.length ? from + ROWS_A_PAGE : null
      return { entries: await rowsOf(person, page), next }
    },

    async preview(person: Person, selection: Selection): Promise<ReplayPreview> {
      latest = undefined
      const { ids, which, businesses } = await selected(selection)
      const taken = ids.slice(0, MAX_REPLAYED)
      const sample = await rowsOf(person, taken.slice(0, 5))
      if (taken.length > 0 && sample.length === 0)
        throw new Refusal(404, 'entry_gone', 'This entry no longer exists. Its retention may have ended.')
      const [last] = await rowsOf(person, taken.slice(-1))
      return {
        matched: ids.length,
        takes: taken.length,
        businesses: selection.entry_id === undefined ? businesses : sample[0]?.business_uid ? 1 : 0,
        oldest: sample[0]?.receivedAt ?? null,
        newest: last?.receivedAt ?? null,
        sample,
        effect: effectOf(taken.length, ids.length, which),
      }
    },

    /** Replays the entries, oldest first. `left`: how many exceed the limit of one call. */
    async replay(selection: Selection): Promise<Replies['replay']> {
      const { ids } = await selected(selection)
      let replayed = 0
      for (const id of ids.slice(0, MAX_REPLAYED)) {
        if (await marketplace.journal.replay(id)) replayed++
        await nextTurn()
      }
      latest = undefined
      if (selection.entry_id !== undefined && replayed === 0)
        throw new Refusal(404, 'entry_gone', 'This entry no longer exists. Its retention may have ended.')
      return { replayed, left: Math.max(0, ids.length - MAX_REPLAYED) }
    },

    selected,
  }

  async function rowsOf(person: Person, ids: readonly string[]): Promise<EntryRow[]> {
    const entries = await Promise.all(ids.map((id) => marketplace.journal.get(id)))
    return entries.filter((entry) => entry !== undefined).map(rowsFor(person).entryRow)
  }
}

export interface Selection {
  entry_id?: string | undefined
  group?: string | undefined
  status?: AttentionStatus | undefined
}

const THIS_ENTRY = 'this entry'

function effectOf(takes: number, matched: number, which: string): string {
  const again = 'A handler that has already succeeded is called again.'
  if (which === THIS_ENTRY)
    return `Passes this entry to all of its handlers again, starting with the first try. ${again}`
  if (takes === 0) return 'There is nothing to replay.'
  if (takes === 1)
    return `Passes 1 entry ${which} to its handlers again, starting with the first try. ${again}`
  const some = matched > takes ? `the oldest ${takes} of ${matched} entries` : `${takes} entries`
  return `Passes ${some} ${which} to their handlers again, oldest first, starting with the first try. ${again}`
}
