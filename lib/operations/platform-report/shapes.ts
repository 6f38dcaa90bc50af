import { isFieldName, isWord } from '../../events/fields.js'

/** A type of JSON. */
export type JsonType = 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array'

/** What a field of deliveries or of records looks like, without its values. */
export interface FieldFact {
  /**
   * Where it is: `data.items[].name`. A name that may be an identifier, or is a value elsewhere, is `*`, an element of an
   * array is `[]`, and '' is a whole delivery that is not an object. `…` counts together what came after 200 others.
   */
  path: string
  /** In how many deliveries or records it had each type of JSON; of `*`, the sum over the names that it stands for. */
  types: Partial<Record<JsonType, number>>
  /** Whether the interface document has it; null for events of the app's own, and for what is not recognised. */
  documented: boolean | null
  /** Of `entity_name`, `event_type` and `purchase_state`: their texts of up to 40 letters, at most 20. Empty for all others. */
  words: WordFact[]
}

/** A text of a field that names an event or a state. */
interface WordFact {
  /** The text: up to 40 of `A` to `Z`, `a` to `z` and `_`. */
  word: string
  /** In how many deliveries or records it was. */
  count: number
  /** Whether it is one of the interface document, or of the app's own events. */
  known: boolean
}

/** A value in JSON: where it is, and its type. */
interface Place {
  path: string
  type: JsonType
  value: unknown
}

const MAX_LEVELS = 8
/** The most values of one JSON that are looked at, those of the upper levels first. */
const MAX_VALUES = 1_000
const MAX_FIELDS = 200
const MAX_WORDS = 20

/**
 * The values of a JSON and their places; none for undefined, and not the outermost object. No name is shown that is a value
 * in it, or that `isHidden` refuses; and only documented names if it has more values than are looked at.
 */
export function shapeOf(json: unknown, isHidden: (name: string) => boolean = () => false): Place[] {
  const found: { names: Names; value: unknown }[] = json === undefined ? [] : [{ names: [], value: json }]
  const texts = new Set<string>()
  let isWhole = true
  for (let i = 0; i < found.length; i++) {
    const { names, value } = found[i] as (typeof found)[number]
    if (typeof value !== 'object' || value === null) {
      texts.add(String(value).toLowerCase())
      continue
    }
    for (const [name, each] of Object.entries(value)) {
      if (found.length === MAX_VALUES || names.length === MAX_LEVELS) {
        isWhole = false
        break
      }
      found.push({ names: [...names, Array.isArray(value) ? null : name], value: each })
    }
  }
  const isValue = (name: string) => !isWhole || texts.has(name.toLowerCase()) || isHidden(name)
  return found
    .map(({ names, value }) => ({ path: pathOf(names, isValue), type: typeOf(value), value }))
    .filter(({ path, type }) => path !== '' || type !== 'object')
}

/** Counts the fields of several JSON values. */
export function createFieldCounts(about: {
  isDocumented(path: string): boolean | null
  /** For each path whose words are shown, whether a word is known. */
  words: Readonly<Record<string, (word: string) => boolean>>
}) {
  const fields = new Map<string, ReturnType<typeof newField>>()

  return {
    add(json: unknown) {
      const counted = new Set<string>()
      for (const { path, type, value } of shapeOf(json)) {
        const shown = fields.has(path) || fields.size < MAX_FIELDS ? path : OTHERS
        const field = fields.get(shown) ?? newField()
        fields.set(shown, field)
        if (isFirst(`${shown} ${type}`)) field.types[type] = (field.types[type] ?? 0) + 1
        const isShown = wordsOf(path) !== undefined && typeof value === 'string' && isWord(value)
        if (!isShown || (!field.words.has(value) && field.words.size === MAX_WORDS)) continue
        if (isFirst(`${shown}=${value}`)) field.words.set(value, (field.words.get(value) ?? 0) + 1)
      }

      function isFirst(key: string) {
        return counted.size < counted.add(key).size
      }
    },

    /** `isHidden`: whether a name or a word repeats a secret, or what was an identifier in any of the JSON values. */
    facts(isHidden: (text: string) => boolean): FieldFact[] {
      const facts = new Map<string, FieldFact>()
      for (const [found, { types, words }] of fields) {
        const path = withoutNames(found, isHidden)
        const shown = facts.get(path) ?? {
          ...{ path, types: {}, words: [] },
          documented: path === OTHERS ? null : about.isDocumented(path),
        }
        facts.set(path, shown)
        for (const [type, count] of Object.entries(types))
          shown.types[type as JsonType] = (shown.types[type as JsonType] ?? 0) + count
        for (const [word, count] of words) {
          const known = wordsOf(found)?.(word) === true
          if (known || !isHidden(word)) shown.words.push({ word, count, known })
        }
      }
      return [...facts.values()]
    },
  }

  /** The elements of an array of deliveries have the fields of a delivery. */
  function wordsOf(path: string) {
    const name = path.replace(/^\[\]\./, '')
    return Object.hasOwn(about.words, name) ? about.words[name] : undefined
  }
}

function newField(): Pick<FieldFact, 'types'> & { words: Map<string, number> } {
  return { types: {}, words: new Map() }
}

/** The names of the fields from the outermost object on; null for an element of an array. */
type Names = readonly (string | null)[]
const OTHERS = '…'

function pathOf(names: Names, isValue: (name: string) => boolean): string {
  return names.reduce<string>((path, name) => {
    if (name === null) return `${path}[]`
    const shown = isFieldName(name, isValue) ? name : '*'
    return path === '' ? shown : `${path}.${shown}`
  }, '')
}

/** A path, whose names are letters and digits, with `*` for those that may not be shown. */
function withoutNames(path: string, isHidden: (name: string) => boolean): string {
  return path.replace(/\w+/g, (name) => (isFieldName(name, isHidden) ? name : '*'))
}

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : (typeof value as JsonType)
}
