/** A column of a table. The last column takes the rest of the line, and wraps. */
export interface Column<Row> {
  title: string
  cell(row: Row): string
  /** Colours the padded text. */
  paint?(text: string, row: Row): string
}

const GAP = '  '
/** With less space than this, the last column gets its own lines. */
const NARROWEST = 16

/** Rows as lines of at most `width` characters. Identifiers are never cut, so a line may be longer. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width: number): string {
  const fixed = columns.slice(0, -1)
  const last = columns.at(-1) as Column<Row>
  const widths = fixed.map((column) =>
    Math.max(column.title.length, ...rows.map((row) => oneLine(column.cell(row)).length)),
  )
  const used = widths.reduce((sum, each) => sum + each + GAP.length, 0)
  const isBelow = width - used < NARROWEST
  const indent = ' '.repeat(isBelow ? 4 : used)

  function line(
    cellOf: (column: Column<Row>) => string,
    paint: (text: string, column: Column<Row>) => string,
  ) {
    const cells = fixed.map((column, i) => paint(cellOf(column).padEnd(widths[i] as number), column))
    const rest = wrapped(cellOf(last), width - indent.length).map((text) => paint(text, last))
    if (isBelow) return [cells.join(GAP).trimEnd(), ...rest.map((text) => indent + text)]
    return [[...cells, rest[0] ?? ''].join(GAP).trimEnd(), ...rest.slice(1).map((text) => indent + text)]
  }

  const head = isBelow
    ? []
    : line(
        ({ title }) => title,
        (text) => text,
      )
  const body = rows.flatMap((row) =>
    line(
      (column) => oneLine(column.cell(row)),
      (text, column) => column.paint?.(text, row) ?? text,
    ),
  )
  return [...head, ...body].join('\n')
}

/**
 * Names with their values, one below the other. Names without a value are left out. With a width the values are wrapped,
 * else they stay as they are.
 */
export function fields(pairs: Record<string, string | null | undefined>, width?: number): string {
  const shown = Object.entries(pairs).filter((pair): pair is [string, string] => Boolean(pair[1]))
  const longest = Math.max(0, ...shown.map(([name]) => name.length))
  const indent = ' '.repeat(longest + GAP.length)
  return shown
    .flatMap(([name, value]) =>
      (width === undefined ? [value] : wrapped(value, width - indent.length)).map((text, i) =>
        i === 0 ? `${name.padEnd(longest)}${GAP}${text}` : indent + text,
      ),
    )
    .join('\n')
}

/** The text in lines, broken at spaces. A word longer than a line is not broken, so that it can be copied. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of oneLine(text).split(' ')) {
    const before = lines.at(-1)
    if (before === undefined || before.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${before} ${word}`
  }
  return lines
}

/** The text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w.,:/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** The text as an argument of a command of this program, for a shell: after `--` it is not an option. */
export function shellArgument(text: string): string {
  return text.startsWith('-') ? `-- ${shellWord(text)}` : shellWord(text)
}

/** A time to the second: `2026-03-01 09:00:00Z`. */
export function shortTime(iso: string | null | undefined): string {
  return iso ? iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z') : 'never'
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** Lines of which each stays one, whatever ends of lines the texts in it contain. */
export function asLines(lines: string | readonly string[]): string {
  return [lines]
    .flat()
    .map((line) => line.replaceAll('\n', ' '))
    .join('\n')
}

/** A received text as one line, whatever ends of lines it contains. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
