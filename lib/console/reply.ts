import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { MarketplaceError } from '../index.js'
import { SCRIPT, STYLE } from './page-bundle.js'
import { Refusal } from './refusal.js'

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

export function sendText(res: ServerResponse, status: number, title: string, text: string): void {
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${text}</p></html>\n`
  send(res, status, 'text/html; charset=utf-8', body, NOTHING_RUNS)
}

export function sendJson(res: ServerResponse, status: number, text: string): void {
  send(res, status, status < 400 ? 'application/json' : 'application/problem+json', text, NOTHING_RUNS)
}

function send(res: ServerResponse, status: number, type: string, body: string, policy: string): void {
  if (res.headersSent || res.destroyed) return
  for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value)
  res.setHeader('content-security-policy', policy)
  res.setHeader('content-type', type)
  res.setHeader('content-length', Buffer.byteLength(body))
  res.statusCode = status
  res.end(res.req?.method === 'HEAD' ? undefined : body)
}

/** The error of a call for the page. The message of an unexpected error is not shown. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (!(error instanceof MarketplaceError))
    return new Refusal(500, 'internal', 'The call failed with an unexpected error. Try again.')
  const status = error.code === 'argument_invalid' ? 400 : error.status
  return new Refusal(status, error.code, error.message)
}
