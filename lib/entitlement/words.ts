import { type ErrorCode, printable } from '../base/errors.js'

/** The codes with which the read of a subscription, or the search for one, fails. */
type ReadFailure =
  | Extract<ErrorCode, `platform_${string}`>
  | Extract<
      ErrorCode,
      'token_refused' | 'app_credentials_refused' | 'lease_lapsed' | 'find_subscriptions_failed'
    >

/** Why a read or a search failed, in words for a support person. They follow "the last read failed: ". */
export const FAILURES = {
  platform_unreachable: 'the platform cannot be reached',
  platform_timeout: 'the platform did not answer in time',
  platform_failing: 'the platform has an error of its own',
  platform_throttled: 'the platform limits how often the app may read',
  platform_redirected: 'the platform sent the app to another address',
  platform_reply_too_large: 'the answer of the platform is too large',
  platform_reply_invalid: 'the answer of the platform is not one that the app understands',
  platform_refused: 'the platform refuses to show the subscription',
  platform_record_mismatch: 'the subscription belongs to another business',
  platform_record_missing: 'the platform does not show the subscription',
  token_refused: 'the platform gives the app no access to this business',
  app_credentials_refused: 'the platform refuses the app itself',
  lease_lapsed: 'the app was interrupted while it read',
  find_subscriptions_failed: 'the code of the app that searches the platform has an error',
} as const satisfies Record<ReadFailure, string>

/**
 * The words for the `failure` of a subscription or of a search, for your own support page.
 *
 * @example failureInWords('platform_timeout') // the platform did not answer in time
 */
export function failureInWords(failure: string): string {
  return Object.hasOwn(FAILURES, failure) ? FAILURES[failure as ReadFailure] : 'an unexpected error'
}

/**
 * An identifier as part of a sentence. A sender with the delivery secret may have written it, so one with more than letters,
 * digits and the usual signs is quoted: it must not read like a sentence of this package.
 */
export function identifierInWords(identifier: string): string {
  if (identifier.length <= MAX_IDENTIFIER && /^[\w.:@/+-]+$/.test(identifier)) return identifier
  const shown = printable(identifier, MAX_IDENTIFIER)
  return JSON.stringify(identifier.length > MAX_IDENTIFIER ? `${shown}…` : shown)
}

const MAX_IDENTIFIER = 60

/** Items in words: `the item pro`, `the items pro, team and solo`. There is at least one. */
export function itemsInWords(items: readonly string[], last: 'and' | 'or'): string {
  const named = items.slice(0, MAX_ITEMS).map(identifierInWords)
  const shown = items.length > MAX_ITEMS ? [...named, `${items.length - MAX_ITEMS} more`] : named
  const list = [shown.slice(0, -1).join(', '), ...shown.slice(-1)].filter((part) => part !== '')
  return `the ${items.length === 1 ? 'item' : 'items'} ${list.join(` ${last} `)}`
}

/** The most items in a sentence: a sender with the delivery secret can forge any number of them. */
const MAX_ITEMS = 5
