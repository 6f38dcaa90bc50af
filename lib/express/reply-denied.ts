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

/** Answers a visitor without access: application/problem+json, or a page if `Accept` prefers HTML. */
export function replyDenied(req: IncomingMessage, res: ServerResponse, denial: Denial, clock: Clock): void {
  const sentence = SENTENCES[denial]
  if (!prefersHtml(req.headers.accept)) {
    replyProblem(req, res, denial, sentence, { clock })
    return
  }
  const { status } = ERROR_CODES[denial]
  reply(req, res, status, page(sentence), errorHeaders(status, 'text/html; charset=utf-8'), clock)
}

/** The sentences contain no character that HTML escapes. */
function page(sentence: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${sentence}</title>
<p>${sentence}</p>
</html>
`
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
