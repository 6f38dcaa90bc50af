import { LRUCache } from 'lru-cache'
import { type Clock, createAgingTime, HOUR, MINUTE, SECOND } from '../base/clock.js'
import { type Http, hasErrorCode, isObject, type PlatformNotes, platformUrl } from './http.js'
import { failureIn, ReadFailure, type ReadResult } from './read-result.js'
import { isHeaderSafe } from './token.js'

export interface FetchedToken {
  accessToken: string
  /** The lifetime as the platform sent it: a number, a numeric text, any other value, or undefined. */
  expiresIn: unknown
}

interface Tokens {
  /** A token for the business: cached, or fetched once for all concurrent callers. Rejects as `fetchToken` does. */
  get(businessUid: string): Promise<string>
  /** Whether a token for the business is being fetched. */
  isFetching(businessUid: string): boolean
  /** Deletes `token` if it is still the cached one. Only a 401 proves that a token has expired. */
  drop(businessUid: string, token: string): void
}

/** App tokens by business, in memory only and bounded. */
export function createTokens(options: {
  fetchToken(businessUid: string): Promise<FetchedToken>
  maxEntries?: number
  clock: Clock
}): Tokens {
  const { fetchToken, maxEntries = 1_000, clock } = options
  const age = createAgingTime(clock)
  const tokens = new LRUCache<string, { token: string; until: number }>({ max: maxEntries })
  const fetching = new Map<string, Promise<string>>()

  async function fetchAndCache(businessUid: string): Promise<string> {
    try {
      const { accessToken, expiresIn } = await fetchToken(businessUid)
      tokens.set(businessUid, { token: accessToken, until: age() + lifetimeMs(expiresIn) })
      return accessToken
    } finally {
      fetching.delete(businessUid)
    }
  }

  return {
    async get(businessUid) {
      const cached = tokens.get(businessUid)
      if (cached && cached.until > age()) return cached.token
      let current = fetching.get(businessUid)
      if (!current) {
        current = fetchAndCache(businessUid)
        fetching.set(businessUid, current)
      }
      return current
    },
    isFetching: (businessUid) => fetching.has(businessUid),
    drop(businessUid, token) {
      if (tokens.peek(businessUid)?.token === token) tokens.delete(businessUid)
    },
  }
}

/**
 * `expires_in` minus a minute, at most an hour. Not stated by the document; without `expires_in` we chose five
 * minutes.
 */
function lifetimeMs(expiresIn: unknown): number {
  const seconds = typeof expiresIn === 'string' && expiresIn.trim() !== '' ? Number(expiresIn) : expiresIn
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds <= 0) return 5 * MINUTE
  return Math.max(0, Math.min(seconds * SECOND - MINUTE, HOUR))
}

/**
 * Returns `fetchToken(businessUid)`: POST {auth_url}/oauth/token, all parameters in the query string. It rejects with a
 * `ReadFailure`, or as `send` does.
 */
export function createFetchToken(options: {
  send: Http['send']
  authUrl: string
  clientId: string
  clientSecret: string
  clock: Clock
  notes?: PlatformNotes | undefined
}) {
  const { send, authUrl, clientId, clientSecret, clock, notes } = options

  return async function fetchToken(businessUid: string): Promise<FetchedToken> {
    const url = platformUrl(authUrl, '/oauth/token', {
      client_id: clientId,
      client_secret: clientSecret,
      grant_type: 'assertion',
      type: 'token',
      business_uid: businessUid,
    })
    const reply = await send({ method: 'POST', url, isSecretInUrl: true })
    const { access_token: accessToken, expires_in: expiresIn } = isObject(reply.json) ? reply.json : {}
    const failure = failureIn(reply, clock.now())
    if (failure || !isHeaderSafe(accessToken)) {
      notes?.noteRefusal('token', reply, [businessUid])
      if (failure?.kind === 'refused') throw new ReadFailure(refusalIn(reply))
      throw new ReadFailure(failure ?? { kind: 'outage', code: 'platform_reply_invalid' })
    }
    notes?.noteToken(expiresIn)
    return { accessToken, expiresIn }
  }
}

function refusalIn(reply: Awaited<ReturnType<Http['send']>>): ReadResult {
  const { status, json } = reply
  if (hasErrorCode(reply, 'invalid_client')) return { kind: 'credentials_refused' }
  // A 404 page means a wrong address. It must not count towards the revocation of a business.
  const isWrongAddress = status === 404 && !isObject(json)
  return isWrongAddress
    ? { kind: 'refused', code: 'platform_refused', status }
    : { kind: 'token_refused', status }
}
