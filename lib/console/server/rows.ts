import type { JournalEntry, Marketplace, SubscriptionStatus } from '../../index.js'
import type { Person } from '../shared/roles.js'
import type { EntryDetail, EntryRow, SubscriptionRow } from '../shared/shapes.js'
import { maskedRecord, shapeOf, withoutValues } from './masking.js'

/** Entries and subscriptions with the fields that a person may see. */
export function rowsFor({ role }: Person) {
  const seesAll = role === 'operator'

  function entryRow(entry: JournalEntry): EntryRow {
    const { id, kind, name, status, business_uid, subscription_uid, attempts, receivedAt, dueAt } = entry
    const row = { id, kind, name, status, business_uid, subscription_uid, attempts, receivedAt, dueAt }
    return { ...row, cause: entry.cause, error: errorOf(entry) }
  }

  function errorOf({ error, payload, business_uid, subscription_uid }: JournalEntry): string | null {
    return error === null || seesAll ? error : withoutValues(error, payload, [business_uid, subscription_uid])
  }

  return {
    entryRow,
    errorOf,
    entryDetail(entry: JournalEntry): EntryDetail {
      // An action contains the name and reason of a person, and no data of a buyer.
      const isOpen = seesAll || entry.kind === 'action'
      return {
        ...entryRow(entry),
        issues: entry.issues,
        stack: seesAll ? entry.stack : null,
        payload: isOpen ? entry.payload : shapeOf(entry.payload),
        isMasked: !isOpen,
      }
    },
    subscriptionRow(status: SubscriptionStatus): SubscriptionRow {
      const { record } = status
      return { ...status, record: record === null || seesAll ? record : maskedRecord(record) }
    },
  }
}

/** The entries that still exist, as the person may see them. */
export async function rowsOf(
  marketplace: ConsoleMarketplace,
  person: Person,
  ids: readonly string[],
): Promise<EntryRow[]> {
  const entries = await Promise.all(ids.map((id) => marketplace.journal.get(id)))
  return entries.filter((entry) => entry !== undefined).map(rowsFor(person).entryRow)
}

/** The public methods of a marketplace that the console calls. */
export type ConsoleMarketplace = Pick<
  Marketplace,
  'explain' | 'subscriptions' | 'businesses' | 'journal' | 'webhooks' | 'health' | 'readiness'
>
