import { classOf, errorsIn, fieldOf, MarketplaceError, ownCode, thrownText } from '../base/errors.js'
import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../base/record.js'
import type { LogLine } from './logger.js'

/** What a log may say of a thrown value. */
export type Said = (thrown: unknown, received: Received, text?: string) => LogLine

/** All values that code of the app was given, of texts also JSON; undefined if they are not known. */
export type Received = readonly unknown[] | undefined

/**
 * Returns `said(thrown, received, text)`, the line for an error of the app's own code, such as a handler. `received` is what
 * that code had been given, all of it. `text` is the message.
 *
 * The message often quotes what the code was given, as those of `JSON.parse` and zod do. So it is said only if it shares no
 * value with that, and then as a whole; else only the class is. `words` are names of our own, which stand in every delivery
 * and say nothing about a buyer. See docs/decisions/errors-in-logs.md.
 */
export function createSaid(words: readonly string[] = []): Said {
  const names = [...Object.keys(RECORD_FIELDS), ...Object.keys(UPDATED_EVENT_FIELDS), ...NAMES, ...words]
  // A name counts as a whole and by its parts: `purchasable_subscription` and `subscription`.
  const known = new Set(names.flatMap((name) => [bare(name), ...name.split(/[_/]/).map(bare)]))

  return function said(thrown, given, whole = thrownText(thrown, 1_000)) {
    const text = whole.slice(0, MAX_TEXT)
    const code = ownCode(thrown)
    // Messages of this package quote nothing, except that some of the calls to the platform quote its reply.
    if (code?.startsWith('platform_')) return { message: `${MarketplaceError.name}: ${code}` }
    if (code && given === undefined) return { message: text }
    const values = valuesIn(given ?? [], known)
    const isKnown = given !== undefined && values.isWhole
    const name = named(thrown)
    const errors = errorsIn(thrown).map((each) => ({
      ...each,
      name: named(each.error),
      frames: each.frames.flatMap(frameIn),
    }))
    const parts = errors.flatMap((each) => [each.text, each.name, ...each.frames.map(({ called }) => called)])
    const repeats = repeated(new Set([text, name, ...parts]), values, known)
    /** A text may quote what was given, so it is said only if that is known, or if the text is one of ours. */
    const isSaid = (part: string, own: string | undefined) =>
      (isKnown || own !== undefined) && !repeats.has(part)
    const nameOf = (part: string) => (repeats.has(part) ? 'an error' : part)
    const why = `, whose message ${repeats.has(text) ? 'repeats' : 'may repeat'} what was received`

    function inner(error: unknown, innerText: string, innerName: string): string {
      const own = ownCode(error)
      if (own?.startsWith('platform_')) return `${MarketplaceError.name}: ${own}`
      return isSaid(innerText, own) ? innerText : nameOf(innerName)
    }
    const stack = errors.flatMap((each, i) => [
      // The text of the first one is the message.
      i === 0 ? nameOf(name) : each.relation + inner(each.error, each.text, each.name),
      // The name of a function may have been made from a value. The place after it is one of the code.
      ...each.frames.map(({ called, place }) => (repeats.has(called) ? `at ${place}` : called + place)),
    ])
    return {
      message: isSaid(text, code) ? text : nameOf(name) + why,
      stack: stack.length < 2 ? undefined : stack.join(' '),
    }
  }
}

/** The class of an error, and the code of the system if it has one. */
function named(thrown: unknown): string {
  const code = fieldOf(thrown, 'code')
  const ofSystem = typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,40}$/.test(code) ? ` ${code}` : ''
  return classOf(thrown) + ofSystem
}

/** A frame as `at name (` and the place in the code; nothing if it has no place. */
function frameIn(line: string): { called: string; place: string }[] {
  const place = placeIn(line)
  return place === undefined ? [] : [{ called: line.slice(0, -place.length).trimStart(), place }]
}

