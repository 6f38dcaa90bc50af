import { Stop, USAGE } from './exit-codes.js'

/** A row of a file as an object. `fault` is set if the row is not valid. */
export interface Row {
  /** The number of its first line in the file, from 1. */
  number: number
  value: Record<string, unknown>
  fault: string | undefined
}

interface Line {
  text: string
  number: number
}

const LONGEST = 1024 * 1024

/** Lines of UTF-8 with their numbers, without a byte order mark; LF or CRLF. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  let number = 0
  for await (const chunk of chunks) {
    rest += decoded(() => decoder.decode(chunk, { stream: true }))
    const lines = rest.split('\n')
    rest = lines.pop() as string
    for (const text of lines) yield { text: text.replace(/\r$/, ''), number: ++number }
    if (rest.length > LONGEST) throw new Stop(USAGE, `Line ${number + 1} is longer than 1 MiB`)
  }
  rest += decoded(() => decoder.decode())
  if (rest !== '') yield { text: rest.replace(/\r$/, ''), number: ++number }
}

function decoded(decode: () => string): string {
  try {
    return decode()
  } catch {
    throw new Stop(USAGE, 'The file is not UTF-8', { fix: 'Save it as UTF-8, or convert it with iconv.' })
  }
}

/** The separator of the columns: the most frequent of comma, semicolon and tab in the header. */
export function separatorOf(header: string): string {
  const [most] = [',', ';', '\t'].sort((a, b) => header.split(b).length - header.split(a).length)
  return most as string
}

/** Rows of CSV (RFC 4180) by column name. A quoted field may contain separators, quotes and line ends. */
export async function* rowsOfCsv(
  lines: AsyncIterator<Line>,
  names: readonly (string | undefined)[],
  separator: string,
): AsyncGenerator<Row> {
  for (;;) {
    const { done, value: first } = await lines.next()
    if (done) return
    let text = first.text
    let isOpen = hasOddQuotes(text)
    while (isOpen && text.length <= LONGEST) {
      const { done: isLast, value: more } = await lines.next()
      if (isLast) break
      text += `\n${more.text}`
      if (hasOddQuotes(more.text)) isOpen = false
    }
    if (isOpen) {
      yield { number: first.number, value: {}, fault: 'a quote is not closed' }
      continue
    }
    if (text.trim() === '') continue
    const cells = cellsOf(text, separator)
    const value = Object.fromEntries(
      names.flatMap((name, i) => (name ? [[name, cells[i]?.trim() ?? '']] : [])),
    )
    const isWrongLength = cells.length !== names.length
    yield isWrongLength
      ? {
          number: first.number,
          value: {},
          fault: `it has ${cells.length} columns, but the header has ${names.length}`,
        }
      : { number: first.number, value, fault: undefined }
  }
}

/** Whether the text opens or closes a quoted field. */
function hasOddQuotes(text: string): boolean {
  return text.split('"').length % 2 === 0
}

function cellsOf(text: string, separator: string): string[] {
  const cells: string[] = []
  let cell = ''
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string
    if (isQuoted && char === '"' && text[i + 1] === '"') cell += text[i++]
    else if (char === '"') isQuoted = !isQuoted
    else if (char === separator && !isQuoted) {
      cells.push(cell)
      cell = ''
    } else cell += char
  }
  return [...cells, cell]
}
