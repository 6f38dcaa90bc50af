import type { EventName } from '../../index.js'

/** The events that the gate needs. */
export const NEEDED_EVENTS: readonly EventName[] = [
  'purchasable_subscription/create',
  'purchasable_subscription/update',
  'application/installed',
  'application/uninstalled',
]