/** Further names of our own in deliveries and in the changes of the journal, and those of the machine itself. */
const NAMES = (
  'entity_name event_type data business_id subscription_uid app_id app_code_name event_time ' +
  'record observedAt event request import reconcile missing revoked ended moved other_item json ' +
  'localhost 127.0.0.1'
).split(' ')
/** The place in a frame: in brackets after the name of the function, or the whole of a frame without a name. */
function placeIn(line: string): string | undefined {
  if (!line.endsWith(')')) {
    const last = line.slice(line.lastIndexOf(' ') + 1)
    return POSITION.test(last) ? last : undefined
  }
  const place = line.slice(line.lastIndexOf('('))
  const named = place.slice(1, -1)
  const isPlace = POSITION.test(named) || named === 'native' || named === '<anonymous>'
  return isPlace && !named.includes(')') ? place : undefined
}

/** Line and column, after a file. */
const POSITION = /:\d{1,9}:\d{1,9}$/

/** Parts of this many characters that two texts share are no chance. */
const GRAM = 6
/** Shorter words of a long value occur in most sentences. */
const WORD = 4
/** The longest value that is compared as a whole. With 32, the longest message takes 10 ms; without a limit it takes seconds. */
const MAX_WHOLE = 32
/** What is longer is not known as a whole: to compare it would take more than 30 ms. */
const MAX_RECEIVED = 256 * 1024
/** The longest message that is compared and said. */
const MAX_TEXT = 4_000

interface Values {
  /** Values and names of fields of up to `MAX_WHOLE` characters, and the words of long values: what is compared as a whole. */
  whole: Set<string>
  /** Long values, one after the other. */
  long: string
  /** Whether these are all values. */
  isWhole: boolean
}

/** The values and the names of fields in what was given, and in JSON texts of it. */
function valuesIn(received: readonly unknown[], known: ReadonlySet<string>): Values {
  const whole = new Set<string>()
  const long = new Set<string>()
  function add(text: string, isName: boolean) {
    const words = wordsOf(text)
    const value = words.join('')
    if (known.has(value) || words.every((word) => known.has(word))) return
    // A digit is often a count, and a short name of a field a word: a sentence may contain them by chance.
    if (SINGLE_DIGIT.test(value) || (isName && words.length === 1 && value.length < GRAM)) return
    const isWhole = value.length <= MAX_WHOLE
    if (isWhole) whole.add(value)
    if (value.length < GRAM || (isWhole && isName)) return
    long.add(value)
    for (const word of words) if (word.length >= WORD && !known.has(word)) whole.add(word)
  }
  const rest: unknown[] = received.map(parsed)
  const [seen, names] = [new Set<unknown>(), new Set<string>()]
  let left = MAX_RECEIVED
  try {
    for (; rest.length > 0 && left >= 0; left--) {
      const next = rest.pop()
      if (seen.has(next) || next === undefined || next === null || typeof next === 'boolean') continue
      seen.add(next)
      if (typeof next === 'object') {
        const held = heldIn(next, left)
        if (!held) {
          left = -1
          break
        }
        for (const value of held.values) rest.push(value)
        for (const name of held.names) {
          if (names.has(name)) continue
          left -= name.length
          if (left >= 0) add(name, true)
          names.add(name)
        }
      } else {
        left -= String(next).length
        if (typeof next === 'function') left = -1
        else if (left >= 0) add(String(next), false)
      }
    }
  } catch {
    left = -1
  }
  return { whole, long: [...long].join('\n'), isWhole: left >= 0 }
}

/**
 * Undefined for an object that may hold what only its own code can see: one of a class, such as `URL` or `Buffer`. Also for one
 * with more than `most` elements.
 */
function heldIn(value: object, most: number): { names: string[]; values: unknown[] } | undefined {
  const kind = WALKED.get(Object.getPrototypeOf(value))
  if (!kind || kind.count(value as never) > most) return undefined
  const fields = Reflect.ownKeys(value).filter((key) => !(Array.isArray(value) && key === 'length'))
  const held = fields.map((key) => (value as Record<string | symbol, unknown>)[key])
  const names = Array.isArray(value) ? [] : fields.map(String)
  return { names, values: [...held, ...kind.beside(value as never)] }
}

