import type { Clock } from '../clock.js'
import { errorText, isObject } from './error-replies.js'
import type { Http } from './http.js'
import { platformUrl } from './platform-url.js'
import { failureIn, ReadFailure, type ReadResult } from './read-result.js'
import { isHeaderSafe } from './token.js'
import type { FetchedToken } from './tokens.js'

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
}) {
  const { send, authUrl, clientId, clientSecret, clock } = options

  return async function fetchToken(businessUid: string): Promise<FetchedToken> {
    const url = platformUrl(authUrl, '/oauth/token', {
      client_id: clientId,
      client_secret: clientSecret,
      grant_type: 'assertion',
      type: 'token',
      business_uid: businessUid,
    })
    const reply = await send({ method: 'POST', url, isSecretInUrl: true })
    const failure = failureIn(reply, clock.now())
    if (failure?.kind === 'refused') throw new ReadFailure(refusalIn(reply))
    if (failure) throw new ReadFailure(failure)
    const { access_token: accessToken, expires_in: expiresIn } = reply.json as Record<string, unknown>
    if (!isHeaderSafe(accessToken)) throw new ReadFailure({ kind: 'outage', code: 'platform_reply_invalid' })
    return { accessToken, expiresIn }
  }
}

function refusalIn(reply: Awaited<ReturnType<Http['send']>>): ReadResult {
  const { status, json } = reply
  if (/\binvalid_client\b/.test(errorText(reply))) return { kind: 'credentials_refused' }
  // A 404 page means a wrong address. It must not count towards the revocation of a business.
  const isWrongAddress = status === 404 && !isObject(json)
  return isWrongAddress
    ? { kind: 'refused', code: 'platform_refused', status }
    : { kind: 'token_refused', status }
}
