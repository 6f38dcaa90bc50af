import { type ErrorCode, MarketplaceError } from '../errors.js'
import { errorWords, saysError } from './error-replies.js'
import type { Http, HttpReply } from './http.js'

/** Whose token it is: `app` for an app in a business, `business`, or `directory`. */
export type TokenKind = 'app' | 'business' | 'directory'

/** A token and its kind. The value shows in no log: it is neither enumerable nor part of JSON. */
export interface Token<Kind extends TokenKind = TokenKind> {
  readonly kind: Kind
  readonly value: string
}

/**
 * A token the platform issued to the app for a business (the token endpoint's `access_token`). Throws `argument_invalid`
 * for what cannot be a header.
 *
 * @example const token = appToken(process.env.APP_TOKEN)
 */
export const appToken = (value: string) => token('app', value)
/**
 * A token of a business.
 *
 * @example const token = businessToken(process.env.BUSINESS_TOKEN)
 */
export const businessToken = (value: string) => token('business', value)
/**
 * A token of a directory.
 *
 * @example const token = directoryToken(process.env.DIRECTORY_TOKEN)
 */
export const directoryToken = (value: string) => token('directory', value)

function token<const Kind extends TokenKind>(kind: Kind, value: string): Token<Kind> {
  if (!isHeaderSafe(value)) {
    throw new MarketplaceError(
      'argument_invalid',
      `Cannot use the ${kind} token: expected one line of ASCII text`,
    )
  }
  // A getter: `inspect` with `showHidden` prints the value of a property that is merely not enumerable.
  return Object.freeze(
    Object.defineProperty({ kind } as { kind: Kind; value: string }, 'value', { get: () => value }),
  )
}

/** A token becomes a header: one line of visible ASCII of at most 8 KiB, or it is none. */
export function isHeaderSafe(token: unknown): token is string {
  return typeof token === 'string' && token.length <= 8_192 && /^[\x21-\x7e]+$/.test(token)
}

/** What the platform answered. `exists`: this target was registered for this event before, which is as good. */
export interface RegisterResult {
  status: 'created' | 'exists'
}

export interface Registration {
  event: string
  targetUrl: string
  token: Token
  /** The kinds of token that may register the event; undefined when there is no such event. */
  accepts(event: string): readonly TokenKind[] | undefined
}

/**
 * POST {base_url}/platform/v1/webhook/subscribe. Rejects `event_unknown`, `token_kind_not_accepted`,
 * `argument_invalid`, `platform_refused`, `platform_throttled`, `platform_failing`, `platform_reply_invalid` (a page
 * where an answer should be), or as the connection does.
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
      throw new MarketplaceError('event_unknown', `Cannot register for ${event}: there is no such event`)
    if (!kinds.includes(token?.kind)) {
      const kind =
        typeof token?.kind === 'string' ? `a token of kind ${token.kind}` : 'something that is no token'
      throw new MarketplaceError(
        'token_kind_not_accepted',
        `Cannot register for ${event}: it takes a token of kind ${kinds.join(' or ')}, not ${kind}`,
      )
    }
    if (!URL.canParse(targetUrl)) {
      throw new MarketplaceError(
        'argument_invalid',
        `Cannot register for ${event}: targetUrl is no absolute URL`,
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
    const words = errorWords(reply)
    if (status < 300 && !saysError(reply)) return { status: 'created' }
    if (status < 500 && /already\s+(exists|registered|been taken)/i.test(words)) return { status: 'exists' }
    const said = withoutSecrets(words, [token.value, ...partsOf(targetUrl), ...secrets])
    throw new MarketplaceError(
      codeFor(reply),
      `Cannot register for ${event}: the platform answered ${status}${said ? ` (${said})` : ''}`,
    )
  }
}

function codeFor({ status, isPage }: HttpReply): ErrorCode {
  if (status === 429) return 'platform_throttled'
  if (status >= 500) return 'platform_failing'
  return status < 400 && isPage ? 'platform_reply_invalid' : 'platform_refused'
}

/** The target whole, as a URL writes it, and the parts of it that hold the delivery secret. */
function partsOf(targetUrl: string): string[] {
  const { href, pathname, search } = new URL(targetUrl)
  return [targetUrl, href, pathname + search, pathname, ...pathname.split('/').slice(-1), search.slice(1)]
}

/** The platform may quote what it was sent, encoded or not. Cut only afterwards: half a secret would not be found. */
function withoutSecrets(words: string, secrets: readonly string[]): string {
  const clean = secrets
    .flatMap((secret) => [secret, new URLSearchParams({ '': secret }).toString().slice(1)])
    .filter((secret) => secret.length > 1)
    .sort((a, b) => b.length - a.length)
    .reduce((text, secret) => text.replaceAll(secret, '…'), words)
  return clean.replace(/[\p{Cc}]+/gu, ' ').slice(0, 200)
}
