/** Every process warning of this package by its code, for the developer: what is wrong and what follows from it. */
export const WARNINGS = {
  purchasable_uid_missing:
    "app.purchasableUid is not set: every subscription that a notice or track() names counts as the app's own",
  store_not_open: 'Until the store opens, no delivery is accepted and nobody is let in. It is tried again',
  store_adopted:
    'adoptStore is set: this app takes the store over, whichever app it belonged to. Remove the option after one start',
  handler_failed: 'It is tried again by its schedule; onHandlerError() reports each failed try',
  otherwise_failed:
    'This is what `otherwise` of handler() threw or rejected with. The request was answered with 500, or cut off where its reply had begun',
  listen_unavailable:
    'Notifications of PostgreSQL do not arrive here (a pooler in transaction mode?): this instance learns of a ' +
    'change that another made within five seconds instead of at once. Nothing is lost by it',
  postgres_not_durable:
    'PostgreSQL runs with fsync or full_page_writes off: what was acknowledged is lost when its machine fails',
} as const

export type WarningCode = keyof typeof WARNINGS
export type Warn = (code: WarningCode, why?: string) => void

/** The words of the table, with `why` in front. */
export function messageFor(code: WarningCode, why?: string): string {
  return why ? `${why}. ${WARNINGS[code]}` : WARNINGS[code]
}

/** Emits a process warning of type `MarketplaceWarning`, with `why` in front of the words of the table. Never throws. */
export function warn(code: WarningCode, why?: string): void {
  try {
    process.emitWarning(messageFor(code, why), { type: 'MarketplaceWarning', code })
  } catch {
    // A warning must not stop what it warns of.
  }
}
