import { retryAfterMs } from '../backoff.js'
import type { Clock } from '../clock.js'
import { type ErrorCode, MarketplaceError } from '../errors.js'
import { identifierOf, parseRecord, type SubscriptionRecord, updatedAtMs } from '../record.js'
import { orAborted } from '../waiting.js'
import { errorWords, isObject, saysError } from './error-replies.js'
import { createHttp, type HttpReply } from './http.js'
import { createLimit } from './limit.js'
import { createTokens, type FetchedToken } from './tokens.js'
import { createRegisterWebhook, isHeaderSafe } from './webhooks.js'

/** What reading a subscription came to, as a value: the caller has an answer to each. */
export type ReadResult =
  | { kind: 'found'; record: SubscriptionRecord }
  /** A good answer that holds no record of that uid. */
  | { kind: 'missing' }
  /** No answer, or none to go by: it says nothing about the business. */
  | { kind: 'outage'; code: ErrorCode }
  | { kind: 'throttled'; retryAfterMs?: number }
  /** The platform refuses this read, or shows a record of another business. */
  | { kind: 'refused'; code: 'platform_refused'; status?: number }
  | {
      kind: 'refused'
      code: 'platform_record_mismatch'
      /** The business that the record names, when all that were shown name one. */
      recordBusinessUid?: string
    }
  /** It refuses a token for this business. */
  | { kind: 'token_refused'; status?: number }
  /** It refuses the app's own credentials, whatever the business. */
  | { kind: 'credentials_refused' }

export interface PlatformOptions {
  baseUrl: string
  authUrl: string
  clientId: string
  clientSecret: string
  fetch?: typeof globalThis.fetch | undefined
  /** For one call in all; see `createHttp`. */
  timeoutMs?: number | undefined
  /** Reads at once. Default 4; as many token calls beside them. */
  concurrency?: number | undefined
  clock: Clock
}

/** The three calls of the interface document, exactly as written there. Retries nothing but a 401, and that once. */
export function createPlatformClient(options: PlatformOptions) {
  const { baseUrl, authUrl, clientId, clientSecret, concurrency = 4, clock } = options
  const { send, close } = createHttp(options)
  const limitReads = createLimit(concurrency)
  const limitTokens = createLimit(concurrency)
  const tokens = createTokens({
    fetchToken: (businessUid) => limitTokens(() => fetchToken(businessUid)),
    clock,
  })

  /** POST {auth_url}/oauth/token, all parameters in the query string. Rejects with a `ReadFailure`. */
  async function fetchToken(businessUid: string): Promise<FetchedToken> {
    const url = addressOf(authUrl, '/oauth/token', {
      client_id: clientId,
      client_secret: clientSecret,
      grant_type: 'assertion',
      type: 'token',
      business_uid: businessUid,
    })
    const reply = await send({ method: 'POST', url, isSecretInUrl: true })
    const failed = failureOf(reply)
    const isRefusedWith200 = reply.status < 400 && isObject(reply.json) && saysError(reply)
    if (failed?.kind === 'refused' || isRefusedWith200) {
      const isAboutTheApp = /\binvalid_client\b/.test(errorWords(reply))
      if (isAboutTheApp) throw new ReadFailure({ kind: 'credentials_refused' })
      // A 404 page speaks of the address, not of the business: it must not count towards a revocation.
      const isAboutTheAddress = reply.status === 404 && !isObject(reply.json)
      throw new ReadFailure(
        isAboutTheAddress
          ? { kind: 'refused', code: 'platform_refused', status: reply.status }
          : { kind: 'token_refused', status: reply.status },
      )
    }
    if (failed) throw new ReadFailure(failed)
    const { access_token: accessToken, expires_in: expiresIn } = reply.json as Record<string, unknown>
    if (!isHeaderSafe(accessToken)) throw new ReadFailure({ kind: 'outage', code: 'platform_reply_invalid' })
    return { accessToken, expiresIn }
  }

  /** GET {base_url}/business/subscriptionsmng/v1/subscriptions?filter[uid]=… */
  function read(subscriptionUid: string, token: string, signal: AbortSignal | undefined): Promise<HttpReply> {
    const url = addressOf(baseUrl, '/business/subscriptionsmng/v1/subscriptions', {
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
      tokens.drop(businessUid, token)
      token = await orAborted(tokens.get(businessUid), signal)
      reply = await read(subscriptionUid, token, signal)
    }
    // The next try shall ask whether the business still gets a token at all.
    if (reply.status === 401 || reply.status === 403) tokens.drop(businessUid, token)
    return failureOf(reply) ?? recordIn(reply, request)
  }

  function failureOf(reply: HttpReply): Exclude<ReadResult, { kind: 'found' | 'missing' }> | undefined {
    const { status } = reply
    if (status === 429) {
      const waitMs = retryAfterMs(reply.retryAfter, clock.now())
      return { kind: 'throttled', ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) }
    }
    if (status >= 500 || status === 408) return { kind: 'outage', code: 'platform_failing' }
    if (status >= 400) return { kind: 'refused', code: 'platform_refused', status }
    if (!isObject(reply.json)) return { kind: 'outage', code: 'platform_reply_invalid' }
    // An error sent with 200 does not say whose fault it is; as an outage it is never given up.
    return saysError(reply) ? { kind: 'outage', code: 'platform_failing' } : undefined
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

    /** A token of the app for a business. Rejects with a `MarketplaceError` that says who refused. */
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

    registerWebhook: createRegisterWebhook({
      send,
      url: () => addressOf(baseUrl, '/platform/v1/webhook/subscribe'),
      secrets: [clientSecret],
    }),

    close,
  }
}

