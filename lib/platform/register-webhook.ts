import type { TokenKind } from '../base/envelope.js'
import { type ErrorCode, MarketplaceError } from '../base/errors.js'
import { isThenable } from '../base/waiting.js'
import { errorText, type Http, type HttpReply, isError } from './http.js'
import { isHeaderSafe, type Token } from './token.js'

/** The result of a registration. `exists`: the target was already registered for this event, which is a success too. */
export interface RegisterResult {
  /** `created`, or `exists` when the target was already registered for this event. */
  status: 'created' | 'exists'
}

export interface Registration {
  event: string
  targetUrl: string
  token: Token
  /** The kinds of token that may register the event; undefined for an unknown event. */
  accepts(event: string): readonly TokenKind[] | undefined
}

/**
 * Returns `webhooks.register(registration)`: POST {base_url}/platform/v1/webhook/subscribe. It rejects `event_unknown`,
 * `token_kind_not_accepted`, `argument_invalid`, `platform_refused`, `platform_throttled`, `platform_failing`,
 * `platform_reply_invalid` (a page instead of JSON), or as `send` does.
 */
export function createRegisterWebhook(options: {
  send: Http['send']
  url(): URL
  secrets: readonly string[]
}) {
  const { send, url, secrets } = options

  return async function registerWebhook(registration: Registration): Promise<RegisterResult> {
    const { event, targetUrl, token, accepts } = registration
    const kinds = accepts(event)
    if (!kinds)
      throw new MarketplaceError('event_unknown', `Cannot register for ${event}: it is not a known event`)
    if (!kinds.includes(token?.kind)) {
      const wrapped = kinds.map((each) => `${each}Token(value)`).join(' or ')
      const kind =
        typeof token?.kind === 'string'
          ? `a token of kind ${token.kind}`
          : isThenable(token)
            ? 'a promise of one: await it'
            : `a value that is not a token: pass ${wrapped}`
      throw new MarketplaceError(
        'token_kind_not_accepted',
        `Cannot register for ${event}: it takes a token of kind ${kinds.join(' or ')}, not ${kind}`,
      )
    }
    if (!URL.canParse(targetUrl)) {
      throw new MarketplaceError(
        'argument_invalid',
        `Cannot register for ${event}: targetUrl is not an absolute URL`,
      )
    }
    if (!isHeaderSafe(token.value)) {
      throw new MarketplaceError(
        'argument_invalid',
        `Cannot register for ${event}: the token has no usable value`,
      )
    }
    const reply = await send({
      method: 'POST',
      url: url(),
      headers: { Authorization: `Bearer ${token.value}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ event, target_url: targetUrl }),
    })
    const { status } = reply
    const text = errorText(reply)
    if (status < 300 && !isError(reply)) return { status: 'created' }
    if (status < 500 && /already\s+(exists|registered|been taken)/i.test(text)) return { status: 'exists' }
    const cause = withoutSecrets(text, [token.value, ...partsOf(targetUrl), ...secrets])
    throw new MarketplaceError(
      codeFor(reply),
      `Cannot register for ${event}: the platform answered ${status}${cause ? ` (${cause})` : ''}`,
    )
  }
}

function codeFor({ status, isPage }: HttpReply): ErrorCode {
  if (status === 429) return 'platform_throttled'
  if (status >= 500) return 'platform_failing'
  return status < 400 && isPage ? 'platform_reply_invalid' : 'platform_refused'
}

/** The target as given, as a URL writes it, and its parts that contain the delivery secret. */
function partsOf(targetUrl: string): string[] {
  const { href, pathname, search } = new URL(targetUrl)
  return [targetUrl, href, pathname + search, pathname, ...pathname.split('/').slice(-1), search.slice(1)]
}

/**
 * The platform may quote the request, encoded or not. The text is cut only afterwards: half a secret would not be
 * found.
 */
function withoutSecrets(reply: string, secrets: readonly string[]): string {
  const clean = secrets
    .flatMap((secret) => [secret, new URLSearchParams({ '': secret }).toString().slice(1)])
    .filter((secret) => secret.length > 1)
    .sort((a, b) => b.length - a.length)
    .reduce((text, secret) => text.replaceAll(secret, '…'), reply)
  return clean.replace(/[\p{Cc}]+/gu, ' ').slice(0, 200)
}
