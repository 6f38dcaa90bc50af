/** A change of a text: what stands from `start` to `end` becomes `replacement`. */
export interface Edit {
  start: number
  end: number
  replacement: string
}

/** The small changes of the SQL in the sql`…` templates of a source. */
export function sqlMutants(source: string): Edit[] {
  return templatesIn(source).flatMap(({ start, end }) => {
    const text = source.slice(start, end)
    const found = RULES.flatMap((rule) => rule(masked(text), text))
    return found.map((edit) => ({ ...edit, start: start + edit.start, end: start + edit.end }))
  })
}

/** Stands for each character of a value and of a constant text: no rule applies there. */
const VALUE = '§'
const OPPOSITES: Record<string, string> = {
  and: 'or',
  or: 'and',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '=': '<>',
  '<>': '=',
  '+': '-',
  '-': '+',
  'is null': 'is not null',
  'is not null': 'is null',
  min: 'max',
  max: 'min',
  least: 'greatest',
  greatest: 'least',
}

/** The changes of one kind, from a template whose values are masked and from the template itself. */
type Rule = (sql: string, text: string) => Edit[]

const RULES: Rule[] = [
  opposite(/(?<!\bbetween\s+\S+\s+)\band\b|(?<!\b(?:create|insert)\s+)\bor\b/g),
  opposite(/(?<![<>=!@|-])(?:<=|>=|<>|<|>)(?![<>=@])/g),
  (sql, text) => opposite(/(?<![<>=!])=(?![<>=])/g)(sql, text).filter(({ start }) => isCompared(sql, start)),
  opposite(/(?<=\s)[+-](?=\s)/g),
  opposite(/\bis (?:not )?null\b/g),
  opposite(/\b(?:min|max|least|greatest)(?=\()/g),
  // `not null` is a constraint of a column, and `is not null` has its own rule.
  without(/(?<!\bif )\bnot (?!null)/g),
  without(/\s*\blimit\s+[\w.§]+/g),
  without(/\s+skip locked\b/g),
  swappedArguments,
  otherOrders,
  withoutConditions,
]

function opposite(pattern: RegExp): Rule {
  return (sql) => edits(sql, pattern, (found) => OPPOSITES[found] as string)
}

function without(pattern: RegExp): Rule {
  return (sql) => edits(sql, pattern, () => '')
}

function edits(sql: string, pattern: RegExp, replacementOf: (found: string) => string): Edit[] {
  return [...sql.matchAll(pattern)].map(({ 0: found, index: start }) => ({
    start,
    end: start + found.length,
    replacement: replacementOf(found),
  }))
}

/** `coalesce(a, b)` → `coalesce(b, a)` */
function swappedArguments(sql: string, text: string): Edit[] {
  return [...sql.matchAll(/\bcoalesce\(/g)].flatMap(({ 0: found, index }) => {
    const parts = partsOf(sql, index + found.length, /,\s*/y)
    const [first, last] = [parts[0], parts.at(-1)]
    if (!first || !last || first === last) return []
    const replacement = parts.map(({ start, end }) => text.slice(start, end)).reverse()
    return [{ start: first.start, end: last.end, replacement: replacement.join(', ') }]
  })
}

/** `order by a, b` → `order by a desc, b`, `order by a, b desc`, `order by b`, `order by a` */
function otherOrders(sql: string): Edit[] {
  return [...sql.matchAll(/\s*\border by\s+/g)].flatMap(({ 0: found, index }) => {
    const end = /(?<![,\s])\s+(?:limit\b|for\b|union\b|returning\b|§)/y
    const parts = partsOf(sql, index + found.length, /,\s*/y, end)
    const [only, second] = parts
    const flipped = parts.map((part) => {
      const direction = / (?:asc|desc)$/.exec(sql.slice(part.start, part.end))?.[0] ?? ''
      const start = part.end - direction.length
      return { start, end: part.end, replacement: direction === ' desc' ? '' : ' desc' }
    })
    if (only && !second) return [...flipped, { start: index, end: only.end, replacement: '' }]
    return [...flipped, ...withoutEach(parts)]
  })
}

/** `where a and b` → `where b`, `where a`; `where a` → nothing */
function withoutConditions(sql: string): Edit[] {
  return [...sql.matchAll(/\s*\bwhere\s+/g)].flatMap(({ 0: found, index }) => {
    const end =
      /(?<!\s)\s+(?:order by|group by|limit|for update|union|returning|on conflict)\b|(?<![\s,(]|\band|\bor)\s+§+\s*$/y
    const parts = partsOf(sql, index + found.length, /(?<!\bbetween\s+\S+)\s+and\s+/y, end)
    const [only, second] = parts
    return only && !second ? [{ start: index, end: only.end, replacement: '' }] : withoutEach(parts)
  })
}

interface Part {
  start: number
  end: number
}

/** Each part removed, with the separator before it or, of the first, the one behind it. */
function withoutEach(parts: readonly Part[]): Edit[] {
  return parts.map((part, i) => {
    const [before, next] = [parts[i - 1], parts[i + 1]]
    return before
      ? { start: before.end, end: part.end, replacement: '' }
      : { start: part.start, end: next?.start ?? part.end, replacement: '' }
  })
}

/** The parts from `start` to where the parenthesis or the clause ends; what is inside of others is not split. */
function partsOf(sql: string, start: number, separator: RegExp, stop = /(?!)/y): Part[] {
  const parts: Part[] = []
  let [from, depth] = [start, 0]
  let at = start
  for (; at < sql.length; at++) {
    const matches = (pattern: RegExp) => {
      pattern.lastIndex = at
      return pattern.exec(sql)?.[0]
    }
    if (matches(/\(|\bcase\b/y)) depth++
    if (matches(/\)|\bend\b/y) && --depth < 0) break
    if (depth > 0) continue
    if (matches(stop)) break
    const found = matches(separator)
    if (found === undefined) continue
    parts.push({ start: from, end: at })
    from = at + found.length
    at = from - 1
  }
  const end = from + sql.slice(from, at).trimEnd().length
  return end > from ? [...parts, { start: from, end }] : parts
}

/** Whether a `=` compares: it assigns behind `set`, and in a list that is a part of such a statement. */
function isCompared(sql: string, at: number): boolean {
  // What stands before it on the same level, without what is in parentheses or between `case` and `end`.
  let before = sql.slice(0, at)
  for (let shorter = ''; shorter !== before; ) {
    shorter = before
    before = before.replace(/\([^()]*\)|\bcase\b(?:(?!\b(?:case|end)\b)[\s\S])*\bend\b/g, VALUE)
  }
  const level = before.slice(before.lastIndexOf('(') + 1)
  const last = [...level.matchAll(/,|\b(?:set|where|on|and|or|when|then|else|having|select)\b/g)].at(-1)?.[0]
  const isList = /^[^()]*?,\s*\n?\s*\w+ = /.test(sql.slice(at))
  return last === undefined ? !isList : last !== 'set' && last !== ','
}

/** The template with `§` instead of values and constant texts, and without comments, of the same length. */
function masked(text: string): string {
  let mask = text
  for (const { start, end } of valuesIn(text)) {
    mask = mask.slice(0, start) + VALUE.repeat(end - start) + mask.slice(end)
  }
  return mask
    .replace(/'[^']*'/g, (constant) => VALUE.repeat(constant.length))
    .replace(/--.*/g, (comment) => ' '.repeat(comment.length))
}

/** The texts between the backticks of all templates with the tag `sql`, also of those in others. Comments have none. */
function templatesIn(source: string): Part[] {
  return [...source.matchAll(/\bsql(?:<[^`;]*?>)?`/g)].flatMap(({ 0: found, index }) => {
    const line = source.slice(source.lastIndexOf('\n', index) + 1, index)
    const start = index + found.length
    return /^\s*(?:\/\/|\/?\*)/.test(line) ? [] : [{ start, end: endOfTemplate(source, start) }]
  })
}

/** The values `${…}` of a template. */
function valuesIn(text: string): Part[] {
  const values: Part[] = []
  for (let at = 0; at < text.length; at++) {
    if (!text.startsWith('${', at)) continue
    const end = endOfValue(text, at + 2)
    values.push({ start: at, end })
    at = end - 1
  }
  return values
}

function endOfTemplate(source: string, start: number): number {
  let at = start
  while (at < source.length && source[at] !== '`') {
    if (source.startsWith('${', at)) at = endOfValue(source, at + 2)
    else at += source[at] === '\\' ? 2 : 1
  }
  return at
}

/** Behind the brace that closes a value. */
function endOfValue(source: string, start: number): number {
  let depth = 1
  let at = start
  while (at < source.length && depth > 0) {
    const character = source[at]
    if (character === '`') at = endOfTemplate(source, at + 1)
    else if (character === "'") at = source.indexOf("'", at + 1)
    else if (character === '{') depth++
    else if (character === '}') depth--
    at++
  }
  return at
}