/** The number of elements of an object, and what it holds beside its fields. */
interface Walked {
  count(value: never): number
  beside(value: never): unknown[]
}

const FIELDS_ALONE: Walked = { count: () => 0, beside: () => [] }
const WALKED: ReadonlyMap<unknown, Walked> = new Map<unknown, Walked>([
  [Object.prototype, FIELDS_ALONE],
  [null, FIELDS_ALONE],
  [Array.prototype, { count: (list: unknown[]) => list.length, beside: () => [] }],
  [Date.prototype, { count: () => 0, beside: formsOf }],
  [Set.prototype, { count: (set: Set<unknown>) => set.size, beside: (set: Set<unknown>) => [...set] }],
  [
    Map.prototype,
    {
      count: (map: Map<unknown, unknown>) => map.size,
      beside: (map: Map<unknown, unknown>) => [...map].flat(),
    },
  ],
])

/** The texts of a date, as its own functions make them. */
function formsOf(date: Date): unknown[] {
  if (Number.isNaN(date.getTime())) return []
  return [date.toISOString(), date.toUTCString(), date.toDateString(), date.toLocaleString(), date.getTime()]
}

/** Longer texts stay as they are. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || value.length > MAX_RECEIVED) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/**
 * The parts that repeat something. All are compared at once, because what was received may be long. Each gram is compared
 * once: texts of one character have thousands of equal ones.
 */
function repeated(parts: ReadonlySet<string>, { whole, long }: Values, known: ReadonlySet<string>) {
  const found = new Set<string>()
  const byGram = new Map<string, Set<string>>()
  for (const part of parts) {
    // JSON writes a line break as `\n`. A path may contain the same two characters, so both readings count.
    for (const text of new Set([part, part.replace(ESCAPES, ' ')])) {
      if (hasWhole(text, whole)) found.add(part)
      // Words of our own end a run of characters: they stand in each delivery, and in many messages.
      const run = wordsOf(text)
        .map((word) => (known.has(word) ? '\n' : word))
        .join('')
      for (let at = 0; at + GRAM <= run.length; at++) {
        const gram = run.slice(at, at + GRAM)
        if (!gram.includes('\n')) byGram.set(gram, (byGram.get(gram) ?? new Set()).add(part))
      }
    }
  }
  for (let at = 0; at + GRAM <= long.length; at++) {
    const gram = long.slice(at, at + GRAM)
    for (const part of byGram.get(gram) ?? []) found.add(part)
    byGram.delete(gram)
  }
  return found
}

/** Whether words of the text that follow one another are one of the values, whatever separates them here or there. */
function hasWhole(text: string, values: ReadonlySet<string>): boolean {
  const words = folded(text).split(SEPARATORS).filter(Boolean)
  return words.some((_, first) => {
    let joined = ''
    for (let next = first; next < words.length && joined.length < MAX_WHOLE; next++) {
      joined += words[next]
      if (values.has(joined)) return true
    }
    return false
  })
}

/** Words as sentences and addresses have them: `e-mail` is one. */
function wordsOf(text: string): string[] {
  return folded(text)
    .split(/[\s"'`()[\]{}<>,;:=|/\\?&]+/)
    .map((word) => word.replace(SEPARATORS, ''))
    .filter(Boolean)
}

/** Letters and digits only: quotes and line breaks of a message do not count. */
function bare(text: string): string {
  return folded(text).replace(SEPARATORS, '')
}

/** All forms of a letter are one: both cases, `ß` and `SS`, and one with a mark, which is one character or two. */
function folded(text: string): string {
  return text.toLowerCase().toUpperCase().normalize()
}

/** What is neither a letter nor a digit nor a mark of one. `printable` has replaced marks that are not shown. */
const SEPARATORS = /(?:[^\p{L}\p{N}\p{M}]|\p{Default_Ignorable_Code_Point})+/gu
const ESCAPES = /\\(?:[bfnrtv]|u[\da-f]{4}|x[\da-f]{2})/gi
const SINGLE_DIGIT = /^\p{N}$/u
