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
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
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
