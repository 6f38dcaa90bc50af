/** Limit of the identifiers in one text, beside the whole text. */
const MAX_TERMS = 8
const MAX_CHARACTERS = 255

/** Names of identifiers in deliveries and records, the most likely first. */
const KEYS = [
  'business_uid',
  'businessUid',
  'business_id',
  'subscription_uid',
  'subscriptionUid',
  'purchasable_subscription_uid',
  'uid',
  'id',
]

/**
 * The identifiers in a pasted text, the most likely first. The text may be an identifier with spaces, quotes or a label
 * around it, a URL, or JSON. The characters inside an identifier are not changed.
 */
export function searchTerms(pasted: string): string[] {
  const text = bare(pasted)
  if (text === '') return []
  const terms = inJson(text) ?? inUrl(text) ?? inWords(text)
  const found = [...new Set(terms.map(bare))].filter(isPossible).slice(0, MAX_TERMS)
  // The characters that `bare` removes may belong to the identifier.
  return [...new Set([...found, pasted.trim()])].filter(isPossible)
}

/** Whether a text can be an identifier. Any other one would be refused with `argument_invalid`. */
export function isPossible(term: string): boolean {
  return term !== '' && term.length <= MAX_CHARACTERS && term.isWellFormed() && !/\p{Cc}/u.test(term)
}

/** Removes characters that are often copied along: spaces, quotes, brackets, invisible characters, commas at the end. */
function bare(text: string): string {
  return (
    text
      .replace(/[\u200b-\u200f\u2060\ufeff\p{Cc}]/gu, ' ')
      .replace(/^[\s"'`´“”„‘’«»<(]+/u, '')
      // The lookbehind lets each run of these characters be read once, and not from each of them.
      .replace(/(?<![\s"'`´“”„‘’«»>),;.])[\s"'`´“”„‘’«»>),;.]+$/u, '')
  )
}

function inJson(text: string): string[] | undefined {
  const begin = text.search(/[[{]/)
  if (begin < 0 || begin > 200) return undefined
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  const value = parsed(text.slice(begin, end + 1))
  if (value === undefined) return byLabel(text)
  const found: { rank: number; term: string }[] = []
  collect(value, 0, found)
  return found.sort((a, b) => a.rank - b.rank).map(({ term }) => term)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function collect(value: unknown, depth: number, found: { rank: number; term: string }[]) {
  if (typeof value !== 'object' || value === null || depth > 8) return
  for (const [key, each] of Object.entries(value)) {
    const rank = KEYS.indexOf(key)
    if (rank >= 0 && (typeof each === 'string' || typeof each === 'number'))
      found.push({ rank, term: String(each) })
    else collect(each, depth + 1, found)
  }
}

function inUrl(text: string): string[] | undefined {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const { searchParams, pathname, hash } = new URL(text)
  const ranked = KEYS.flatMap((key) => searchParams.getAll(key))
  const segments = `${pathname}/${hash.replace(/^#/, '')}`.split(/[/?&=]/).filter((part) => part !== '')
  return [...ranked, ...segments.map(decoded).reverse(), ...searchParams.values()]
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** `business_uid: abc`, `"subscription_uid"="abc"`, in the order of the keys. */
function byLabel(text: string): string[] | undefined {
  const found = KEYS.flatMap((key) => {
    const value = new RegExp(`\\b${key}\\b["']?\\s*[:=]\\s*["']?([^\\s"',;}\\]]+)`, 'i').exec(text)?.[1]
    return value === undefined ? [] : [value]
  })
  return found.length > 0 ? found : undefined
}

/** The whole text, because an identifier may contain spaces. An identifier after a label comes before it. */
function inWords(text: string): string[] {
  const labelled = byLabel(text) ?? []
  const behindLabel = /^[a-z][a-z _-]{0,30}[:=#]\s*(\S{8,})$/i.exec(text)?.[1]
  const words = text.split(/\s+/).filter((word) => /[\d-]/.test(word))
  return [...labelled, ...(behindLabel === undefined ? [] : [behindLabel]), text, ...words]
}
