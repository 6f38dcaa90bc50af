import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../base/clock.js'
import { ERROR_CODES } from '../base/errors.js'
import { errorHeaders, reply, replyProblem } from './reply.js'

/** Why a visitor gets no access, as far as the visitor may know. */
type Denial = keyof typeof SENTENCES

/**
 * The sentence for a visitor. It names no business, subscription or internal reason: the visitor may be anybody who works
 * at the business. `onDenied` and the log receive the decision.
 */
const SENTENCES = {
  business_missing: 'Please sign in: this request is not made for a business.',
  not_entitled: 'This app is not available to your business, because there is no active purchase of it.',
  entitlement_unknown: 'Your purchase of this app cannot be checked at the moment. Please try again shortly.',
} as const

/** The sentence of a page that loads itself again. */
const RETRIES =
  'Your purchase of this app cannot be checked at the moment. This page tries again by itself in a few seconds.'

/**
 * Answers a visitor without access: application/problem+json, or a page if `Accept` prefers HTML. Both have `purchaseUrl`.
 * The page of a 503 loads itself again after `Retry-After`, unless that could repeat what the visitor did.
 */
export function replyDenied(
  req: IncomingMessage,
  res: ServerResponse,
  denial: Denial,
  options: { clock: Clock; purchaseUrl?: string | undefined },
): void {
  const { clock, purchaseUrl } = options
  const sentence = SENTENCES[denial]
  if (!prefersHtml(req.headers.accept)) {
    const extension = purchaseUrl === undefined ? {} : { purchase_url: purchaseUrl }
    replyProblem(req, res, denial, sentence, { extension, clock })
    return
  }
  const { status } = ERROR_CODES[denial]
  const headers = errorHeaders(status, 'text/html; charset=utf-8')
  const isRead = req.method === 'GET' || req.method === 'HEAD'
  const retryAfter = isRead ? headers['Retry-After'] : undefined
  if (retryAfter === undefined) reply(req, res, status, page(sentence, purchaseUrl), headers, clock)
  else
    reply(
      req,
      res,
      status,
      page(RETRIES),
      { ...headers, Refresh: `${retryAfter};url=${queryOf(req)}` },
      clock,
    )
}

/**
 * The address of the page itself, relative to it, because a proxy may have changed the path. A `Refresh` without one loads
 * nothing if the address has a fragment.
 */
function queryOf({ url = '' }: IncomingMessage): string {
  return (URL.canParse(url, HERE) && new URL(url, HERE).search) || '?'
}

const HERE = 'http://here.invalid'

/** The sentences contain no character that HTML escapes. */
function page(sentence: string, purchaseUrl?: string): string {
  const link = purchaseUrl === undefined ? '' : `<p><a href="${escaped(purchaseUrl)}">Buy this app</a></p>\n`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${sentence}</title>
<main>
<h1>${sentence}</h1>
${link}</main>
</html>
`
}

/** For an attribute in double quotes. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}

/**
 * Whether a request prefers an HTML page: its `Accept` header gives HTML a higher quality than JSON (RFC 9110, 12.5.1),
 * as browsers do. Programs and requests without the header get JSON.
 */
export function prefersHtml(accept: unknown): boolean {
  if (typeof accept !== 'string') return false
  const ranges = accept.toLowerCase().split(',').map(parseRange)
  const json = Math.max(quality(ranges, 'application/json'), quality(ranges, 'application/problem+json'))
  return quality(ranges, 'text/html') > json
}

interface MediaRange {
  type: string
  quality: number
}

function parseRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim())
  const given = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  const quality = given === undefined ? 1 : Number(given)
  return { type, quality: quality <= 1 ? Math.max(0, quality) : 0 }
}

/** The quality of the most specific range that covers `type`; 0 when none does. */
function quality(ranges: readonly MediaRange[], type: string): number {
  const [group] = type.split('/')
  for (const covering of [type, `${group}/*`, '*/*']) {
    const range = ranges.find((each) => each.type === covering)
    if (range) return range.quality
  }
  return 0
}
