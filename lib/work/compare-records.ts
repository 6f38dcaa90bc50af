import type { ReadResult } from '../platform/client.js'
import { type SubscriptionRecord, updatedAtMs } from '../record.js'

/** By `updated_at` where both have one: fields may come and move without a change. */
export function isUpdated(record: SubscriptionRecord, before: SubscriptionRecord | null): boolean {
  if (before === null) return true
  const [now, then] = [updatedAtMs(record), updatedAtMs(before)]
  return Number.isNaN(now) || Number.isNaN(then)
    ? JSON.stringify(record) !== JSON.stringify(before)
    : now !== then
}

/** By `updated_at`; a missing or unreadable one says nothing about age. */
export function isOlder(record: SubscriptionRecord, than: SubscriptionRecord | null): boolean {
  return than !== null && updatedAtMs(record) < updatedAtMs(than)
}

/** The business that the platform names for a subscription that was read as another's. */
export function ownerIn(
  result: ReadResult,
  { record }: { record: SubscriptionRecord | null },
): string | undefined {
  return record !== null && 'recordBusinessUid' in result ? result.recordBusinessUid : undefined
}
