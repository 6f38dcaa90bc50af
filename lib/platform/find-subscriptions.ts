import type { Clock } from '../base/clock.js'
import { type ErrorCode, ownCode } from '../base/errors.js'
import { identifierOf } from '../base/record.js'
import { orAborted, withDeadline } from '../base/waiting.js'
import { watchLimit } from './http.js'
import { ReadFailure } from './read-result.js'
import { appToken, type Token } from './token.js'

/**
 * The option `platform.findSubscriptions`: returns the uids of all subscriptions of a business, for a platform that can list
 * them. The calls use `fetch`, with `token.value` and `signal`. If it rejects, it is tried again; after a reply 429 of that
 * `fetch` all reads wait as long as the platform asks, and the next call twice as long.
 *
 * @example
 * const findSubscriptions: FindSubscriptions = async (businessUid, { token, fetch, signal }) => {
 *   const headers = { authorization: `Bearer ${token.value}` }
 *   const url = `https://api.platform.example/subscriptions?business=${encodeURIComponent(businessUid)}`
 *   const reply = await fetch(url, { headers, signal, redirect: 'error' })
 *   if (!reply.ok) throw new Error(`the list has the status ${reply.status}`)
 *   return (await reply.json()).map(({ uid }) => uid)
 * }
 */
export type FindSubscriptions = (
  businessUid: string,
  given: {
    /** A token of the app for the business. */
    token: Token<'app'>
    /** `platform.fetch`, or the global one. */
    fetch: typeof globalThis.fetch
    /** Aborts when the answer is not wanted any more: after 10 s, and at `close()`. */
    signal: AbortSignal
  },
) => readonly (string | number)[] | Promise<readonly (string | number)[]>

/** The result of a search. A value, not an exception, because the caller acts on each kind. */
export type SearchResult =
  | { kind: 'found'; subscriptionUids: readonly string[] }
  /** The platform refuses a token for this business, so the app can see no subscription of it. */
  | { kind: 'refused'; code: 'token_refused' }
  /** The platform limits our rate. */
  | { kind: 'throttled'; code: 'platform_throttled'; retryAfterMs?: number }
  /** The platform refuses the app's own credentials, for every business. */
  | { kind: 'credentials_refused'; code: 'app_credentials_refused' }
  /** `cause`: what the option threw. `why`: what it did instead of answering, as the end of a sentence. */
  | { kind: 'failed'; code: ErrorCode; why?: string; cause?: unknown }

/** The most subscriptions that the option may return. */
const MAX_FOUND = 1_000

/** Returns `find(businessUid, signal)`, which calls the option and checks what it returned. Never rejects. */
export function createFindSubscriptions(options: {
  findSubscriptions: FindSubscriptions
  /** Rejects with a `ReadFailure` or a `MarketplaceError`. */
  tokenFor(businessUid: string): Promise<string>
  dropAppToken(businessUid: string, token: string): void
  fetch?: typeof globalThis.fetch | undefined
  timeoutMs: number
  clock: Clock
}) {
  const { findSubscriptions, tokenFor, dropAppToken, timeoutMs, clock } = options
  const { fetch = globalThis.fetch } = options

  /** Rejects with an `Unanswered` or with what the option threw. */
  async function ask(
    businessUid: string,
    token: Token<'app'>,
    lost: AbortSignal,
    fetch: typeof globalThis.fetch,
  ): Promise<string[]> {
    const controller = new AbortController()
    const onAbort = () => controller.abort()
    if (lost.aborted) controller.abort()
    lost.addEventListener('abort', onAbort)
    const { signal } = controller
    try {
      const asked = Promise.resolve(findSubscriptions(businessUid, { token, fetch, signal }))
      return uidsIn(
        await withDeadline(orAborted(asked, lost), timeoutMs, clock, () => {
          controller.abort()
          return new Unanswered(`did not answer within ${timeoutMs} ms`)
        }),
      )
    } finally {
      lost.removeEventListener('abort', onAbort)
    }
  }

  return async function find(businessUid: string, signal: AbortSignal): Promise<SearchResult> {
    let token: Token<'app'>
    try {
      token = appToken(await orAborted(tokenFor(businessUid), signal))
    } catch (error) {
      return withoutToken(error)
    }
    // The option may turn a reply 429 into any error.
    const watched = watchLimit(fetch, clock)
    try {
      return { kind: 'found', subscriptionUids: await ask(businessUid, token, signal, watched.fetch) }
    } catch (error) {
      const limit = watched.limit()
      if (limit) return { kind: 'throttled', code: 'platform_throttled', ...limit }
      const code = 'find_subscriptions_failed'
      // Perhaps the platform has answered 401: only the app knows.
      dropAppToken(businessUid, token.value)
      return error instanceof Unanswered
        ? { kind: 'failed', code, why: error.message }
        : { kind: 'failed', code, why: 'threw', cause: error }
    }
  }
}

/** The result of a search for which there was no token. */
function withoutToken(error: unknown): SearchResult {
  const failure = error instanceof ReadFailure ? error.result : undefined
  if (failure?.kind === 'token_refused') return { kind: 'refused', code: 'token_refused' }
  if (failure?.kind === 'throttled') return { ...failure, code: 'platform_throttled' }
  if (failure?.kind === 'credentials_refused') return { ...failure, code: 'app_credentials_refused' }
  const code = failure && 'code' in failure ? failure.code : ownCode(error)
  return { kind: 'failed', code: code ?? 'platform_unreachable' }
}

/** The option gave no answer. The message is the end of a sentence. */
class Unanswered extends Error {}

function uidsIn(value: unknown): string[] {
  if (!Array.isArray(value)) throw new Unanswered('did not return an array of identifiers')
  if (value.length > MAX_FOUND) throw new Unanswered(`returned more than ${MAX_FOUND} subscriptions`)
  const uids = value.map(identifierOf)
  if (uids.includes(null)) throw new Unanswered('returned an array with something that is not an identifier')
  return [...new Set(uids as string[])]
}
