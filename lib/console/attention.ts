import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { JournalEntry } from '../index.js'
import type { ConsoleMarketplace } from './needs.js'
import { Refusal } from './refusal.js'
import type { Person } from './roles.js'
import { rowsFor } from './rows.js'
import type {
  AttentionGroup,
  AttentionReply,
  AttentionStatus,
  EntryRow,
  ReplayPreview,
  Replies,
} from './shapes.js'

/** At most so many entries of a status are looked at, by so many at a time, so that others have their turn in between. */
const MOST_LOOKED_AT = 10_000
const PAGE = 50
/** A look is shared by all who ask within this time. */
const FRESH_MS = 3_000
/** At most so many entries are replayed by one call. */
export const MOST_REPLAYED = 1_000
const ROWS_A_PAGE = 50

interface Looked {
  groups: Map<string, Group>
  isAll: boolean
}
interface Group extends AttentionGroup {
  /** Newest first. */
  ids: string[]
  businesses: Set<string>
}

/** What is dead and what is tried again, by the handlers and the error they failed with. */
export function createAttention(options: { marketplace: ConsoleMarketplace; now?: () => number }) {
  const { marketplace, now = Date.now } = options
  let looked: { at: number; result: Promise<Looked> } | undefined

  function look(): Promise<Looked> {
    if (looked === undefined || now() - looked.at > FRESH_MS) {
      const fresh = { at: now(), result: lookNow() }
      fresh.result.catch(() => {
        if (looked === fresh) looked = undefined
      })
      looked = fresh
    }
    return looked.result
  }

  async function lookNow(): Promise<Looked> {
    const groups = new Map<string, Group>()
    let isAll = true
    for (const status of ['dead', 'retrying'] as const) {
      let before: string | undefined
      for (let count = 0; ; count += PAGE) {
        if (count >= MOST_LOOKED_AT) {
          isAll = false
          break
        }
        const page = await marketplace.journal.list({
          status,
          limit: PAGE,
          ...(before === undefined ? {} : { before }),
        })
        for (const entry of page) add(groups, status, entry)
        before = page.at(-1)?.id
        if (page.length < PAGE) break
        await nextTurn()
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
      'This group is gone: what was in it has been handled, or fails in another way now.',
    )
  }

  /** The entries that a replay is about, the oldest first, and how many there are. */
  async function selected({
    entry_id,
    group,
    status,
  }: Selection): Promise<{ ids: string[]; words: string; businesses: number }> {
    const given = [entry_id, group, status].filter((each) => each !== undefined).length
    if (given !== 1)
      throw new Refusal(400, 'argument_invalid', 'Cannot replay: name one entry, one group, or one status.')
    if (entry_id !== undefined) return { ids: [entry_id], words: 'this entry', businesses: 1 }
    if (group !== undefined) {
      const { ids, businesses, name, kind } = await groupOf(group)
      return { ids: ids.toReversed(), words: `of ${name || kind}`, businesses: businesses.size }
    }
    const all = [...(await look()).groups.values()].filter((each) => each.status === status)
    // Identifiers begin with the time at which the entry came.
    const ids = all.flatMap((each) => each.ids).sort()
    return {
      ids,
      words: `that are ${status}`,
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
      looked = undefined
      const { ids, words, businesses } = await selected(selection)
      const taken = ids.slice(0, MOST_REPLAYED)
      const sample = await rowsOf(person, taken.slice(0, 5))
      if (taken.length > 0 && sample.length === 0)
        throw new Refusal(404, 'entry_gone', 'There is no entry of this id any more.')
      const [last] = await rowsOf(person, taken.slice(-1))
      return {
        matched: ids.length,
        takes: taken.length,
        businesses: selection.entry_id === undefined ? businesses : sample[0]?.business_uid ? 1 : 0,
        oldest: sample[0]?.receivedAt ?? null,
        newest: last?.receivedAt ?? null,
        sample,
        words: wordsFor(taken.length, ids.length, words),
      }
    },

    /** Hands them to their handlers again, the oldest first; `left` are beyond what one call takes. */
    async replay(selection: Selection): Promise<Replies['replay']> {
      const { ids } = await selected(selection)
      let replayed = 0
      for (const id of ids.slice(0, MOST_REPLAYED)) {
        if (await marketplace.journal.replay(id)) replayed++
        await nextTurn()
      }
      looked = undefined
      if (selection.entry_id !== undefined && replayed === 0)
        throw new Refusal(404, 'entry_gone', 'There is no entry of this id any more.')
      return { replayed, left: Math.max(0, ids.length - MOST_REPLAYED) }
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

function wordsFor(takes: number, matched: number, words: string): string {
  const again = 'A handler that has done its part already does it again.'
  if (words === 'this entry')
    return `Hands this entry to all of its handlers again, from the first try. ${again}`
  if (takes === 0) return 'There is nothing to replay.'
  if (takes === 1) return `Hands 1 entry ${words} to its handlers again, from the first try. ${again}`
  const some = matched > takes ? `the oldest ${takes} of ${matched} entries` : `${takes} entries`
  return `Hands ${some} ${words} to their handlers again, the oldest first, from the first try. ${again}`
}

function add(groups: Map<string, Group>, status: AttentionStatus, entry: JournalEntry) {
  const { id, kind, name, receivedAt, business_uid } = entry
  // Masked also for operators: values in errors would make a group of each entry.
  const error = withoutNumbers(rowsFor(SUPPORT).errorOf(entry) ?? 'no error was kept')
  const key = createHash('sha256')
    .update(JSON.stringify([status, kind, name, error]))
    .digest('base64url')
    .slice(0, 22)
  const group = groups.get(key)
  if (group === undefined) {
    const businesses = new Set(business_uid === null ? [] : [business_uid])
    groups.set(key, {
      key,
      status,
      kind,
      name,
      error,
      count: 1,
      oldest: receivedAt,
      newest: receivedAt,
      ids: [id],
      businesses,
    })
    return
  }
  group.count++
  group.ids.push(id)
  if (business_uid !== null) group.businesses.add(business_uid)
  if (receivedAt < group.oldest) group.oldest = receivedAt
  if (receivedAt > group.newest) group.newest = receivedAt
}

const SUPPORT: Person = { name: 'anybody', role: 'support' }

/** Identifiers and numbers out, so that the same failure is one group. */
function withoutNumbers(error: string): string {
  return error
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b[\w-]*\d[\w-]*\b/g, '#')
    .slice(0, 300)
}

function shown(group: Group): AttentionGroup {
  const { ids: _ids, businesses: _businesses, ...rest } = group
  return rest
}
