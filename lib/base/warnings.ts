import { printable } from './errors.js'

/** Every process warning of this package by its code: what happened, and what to do. */
export const WARNINGS = {
  purchasable_uid_missing:
    "app.purchasableUid is not set, so every subscription that a purchase event or track() names counts as the app's own. " +
    'Set it to the item that businesses buy',
  store_not_open:
    'Until the store opens, this process refuses every delivery and denies every business. It tries again by itself',
  store_adopted:
    'adoptStore is set, so this app takes over the store, even from another app. Remove the option after one start',
  handler_failed:
    'It is called again after each pause of handlers.retryDelaysMs. onHandlerError() gets every failed try, and ' +
    "journal.get() returns the entry with the message and the stack, and journal.list({ status: 'dead' }) every entry that is given up",
  entitled_when_failed:
    'The option entitledWhen gave no answer, so access is denied with the reason entitled_when_failed, and the gate replies ' +
    '503. It must return true, false or { entitled, until } at once. health() is degraded until the rule answers',
  find_subscriptions_failed:
    'The option platform.findSubscriptions gave no answer, so a business without a stored subscription gets 503 until it does. It ' +
    'must return an array of at most 1,000 identifiers, within 10 s. It is called again after a pause, and health() is degraded',
  otherwise_failed:
    'The `otherwise` of listener() threw or rejected. The request got a 500, or its reply was cut off. Handle the error in your app',
  purchase_url_failed:
    'The function purchaseUrl of requireEntitlement() gave no address that a link may have, so the 402 has no link. It must ' +
    'return an absolute http(s) address, a path that begins with one /, or nothing, within 5 s',
  listen_unavailable:
    'Notifications of PostgreSQL do not arrive here (a pooler in transaction mode?). This instance sees changes made ' +
    'by others within five seconds instead of at once. Nothing is lost. For changes at once, connect directly',
  postgres_not_durable:
    'PostgreSQL runs with fsync or full_page_writes off: acknowledged deliveries are lost when its machine fails. Switch both on',
  store_place_unknown:
    'This file system gives a file another inode each time, so a SQLite file that is removed or replaced while the app runs ' +
    'is not noticed, and what is acknowledged then is lost at the next start. Put the database on a local disk',
} as const

export type WarningCode = keyof typeof WARNINGS
export type Warn = (code: WarningCode, why?: string) => void

/** The message of the table after `why`, as one printable line. */
export function messageFor(code: WarningCode, why?: string): string {
  return printable(why ? `${why}${/[;.]\s*$/.test(why) ? ' ' : '. '}${WARNINGS[code]}` : WARNINGS[code])
}

/** Emits a process warning of type `MarketplaceWarning`, with `why` in front of its message. Never throws. */
export function warn(code: WarningCode, why?: string): void {
  try {
    process.emitWarning(messageFor(code, why), { type: 'MarketplaceWarning', code })
  } catch {
    // A failed warning must not fail the work that caused it.
  }
}
