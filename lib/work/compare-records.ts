import type { ReadResult } from '../platform/read-result.js'
import { RECORD_FIELDS, type SubscriptionRecord, UPDATED_EVENT_FIELDS, updatedAtMs } from '../record.js'

const DOCUMENTED = Object.keys({ ...RECORD_FIELDS, ...UPDATED_EVENT_FIELDS })

/**
 * Compares `updated_at` if both have one, else the documented fields, because other fields may appear and move without a
 * change.
 */
export function isUpdated(record: SubscriptionRecord, before: SubscriptionRecord | null): boolean {
  if (before === null) return true
  const [now, then] = [updatedAtMs(record), updatedAtMs(before)]
  return Number.isNaN(now) || Number.isNaN(then)
    ? DOCUMENTED.some((field) => JSON.stringify(record[field]) !== JSON.stringify(before[field]))
    : now !== then
}

/** Compares `updated_at`; without a readable one no record is older. */
export function isOlder(record: SubscriptionRecord, than: SubscriptionRecord | null): boolean {
  return than !== null && updatedAtMs(record) < updatedAtMs(than)
}

/** The business that the platform names for a subscription which the store has under another business. */
export function ownerIn(
  result: ReadResult,
  { record }: { record: SubscriptionRecord | null },
): string | undefined {
  return record !== null && 'recordBusinessUid' in result ? result.recordBusinessUid : undefined
}
