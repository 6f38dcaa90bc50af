import { type Clock, createAgingTime, SECOND } from '../base/clock.js'
import { type ErrorCode, MarketplaceError } from '../base/errors.js'
import { orAborted } from '../base/waiting.js'
import { createHttp, type Http, type HttpReply, type PlatformNotes, platformUrl } from './http.js'
import { createLimit } from './limit.js'
import { failureIn, ReadFailure, type ReadResult, recordIn } from './read-result.js'
import { createRegisterWebhook } from './register-webhook.js'
import { createFetchToken, createTokens } from './tokens.js'

interface PlatformOptions {
  baseUrl: string
  authUrl: string
  clientId: string
  clientSecret: string
  fetch?: typeof globalThis.fetch | undefined
  /** Deadline of one call; see `createHttp`. */
  timeoutMs: number
  /** The maximum number of concurrent reads. As many token calls may run beside them. */
  concurrency: number
  clock: Clock
  notes?: PlatformNotes | undefined
}

export interface ReadRequest {
  subscriptionUid: string
  businessUid: string
  signal?: AbortSignal | undefined
}

/** The three calls of the interface document, exactly as written there. It repeats a call only after a 401, and once. */
export function createPlatformClient(options: PlatformOptions) {
  const { baseUrl, clientSecret, concurrency, clock, notes } = options
  const http = createHttp(options)
  const age = createAgingTime(clock)
  let throttledUntil = Number.NEGATIVE_INFINITY
  const limitReads = createLimit(concurrency)
  const limitTokens = createLimit(concurrency)
  const fetchToken = createFetchToken({ ...options, send })
  const tokens = createTokens({
    fetchToken: (businessUid) => limitTokens(() => fetchToken(businessUid)),
    clock,
  })

  /**
   * After a 429 no call begins before the time that the platform asks for: it would get the same reply. So one that waited for
   * its turn, and the next one of a read under way, have the result of the limited one, also if its reader has given up.
   */
  async function send(request: Parameters<Http['send']>[0]): Promise<HttpReply> {
    const leftMs = throttledUntil - age()
    if (leftMs > 0) throw new ReadFailure({ kind: 'throttled', retryAfterMs: leftMs })
    const reply = await http.send(request)
    const failure = failureIn(reply, clock.now())
    if (failure?.kind === 'throttled') {
      throttledUntil = Math.max(throttledUntil, age() + (failure.retryAfterMs ?? SECOND))
    }
    return reply
  }

  /** GET {base_url}/business/subscriptionsmng/v1/subscriptions?filter[uid]=… */
  function read(subscriptionUid: string, token: string, signal: AbortSignal | undefined): Promise<HttpReply> {
    const url = platformUrl(baseUrl, '/business/subscriptionsmng/v1/subscriptions', {
      'filter[uid]': subscriptionUid,
    })
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    return limitReads(() => send({ method: 'GET', url, headers, signal }), signal)
  }

  async function readWithToken(request: ReadRequest): Promise<ReadResult> {
    const { subscriptionUid, businessUid, signal } = request
    let token = await orAborted(tokens.get(businessUid), signal)
    let reply = await read(subscriptionUid, token, signal)
    if (reply.status === 401) {
      notes?.noteRefusal('read', reply, [subscriptionUid, businessUid, token])
      tokens.drop(businessUid, token)
      token = await orAborted(tokens.get(businessUid), signal)
      reply = await read(subscriptionUid, token, signal)
    }
    // The token is dropped, so the next try shows whether the business still gets one.
    if (reply.status === 401 || reply.status === 403) tokens.drop(businessUid, token)
    const result = failureIn(reply, clock.now()) ?? recordIn(reply, request)
    if (result.kind !== 'found') notes?.noteRefusal('read', reply, [subscriptionUid, businessUid, token])
    return result
  }

  return {
    /** Reads one subscription with a token for its business. Never rejects. */
    async readSubscription(request: ReadRequest): Promise<ReadResult> {
      try {
        return await readWithToken(request)
      } catch (error) {
        if (error instanceof ReadFailure) return error.result
        return {
          kind: 'outage',
          code: error instanceof MarketplaceError ? error.code : 'platform_unreachable',
        }
      }
    },

    isWaitingForToken: tokens.isFetching,

    /** A token of the app for a business. Rejects with a `MarketplaceError` that names the cause. */
    async fetchAppToken(businessUid: string): Promise<string> {
      try {
        return await tokens.get(businessUid)
      } catch (error) {
        if (!(error instanceof ReadFailure)) throw error
        const code = codeOfTokenFailure(error.result)
        const why = WHY_NO_TOKEN[code] ?? code.replaceAll('_', ' ')
        throw new MarketplaceError(code, `Cannot get a token for the business: ${why}`)
      }
    },

    /** The same for a part of this package, with the `ReadFailure` of the platform's reply. */
    tokenFor: tokens.get,

    /** Forgets a token with which a call of the app has failed, so that its next try gets another one. */
    dropAppToken: tokens.drop,

    registerWebhook: createRegisterWebhook({
      send: http.send,
      url: () => platformUrl(baseUrl, '/platform/v1/webhook/subscribe'),
      secrets: [clientSecret],
    }),

    close: http.close,
  }
}

const WHY_NO_TOKEN: Partial<Record<ErrorCode, string>> = {
  app_credentials_refused: 'the platform refuses app.clientId and app.clientSecret',
  token_refused:
    'the platform refuses it; has the business installed the app, and is platform.authUrl the address of the token endpoint?',
}

function codeOfTokenFailure(result: ReadResult): ErrorCode {
  if (result.kind === 'throttled') return 'platform_throttled'
  if (result.kind === 'token_refused') return 'token_refused'
  if (result.kind === 'credentials_refused') return 'app_credentials_refused'
  return 'code' in result ? result.code : 'platform_reply_invalid'
}
