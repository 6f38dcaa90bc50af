import { createHash } from 'node:crypto'
import type { JournalEntry } from '../index.js'
import type { Person } from './roles.js'
import { rowsFor } from './rows.js'
import type { AttentionGroup, AttentionStatus } from './shapes.js'

/** Failed entries of the same handlers with the same error. */
export interface Group extends AttentionGroup {
  /** Newest first. */
  ids: string[]
  businesses: Set<string>
}

/** Adds an entry to the group of its handlers and its error. */
export function addToGroup(groups: Map<string, Group>, status: AttentionStatus, entry: JournalEntry) {
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
    .replace(/\b[\w-]*\d[\w-]*\b/g, '#')
    .slice(0, 300)
}

/** The group without its entries. */
export function shown(group: Group): AttentionGroup {
  const { ids: _ids, businesses: _businesses, ...rest } = group
  return rest
}