export interface ReadRequest {
  subscriptionUid: string
  businessUid: string
  signal?: AbortSignal | undefined
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

/** Carries a result out of the token cache, where many may wait for it. */
class ReadFailure extends Error {
  readonly result: ReadResult

  constructor(result: ReadResult) {
    super(result.kind)
    this.result = result
  }
}

/** The record asked for: matched by uid, never by position; of several, the one updated last. */
function recordIn({ json }: HttpReply, { subscriptionUid, businessUid }: ReadRequest): ReadResult {
  const { data } = json as Record<string, unknown>
  const list = isObject(data) ? data.subscriptions : undefined
  if (!Array.isArray(list)) return { kind: 'outage', code: 'platform_reply_invalid' }
  const named = list.filter((each) => isObject(each) && identifierOf(each.uid) === subscriptionUid)
  if (named.length === 0) return { kind: 'missing' }
  const records = named.map(parseRecord).filter((record) => record !== undefined)
  if (records.length === 0) return { kind: 'outage', code: 'platform_reply_invalid' }
  const own = records.filter((record) => record.business_uid === businessUid)
  if (own.length === 0) {
    const [first, ...others] = new Set(records.map((record) => record.business_uid))
    const owner = first !== undefined && others.length === 0 ? { recordBusinessUid: first } : {}
    return { kind: 'refused', code: 'platform_record_mismatch', ...owner }
  }
  const newest = own.reduce((last, record) =>
    (updatedAtMs(record) || 0) > (updatedAtMs(last) || 0) ? record : last,
  )
  if (isDeeperThan(newest, MAX_RECORD_DEPTH)) return { kind: 'outage', code: 'platform_reply_invalid' }
  return { kind: 'found', record: newest }
}

/** JSON.parse takes 500,000 levels, JSON.stringify fails from about 5,000: a deeper record could not be kept. */
const MAX_RECORD_DEPTH = 500

function isDeeperThan(value: unknown, levels: number): boolean {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []))
  }
  return false
}

function addressOf(base: string, path: string, query: Record<string, string> = {}): URL {
  // The error of `new URL` carries its input.
  if (!URL.canParse(base)) {
    throw new MarketplaceError('config_invalid', 'Cannot call the platform: its address is no absolute URL')
  }
  const url = new URL(base)
  url.pathname = url.pathname.replace(/\/+$/, '') + path
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url
}
