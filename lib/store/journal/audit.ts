import { createHash } from 'node:crypto'
import type { JournalTable } from '../sql/schema.js'

/**
 * Stands for a business in the audit: in the actions of people that stay after an erasure, and in the lines of the logger.
 * It is `sha256:` and the SHA-256 of the uid as hexadecimal digits, so whoever knows the uid can find the audit, also years
 * later and in another copy of the database.
 *
 * @example auditUid('business-1') // sha256:2ddc49f6…
 */
export function auditUid(businessUid: string): string {
  return `sha256:${createHash('sha256').update(businessUid).digest('hex')}`
}

/** Whether a uid has the form of an `auditUid`: it stands for a business that was erased, and is not the uid of one. */
export function isAuditUid(uid: string): boolean {
  return /^sha256:[\da-f]{64}$/i.test(uid)
}

/**
 * Returns a function that removes identifiers from a text: the business gets its `auditUid`, a subscription `[erased]`. It
 * finds them as whole words, in upper or lower case, so `1` leaves `ticket 812` as it is.
 */
export function createUidRemoval(businessUid: string, subscriptionUids: readonly string[] = []) {
  const uids = [businessUid, ...subscriptionUids].map((uid) => ({ uid, folded: fold(uid) }))

  return function withoutUids(text: string): string {
    const foldedText = fold(text)
    const named = uids.filter(({ folded }) => foldedText.includes(folded)).map(({ uid }) => uid)
    if (named.length === 0) return text
    // The longest first, because one uid may be a part of another.
    const words = named.sort((a, b) => b.length - a.length).map((uid) => uid.replace(SYNTAX, '\\$&'))
    return text.replace(new RegExp(`${EDGE}(?:${words.join('|')})${EDGE}`, 'giu'), (found) =>
      fold(found) === fold(businessUid) ? auditUid(businessUid) : '[erased]',
    )
  }
}

/** Upper case: that of a text contains that of its parts. In lower case `Σ` depends on what follows, and `İ` becomes two characters. */
const fold = (text: string) => text.toUpperCase()

/** A place that is not inside of a word. */
const EDGE = '(?:(?<![a-z\\d])|(?![a-z\\d]))'
const SYNTAX = /[\\^$.*+?()[\]{}|/]/g

/** What an erasure changes in an action. */
export type AuditRow = Pick<JournalTable, 'id' | 'business_uid' | 'subscription_uid' | 'payload'>

/**
 * Returns a function that makes of an action what stays of it; the same object if nothing in it names the business. Who did
 * what always stays. Only reasons of the business, and of actions on several, lose uids, because the senders of deliveries
 * choose uids too: `subscriptionUids` are those that the platform has shown.
 */
export function createAnonymiser(businessUid: string, subscriptionUids: readonly string[] = []) {
  const withoutUids = createUidRemoval(businessUid, subscriptionUids)
  const subscriptions = new Set(subscriptionUids)
  const owners = new Set([businessUid, auditUid(businessUid), null])

  function withoutUidsInReason(payload: string): string {
    const fields = JSON.parse(payload)
    if (typeof fields.reason !== 'string') return payload
    const reason = withoutUids(fields.reason)
    return reason === fields.reason ? payload : JSON.stringify({ ...fields, reason })
  }

  return function anonymised<Row extends AuditRow>(row: Row): Row {
    const { business_uid, subscription_uid } = row
    const isOfBusiness = business_uid === businessUid
    const namesSubscription =
      subscription_uid !== null && (isOfBusiness || subscriptions.has(subscription_uid))
    const payload = owners.has(business_uid) ? withoutUidsInReason(row.payload) : row.payload
    if (!isOfBusiness && !namesSubscription && payload === row.payload) return row
    return {
      ...row,
      business_uid: isOfBusiness ? auditUid(businessUid) : business_uid,
      subscription_uid: namesSubscription ? null : subscription_uid,
      payload,
    }
  }
}
