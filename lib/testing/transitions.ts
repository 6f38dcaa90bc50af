import type { PurchaseState } from '../entitlement/purchase-state.js'

/**
 * The transition table of the interface document, row by row. `none` stands for its "none (N/A)". `emits` is the
 * registration name of the event, null for "No event is emitted". The document shows no transition out of `canceled`.
 */
export const TRANSITIONS = [
  {
    current: ['none'],
    trigger: 'User purchases an app',
    condition: 'Payment succeeded',
    next: 'purchased',
    emits: 'purchasable_subscription/create',
  },
  {
    current: ['none'],
    trigger: 'User purchases an app',
    condition: 'Payment failed',
    next: 'suspended',
    emits: 'purchasable_subscription/create',
  },
  {
    current: ['suspended'],
    trigger: 'Payment confirmation received',
    condition: null,
    next: 'purchased',
    emits: 'purchasable_subscription/update',
  },
  {
    current: ['purchased'],
    trigger: 'Payment confirmation received',
    condition: null,
    next: 'purchased',
    emits: null,
  },
  {
    current: ['purchased'],
    trigger: 'Payment issue received',
    condition: null,
    next: 'suspended',
    emits: 'purchasable_subscription/update',
  },
  {
    current: ['suspended'],
    trigger: 'Payment issue received',
    condition: null,
    next: 'suspended',
    emits: null,
  },
  {
    current: ['suspended', 'purchased'],
    trigger: 'User cancels the app subscription',
    condition: null,
    next: 'canceled',
    emits: 'purchasable_subscription/update',
  },
] as const satisfies readonly Transition[]

export type Trigger = (typeof TRANSITIONS)[number]['trigger']

export interface Transition {
  current: readonly (PurchaseState | 'none')[]
  trigger: string
  condition: string | null
  next: PurchaseState
  emits: 'purchasable_subscription/create' | 'purchasable_subscription/update' | null
}

/**
 * The row of the table for `trigger` in the state `current`; only a purchase has a `condition`. Undefined if the
 * document shows none, as for every trigger after `canceled`.
 */
export function transition(
  current: PurchaseState | 'none',
  trigger: Trigger,
  condition: 'Payment succeeded' | 'Payment failed' | null = null,
): Transition | undefined {
  const rows: readonly Transition[] = TRANSITIONS
  return rows.find(
    (row) => row.trigger === trigger && row.condition === condition && row.current.includes(current),
  )
}
