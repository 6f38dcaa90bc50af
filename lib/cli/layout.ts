/** A column of a table. The last one takes what is left of the line, and wraps. */
export interface Column<Row> {
  title: string
  cell(row: Row): string
  /** After the text was padded. */
  paint?(text: string, row: Row): string
}

const GAP = '  '
/** Below this, the last column stands on lines of its own. */
const NARROWEST = 16

/** Rows as lines of at most `width` columns, as far as identifiers allow: those are never cut. */
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

/** Names and values under each other, the values wrapped. Those without a value are left out. */
export function fields(pairs: Record<string, string | null | undefined>, width: number): string {
  const shown = Object.entries(pairs).filter((pair): pair is [string, string] => Boolean(pair[1]))
  const longest = Math.max(0, ...shown.map(([name]) => name.length))
  const indent = ' '.repeat(longest + GAP.length)
  return shown
    .flatMap(([name, value]) =>
      wrapped(value, width - indent.length).map((text, i) =>
        i === 0 ? `${name.padEnd(longest)}${GAP}${text}` : indent + text,
      ),
    )
    .join('\n')
}

/** Broken at spaces. A word that is longer than a line stays whole: it may have to be copied. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of oneLine(text).split(' ')) {
    const before = lines.at(-1)
    if (before === undefined || before.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${before} ${word}`
  }
  return lines
}

/** To the second: `2026-03-01 09:00:00Z`. */
export function shortTime(iso: string | null | undefined): string {
  return iso ? iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z') : 'never'
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
