import type { IncomingMessage } from 'node:http'

/** A request, of Express too. */
type AppRequest = IncomingMessage & { app?: { get?(setting: string): unknown } }

/**
 * Whether a request may come from the page of this console. A page cannot choose these two headers: its browser says where
 * the page is from. `Sec-Fetch-Site` is missing on plain HTTP, so `Origin` is compared too, and it alone decides there. A
 * request without both is not from a page of another origin: with each POST, and each read that shows its reply to another
 * origin, a browser sends `Origin`.
 */
export function isFromOwnPage(req: AppRequest): boolean {
  const { origin, 'sec-fetch-site': site } = req.headers
  if (site !== undefined && site !== 'same-origin') return false
  return origin === undefined || isOriginOf(origin, hostOf(req))
}

/**
 * The host by which browsers know this server. `X-Forwarded-Host` counts where Express trusts the proxy, as for its own
 * `req.hostname`.
 */
function hostOf({ app, socket, headers }: AppRequest): string | undefined {
  const forwarded = headers['x-forwarded-host']
  const isTrusted = app?.get?.('trust proxy fn')
  if (typeof forwarded === 'string' && typeof isTrusted === 'function' && isTrusted(socket.remoteAddress, 0))
    return forwarded.split(',')[0]?.trim()
  const { host = headers[':authority'] } = headers
  return typeof host === 'string' ? host : undefined
}

/** Compares host and port. A server behind a proxy does not know by which scheme browsers know it. */
function isOriginOf(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false
  const from = new URL(origin)
  const own = `${from.protocol}//${host}`
  return URL.canParse(own) && new URL(own).host === from.host
}
