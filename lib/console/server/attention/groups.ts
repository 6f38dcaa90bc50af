import type { JournalEntry } from '../../../index.js'
import type { Person } from '../../protocol/roles.js'
import {
  ATTENTION_STATUSES,
  type AttentionGroup,
  type AttentionReply,
  type AttentionStatus,
  type EntryRow,
  type OutcomeRow,
  type Replies,
} from '../../protocol/shapes.js'
import { Refusal } from '../http.js'
import { rowsFor } from '../rows.js'
import type { Scans } from '../scans.js'
import { causeOf } from './cause.js'

/** Where the examined entries of a status begin: behind this entry, or without it at the newest. */
export interface Window {
  before?: string | undefined
}

/** Some of the newest entries of a status. */
interface Found {
  status: AttentionStatus
  /** Newest first. */
  ids: string[]
  /** The business of each of them that has one. */
  businessOf: Map<string, string>
  /** What they are: the name of the event, or the kind in words. */
  name: string
  /** Whether there are older entries, which were not examined. */
  hasOlder: boolean
}

const ROWS_A_PAGE = 50

/**
 * Dead and retrying entries, grouped by their handlers, and the class and message of the error. A request examines the newest entries of a status, or
 * those behind a given one.
 *
 * `sign` makes the keys of groups. A key derives from the text of the error, which support must not be able to guess.
 */
export function createFailedEntries({ scans, sign }: { scans: Scans; sign(...of: unknown[]): string }) {
  function keyOf(status: AttentionStatus, entry: JournalEntry): string {
    return `${status}-${sign('group', entry.kind, entry.name, causeOf(entry)).slice(0, 22)}`
  }

  async function attention(
    person: Person,
    { status: only, before }: Window & { status?: AttentionStatus | undefined },
  ): Promise<AttentionReply> {
    const groups = new Map<string, AttentionGroup>()
    const counts = { dead: 0, retrying: 0 }
    const next: AttentionReply['next'] = { dead: null, retrying: null }
    for (const status of ATTENTION_STATUSES) {
      if (only !== undefined && only !== status) continue
      const take = (entry: JournalEntry) => {
        counts[status]++
        const key = keyOf(status, entry)
        const group = groups.get(key)
        if (!group) groups.set(key, groupOf(person, status, key, entry, before))
        else addToGroup(group, entry)
      }
      next[status] = (await scans.entries({ status }, { from: before, take })).next
    }
    return {
      groups: [...groups.values()].sort((a, b) => a.status.localeCompare(b.status) || b.count - a.count),
      counts,
      next,
      isAll: next.dead === null && next.retrying === null,
    }
  }

  /** The entries of the group in its window. Throws a `Refusal` if there are none. */
  async function ofGroup(key: string, { before }: Window): Promise<Found> {
    const found = await find(statusOf(key), before, (status, entry) => keyOf(status, entry) === key)
    if (found.ids.length === 0) throw gone()
    return found
  }

  async function find(
    status: AttentionStatus,
    before: string | undefined,
    fits: (status: AttentionStatus, entry: JournalEntry) => boolean,
  ): Promise<Found> {
    const found: Found = { status, ids: [], businessOf: new Map(), name: '', hasOlder: false }
    const take = (entry: JournalEntry) => {
      if (!fits(status, entry)) return
      found.name ||= entry.name || (KINDS[entry.kind] ?? '')
      found.ids.push(entry.id)
      if (entry.business_uid !== null) found.businessOf.set(entry.id, entry.business_uid)
    }
    const { next } = await scans.entries({ status }, { from: before, take })
    return { ...found, hasOlder: next !== null }
  }

  return {
    attention,
    ofGroup,
    ofStatus: (status: AttentionStatus, { before }: Window): Promise<Found> =>
      find(status, before, () => true),

    /** A page of the entries of a group. `from`: the `next` of the page before. */
    async group(
      person: Person,
      { key, before, from }: Window & { key: string; from?: string | undefined },
    ): Promise<Replies['group']> {
      const { entryRow } = rowsFor(person)
      const entries: EntryRow[] = []
      const status = statusOf(key)
      const { next } = await scans.entries(
        { status },
        {
          from: from ?? before,
          take(entry) {
            if (keyOf(status, entry) === key) entries.push(entryRow(entry))
          },
          isFull: () => entries.length === ROWS_A_PAGE,
        },
      )
      if (from === undefined && entries.length === 0) throw gone()
      return { entries, next }
    },
  }
}

/** The kinds whose entries have no name, in words. */
const KINDS: Partial<Record<JournalEntry['kind'], string>> = {
  change: 'changes of subscriptions',
  entitlement: 'changes of the access',
  unrecognised: 'unrecognised deliveries',
}

export type FailedEntries = ReturnType<typeof createFailedEntries>

function groupOf(
  person: Person,
  status: AttentionStatus,
  key: string,
  entry: JournalEntry,
  before: string | undefined,
): AttentionGroup {
  const { id, kind, name, receivedAt } = entry
  const error = rowsFor(person).errorOf({ ...entry, error: causeOf(entry) })
  const times = { oldest: receivedAt, newest: receivedAt }
  return { key, before: before ?? null, status, kind, name, error, count: 1, ...times, entryId: id }
}

/** With the error by which the page groups failures of one cause, as this list does. */
export function outcomeRow(person: Person, entry: JournalEntry): OutcomeRow {
  const { entryRow, errorOf } = rowsFor(person)
  const cause = entry.error === null ? null : causeOf(entry)
  return { ...entryRow(entry), sharedError: errorOf({ error: cause }) }
}

function addToGroup(group: AttentionGroup, { receivedAt }: JournalEntry) {
  group.count++
  if (receivedAt < group.oldest) group.oldest = receivedAt
  if (receivedAt > group.newest) group.newest = receivedAt
}

function statusOf(key: string): AttentionStatus {
  const status = ATTENTION_STATUSES.find((each) => key.startsWith(`${each}-`))
  if (status === undefined) throw gone()
  return status
}

function gone(): Refusal {
  return new Refusal(
    404,
    'group_gone',
    'This group no longer exists: its entries have been handled, fail with another error now, or are behind newer ones.',
  )
}
