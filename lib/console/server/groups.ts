import { createHash } from 'node:crypto'
import type { JournalEntry } from '../../index.js'
import type { Person } from '../shared/roles.js'
import type { AttentionGroup, AttentionReply, AttentionStatus, Replies } from '../shared/shapes.js'
import { entriesOf } from './deliveries.js'
import { Refusal } from './http.js'
import { type ConsoleMarketplace, rowsFor, rowsOf } from './rows.js'

/** Failed entries of the same handlers with the same error. */
interface Group extends AttentionGroup {
  /** Newest first. */
  ids: string[]
  businesses: Set<string>
}

/** Adds an entry to the group of its handlers and its error. */
function addToGroup(groups: Map<string, Group>, status: AttentionStatus, entry: JournalEntry) {
  const { id, kind, name, receivedAt, business_uid } = entry
  // The error is masked for operators too: values in it would put each entry into its own group.
  const error = withoutNumbers(rowsFor(SUPPORT).errorOf(entry) ?? 'no error was recorded')
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

/** Removes identifiers and numbers, so that equal failures form one group. */
function withoutNumbers(error: string): string {
  return error
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/(?<![\w-])[\w-]*\d[\w-]*/g, '#')
    .slice(0, 300)
}

/** Limit of examined entries of one status, and how many are read at a time. */
const MAX_EXAMINED = 10_000
const PAGE = 50
const ROWS_A_PAGE = 50
/** All requests within this time share one result. */
const FRESH_MS = 3_000

interface Found {
  groups: Map<string, Group>
  isAll: boolean
}

/** Dead and retrying entries, grouped by their handlers and the error. They are looked up again after a few seconds. */
export function createFailedGroups(marketplace: ConsoleMarketplace) {
  let latest: { at: number; result: Promise<Found> } | undefined

  function look(): Promise<Found> {
    if (latest === undefined || Date.now() - latest.at > FRESH_MS) {
      const fresh = { at: Date.now(), result: lookNow() }
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

  return {
    look,
    groupOf,

    async attention(): Promise<AttentionReply> {
      const { groups, isAll } = await look()
      const all = [...groups.values()].sort((a, b) => a.status.localeCompare(b.status) || b.count - a.count)
      const counts = { dead: 0, retrying: 0 }
      for (const { status, count } of all) counts[status] += count
      return { groups: all.map(({ ids: _ids, businesses: _businesses, ...shown }) => shown), counts, isAll }
    },

    async group(
      person: Person,
      { key, from = 0 }: { key: string; from?: number | undefined },
    ): Promise<Replies['group']> {
      const { ids } = await groupOf(key)
      const next = from + ROWS_A_PAGE < ids.length ? from + ROWS_A_PAGE : null
      return { entries: await rowsOf(marketplace, person, ids.slice(from, from + ROWS_A_PAGE)), next }
    },

    /** The next look reads the entries again. */
    forget() {
      latest = undefined
    },
  }
}

export type FailedGroups = ReturnType<typeof createFailedGroups>
