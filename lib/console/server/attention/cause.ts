import type { JournalEntry } from '../../../index.js'

/**
 * The error of an entry without what differs between failures of one cause: the identifiers of the entry itself, and also
 * UUIDs, times, hashes, and numbers of five or more digits. Class and message stay, with short numbers such as 503.
 */
export function causeOf(entry: Pick<JournalEntry, (typeof OWN)[number] | 'payload' | 'error'>): string {
  let text = entry.error ?? 'no error was recorded'
  for (const own of identifiersOf(entry)) text = without(text, own)
  return text
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?/g, '#')
    .replace(/\b(?=[a-f]*\d)[0-9a-f]{16,}\b/gi, '#')
    .replace(/(?<![\w.-])\d{5,}(?![\w-])/g, '#')
    .slice(0, 300)
}

const OWN = ['id', 'business_uid', 'subscription_uid'] as const

/** The longest first, because it may contain another. */
function identifiersOf(entry: Pick<JournalEntry, (typeof OWN)[number] | 'payload'>): string[] {
  const found = new Set(OWN.flatMap((field) => entry[field] ?? []))
  let left = MAX_FIELDS
  function collect(value: unknown, depth: number) {
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
    for (const [name, each] of Object.entries(value)) {
      if (left-- <= 0) return
      if (typeof each === 'object') collect(each, depth + 1)
      else if (IS_IDENTIFIER.test(name) && (typeof each === 'string' || typeof each === 'number'))
        found.add(String(each))
    }
  }
  collect(entry.payload, 0)
  return [...found].filter(({ length }) => length >= 2).sort((a, b) => b.length - a.length)
}

/** `uid`, `business_id`, `buyerUid`, `requestId`. */
const IS_IDENTIFIER = /(?:^|_)u?id$|[a-z](?:Uid|Id)$/
const MAX_FIELDS = 200
const MAX_DEPTH = 6

/** The text with `#` in place of the identifier, where it is not a part of another word or number. */
function without(text: string, identifier: string): string {
  let result = ''
  let from = 0
  for (let at = text.indexOf(identifier); at !== -1; at = text.indexOf(identifier, from)) {
    const end = at + identifier.length
    const isWhole = !isInWord(text[at - 1]) && !isInWord(text[end])
    result += text.slice(from, at) + (isWhole ? '#' : identifier)
    from = end
  }
  return result + text.slice(from)
}

function isInWord(character: string | undefined): boolean {
  return character !== undefined && /[\p{L}\p{N}_]/u.test(character)
}
