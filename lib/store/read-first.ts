import type { Engine } from './engine.js'
import { type Connection, sql } from './sql.js'
import type { Subscription } from './store.js'

/** A requested read that has been due for this long is behind others. */
const BEHIND_MS = 250
/** Forged subscriptions may name any business. Those that were read come first, then the newest. */
const MAX_AT_ONCE = 100

/** Whether a requested read waits behind others, so that `readFirst` would help the visitor who waits for it. */
export function isBehindOthers(subscriptions: readonly Subscription[], now: number): boolean {
  return subscriptions.some(
    ({ pending, failure, refreshAt }) =>
      pending && failure === null && refreshAt !== null && now - refreshAt >= BEHIND_MS,
  )
}

/**
 * Makes the due reads of a business that were requested the longest due ones of their classes, so that they are next.
 * Only the app names businesses here, so a sender who forges events cannot.
 */
export function createReadFirst(engine: Engine) {
  return async (trx: Connection, businessUid: string): Promise<void> => {
    // The time of a leased row is the end of its lease, so it stays.
    await sql`
      update subscriptions set refresh_at = 0 where subscription_uid in (
        select subscription_uid from subscriptions
        where business_uid = ${businessUid} and generation > settled_generation and lease_token is null
          and refresh_at > 0 and refresh_at <= ${engine.now()}
        order by unread, created_at desc limit ${sql.lit(MAX_AT_ONCE)} ${engine.skipLocked}
      )`.execute(trx)
  }
}
