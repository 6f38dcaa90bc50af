/** The values of `purchase_state` and their meaning (interface document, States and transitions). */
export const PURCHASE_STATES = {
  purchased: 'The business may use the app.',
  suspended: 'A payment issue exists; the business may not use the app.',
  canceled:
    'The business cancelled the app subscription (or uninstalled the app, or cancelled its entire platform ' +
    'subscription); the business may not use the app.',
} as const

/** A documented `purchase_state`. */
export type PurchaseState = keyof typeof PURCHASE_STATES

/**
 * One spelling for each state: the document writes both `cancelled` and `canceled`; this returns `canceled` for both.
 * Returns every other value unchanged, documented or not, including letter case and spaces.
 */
export function canonicalState(value: string): string {
  return value === 'cancelled' ? 'canceled' : value
}

/** Whether a state lets the business use the app: exactly `purchased` does (interface document, Receiver rule). */
export function grants(state: string | null | undefined): boolean {
  return state === 'purchased'
}

/** A state as the attribute of a metric, which needs a fixed set of values, while the platform may send any text. */
export function stateForMetrics(state: string | null): string {
  return state === null ? 'gone' : Object.hasOwn(PURCHASE_STATES, state) ? state : 'other'
}
