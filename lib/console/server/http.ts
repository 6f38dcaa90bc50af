import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { MarketplaceError } from '../../index.js'
import { SCRIPT, STYLE } from '../page-bundle.js'
import type { Role } from '../protocol/roles.js'

/** The headers of every reply. */
const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'x-robots-tag': 'noindex',
}

/** The page may run one script and one style, identified by their hashes. It may call its own origin and must not be framed. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `script-src '${hashOf(SCRIPT)}'`,
  `style-src '${hashOf(STYLE)}'`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const NOTHING_RUNS = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

/** The whole page in one reply, so that it works under any address. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Console</title>
<style>${STYLE}</style>
</head>
<body>
<div id="console"><noscript><p>This page needs JavaScript.</p></noscript></div>
<script type="module">${SCRIPT}</script>
</body>
</html>
`

export function sendPage(res: ServerResponse): void {
  send(res, 200, 'text/html; charset=utf-8', PAGE, CONTENT_SECURITY_POLICY)
}

/** `link`: an address of the app's own, for *Sign in*. */
export function sendText(
  res: ServerResponse,
  status: number,
  title: string,
  text: string,
  link: string | null = null,
): void {
  const address = link?.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`)
  const signIn = address === undefined ? '' : ` <a href="${address}">Sign in</a>`
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><main><h1>${title}</h1><p>${text}${signIn}</p></main></html>\n`
  send(res, status, 'text/html; charset=utf-8', body, NOTHING_RUNS)
}

export function sendJson(res: ServerResponse, status: number, value: unknown): void {
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  send(res, status, type, JSON.stringify(value), NOTHING_RUNS)
}

function send(res: ServerResponse, status: number, type: string, body: string, policy: string): void {
  if (res.headersSent || res.destroyed) return
  setHeaders(res, type, policy)
  res.setHeader('content-length', Buffer.byteLength(body))
  res.statusCode = status
  res.end(res.req?.method === 'HEAD' ? undefined : body)
}

/** A person who takes nothing for this long gets no more. Other exports wait meanwhile. */
const STALLED_MS = 30_000

/**
 * Sends a file of JSON in pieces, as fast as it is taken. Rejects if there is no first piece. A later failure destroys the
 * connection, because nothing else shows that the rest is missing. If the client leaves, `pieces` ends.
 */
export async function sendFile(
  res: ServerResponse,
  {
    fileName,
    pieces,
    stalledMs = STALLED_MS,
  }: { fileName: string; pieces: AsyncGenerator<string, void>; stalledMs?: number },
): Promise<void> {
  const first = await pieces.next()
  async function* all() {
    if (!first.done) yield first.value
    yield* pieces
  }
  setHeaders(res, 'application/json', NOTHING_RUNS)
  res.setHeader('content-disposition', `attachment; filename="${fileName}"`)
  res.setTimeout(stalledMs, () => res.destroy())
  try {
    await pipeline(all, res)
  } catch {
    res.destroy()
  } finally {
    await pieces.return()
  }
}

function setHeaders(res: ServerResponse, type: string, policy: string): void {
  // A middleware for the whole app may have allowed other origins to read every reply.
  for (const name of res.getHeaderNames()) if (name.startsWith('access-control-')) res.removeHeader(name)
  for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value)
  res.setHeader('content-security-policy', policy)
  res.setHeader('content-type', type)
}

/**
 * The error of a call for the page. The message of an unexpected error is not shown. One of the database or the platform may
 * quote anything, so support gets only its code: see `rowsFor`.
 */
export function refusalOf(error: unknown, role: Role | undefined): Refusal {
  if (error instanceof Refusal) return error
  if (!(error instanceof MarketplaceError))
    return new Refusal(500, 'internal', 'The call failed with an unexpected error. Try again.')
  const { code, message, cause } = error
  const isOfInput = code === 'argument_invalid' && cause === undefined
  const words = `The call failed: ${code.replaceAll('_', ' ')}. An operator sees the text of the error.`
  const status = code === 'argument_invalid' ? 400 : error.status
  return new Refusal(status, code, isOfInput || role === 'operator' ? message : words)
}

/** Why a call is refused. `code` is for the page, `message` for the person. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

const MAX_BYTES = 16_384
const TIMEOUT_MS = 10_000

/** A request of Express. An earlier parser may have read its body. */
export type BodyRequest = IncomingMessage & {
  /** What an earlier parser has read. */
  body?: unknown
}

/** The JSON object in the body of a request, also after a parser of the app has read it. Rejects with a `Refusal`. */
export async function jsonBody(req: BodyRequest): Promise<object> {
  if (!/^application\/json\b/i.test(req.headers['content-type'] ?? ''))
    throw new Refusal(415, 'content_type_unsupported', 'Send application/json.')
  if (Number(req.headers['content-length']) > MAX_BYTES) throw tooLarge()
  const value = req.readableDidRead ? req.body : parsed(await text(req))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new Refusal(400, 'body_not_json', 'Send a JSON object.')
}

function text(req: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(
      () => reject(new Refusal(408, 'body_timeout', 'The body did not arrive in time.')),
      TIMEOUT_MS,
    )
    timer.unref()
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_BYTES) reject(tooLarge())
      else chunks.push(Buffer.from(chunk))
    })
    req.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    req.on('close', () => {
      clearTimeout(timer)
      reject(new Refusal(400, 'body_incomplete', 'The connection closed before the whole body had arrived.'))
    })
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function tooLarge(): Refusal {
  return new Refusal(413, 'body_too_large', `Send at most ${MAX_BYTES} bytes.`)
}
