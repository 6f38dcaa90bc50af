import { parseRecord, type SubscriptionRecord } from '../record.js'
import type { Announcement } from '../store/store.js'

/**
 * What a purchase event says of its subscription; undefined for every other event. Anybody with the delivery secret can
 * send it, so it never decides alone: see `end-evidence.ts`.
 */
export function announcedBy(
  name: string,
  data: unknown,
  isAccess: (record: SubscriptionRecord) => boolean | undefined,
): Announcement | undefined {
  if (!NAMES.has(name)) return undefined
  const record = parseRecord(data)
  const access = record && isAccess(record)
  if (access !== undefined) return access ? 'access' : 'end'
  return name === 'purchasable_subscription/create' ? undefined : 'update'
}

const NAMES = new Set([
  'purchasable_subscription/create',
  'purchasable_subscription/updated',
  'purchasable_subscription/update',
])
