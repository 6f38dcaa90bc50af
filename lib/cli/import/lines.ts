import { createReadStream, statSync } from 'node:fs'
import type { TrackedSubscription } from '../../index.js'
import { textOfCell } from '../terminal/csv.js'
import { NO, Stop, USAGE } from '../terminal/exit-codes.js'
import { plural } from '../terminal/layout.js'

/** The lines of a file of customers. */
export interface Customers {
  /** Can be iterated once. */
  lines(): AsyncIterable<TrackedSubscription>
  /** The line number of the nth of `lines` (from 1) in the file, and the fault of its text. Can be called once for each. */
  placeOf(nth: number): { number: number; fault: string | undefined }
  /** The share of the file that was read, from 0 to 1; undefined for the standard input. */
  readShare(): number | undefined
}

const COLUMNS = ['subscription_uid', 'business_uid'] as const

/**
 * Opens a CSV file (with a header line; comma, semicolon or tab) or a JSON Lines file: the first character decides. Reads
 * the header here, so that a file that cannot be used stops the command before it does anything.
 */
export async function openCustomers(file: string, stdin: NodeJS.ReadableStream): Promise<Customers> {
  const bytes = file === '-' ? undefined : sizeOf(file)
  let bytesRead = 0
  async function* counted() {
    const source = file === '-' ? stdin : createReadStream(file)
    try {
      for await (const chunk of source) {
        const bytesOfChunk = chunk as Buffer
        bytesRead += bytesOfChunk.length
        yield bytesOfChunk
      }
    } catch (error) {
      const why = (error as NodeJS.ErrnoException).code ?? 'it failed'
      throw new Stop(
        bytesRead === 0 ? USAGE : NO,
        `Cannot read ${bytesRead === 0 ? '' : 'the rest of '}${file}: ${why}`,
      )
    }
  }

  const lines = linesOf(counted())[Symbol.asyncIterator]()
  const first = await firstLine(lines)
  if (first === undefined) throw new Stop(USAGE, `Cannot use ${file}: it is empty`)
  if (first.fault) throw new Stop(USAGE, `Cannot use ${file}: ${first.fault}`, { fix: FIX_OF_TEXT })
  const start = first.text.trimStart()[0]
  if (start === '[')
    throw new Stop(USAGE, `Cannot use ${file}: it is a JSON array`, {
      fix: 'Write one object on each line (JSON Lines): jq -c ".[]" file.json > file.jsonl',
    })
  const rows =
    start === '{' ? rowsOfJson(first, lines) : rowsOfCsv(await recordFrom(first, lines), lines, file)
  const places = new Map<number, { number: number; fault: string | undefined }>()

  return {
    async *lines() {
      let nth = 0
      for await (const { number, fault, value } of rows) {
        places.set(++nth, { number, fault })
        // Any values: the import checks them.
        yield {
          subscriptionUid: value.subscription_uid,
          businessUid: value.business_uid,
        } as TrackedSubscription
      }
    },
    placeOf(nth) {
      const place = places.get(nth) ?? { number: nth, fault: undefined }
      places.delete(nth)
      return place
    },
    readShare: () => (bytes ? Math.min(1, bytesRead / bytes) : undefined),
  }
}

async function firstLine(lines: AsyncIterator<Line>): Promise<Line | undefined> {
  for (;;) {
    const { done, value } = await lines.next()
    if (done) return undefined
    if (value.fault || value.text.trim() !== '') return value
  }
}

async function* rowsOfJson(first: Line, rest: AsyncIterator<Line>): AsyncGenerator<Row> {
  for (let line: Line | undefined = first; line; ) {
    const { text, number, fault } = line
    if (fault) yield { number, value: {}, fault }
    else if (text.trim() !== '') yield { number, ...objectIn(text) }
    const { done, value } = await rest.next()
    line = done ? undefined : value
  }
}

function objectIn(text: string): Omit<Row, 'number'> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { value: value as Record<string, unknown>, fault: undefined }
  } catch {
    // The message of the error would only repeat the line.
  }
  return { value: {}, fault: 'it is not a JSON object' }
}

function sizeOf(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) throw new Stop(USAGE, `Cannot read ${file}: the file does not exist`)
  if (found.isDirectory()) throw new Stop(USAGE, `Cannot read ${file}: it is a folder`)
  return found.size
}

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
  /** Why the line has no text, as a phrase. The other lines of the file can be used. */
  fault?: string | undefined
}

const LONGEST = 1024 * 1024
const LINE_END = 0x0a
const FIX_OF_TEXT = 'Save it as UTF-8, or convert it with iconv.'

/** Lines of UTF-8 with their numbers, without a byte order mark; LF or CRLF. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  let parts: Uint8Array[] = []
  let bytes = 0
  let number = 0

  function add(part: Uint8Array) {
    bytes += part.length
    // The rest of a line that is too long is not kept.
    if (bytes <= LONGEST) parts.push(part)
  }
  function line(): Line {
    const found = bytes > LONGEST ? { text: '', fault: 'it is longer than 1 MiB' } : textIn(parts)
    parts = []
    bytes = 0
    return { ...found, number: ++number }
  }

  for await (const chunk of chunks) {
    let at = 0
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, at)) {
      add(chunk.subarray(at, end))
      yield line()
      at = end + 1
    }
    add(chunk.subarray(at))
  }
  if (bytes > 0) yield line()
}

function textIn(parts: readonly Uint8Array[]): Omit<Line, 'number'> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
    return { text: text.replace(/\r$/, '') }
  } catch {
    return { text: '', fault: 'it is not UTF-8' }
  }
}

/** Rows of CSV (RFC 4180) by column name, after their header. */
function rowsOfCsv(header: Line, lines: AsyncIterator<Line>, file: string): AsyncGenerator<Row> {
  if (header.fault)
    throw new Stop(USAGE, `Cannot use ${file}: in its header, ${header.fault}`, { fix: FIX_OF_HEADER })
  const separator = separatorOf(header.text)
  const names = cellsOf(header.text, separator)
  const missing = COLUMNS.filter((column) => !names.includes(column))
  if (missing.length === 0) return rowsAfter(names, separator, lines)
  throw new Stop(USAGE, `Cannot use ${file}: its header has no column ${missing.join(' and no ')}`, {
    fix: FIX_OF_HEADER,
  })
}

const FIX_OF_HEADER =
  'Write the names of the columns into the first line: subscription_uid,business_uid. Other columns are allowed.'

/** The separator of the columns: the most frequent of comma, semicolon and tab in the header, outside of quotes. */
function separatorOf(header: string): string {
  const [most] = [',', ';', '\t'].sort((a, b) => cellsOf(header, b).length - cellsOf(header, a).length)
  return most as string
}

async function* rowsAfter(
  names: readonly string[],
  separator: string,
  lines: AsyncIterator<Line>,
): AsyncGenerator<Row> {
  for (;;) {
    const { done, value: first } = await lines.next()
    if (done) return
    const { number, text, fault } = await recordFrom(first, lines)
    if (fault) {
      yield { number, value: {}, fault }
      continue
    }
    if (text.trim() === '') continue
    const cells = cellsOf(text, separator)
    const value = Object.fromEntries(
      names.flatMap((name, i) => (name ? [[name, textOfCell(cells[i] ?? '')]] : [])),
    )
    const isWrongLength = cells.length !== names.length
    yield isWrongLength
      ? {
          number,
          value: {},
          fault: `it has ${plural(cells.length, 'column')}, but the header has ${names.length}`,
        }
      : { number, value, fault: undefined }
  }
}

/** The record that begins with this line. A quoted field may contain separators, quotes and line ends. */
async function recordFrom(first: Line, rest: AsyncIterator<Line>): Promise<Line> {
  const { number } = first
  let { text, fault } = first
  let isOpen = hasOddQuotes(text)
  while (isOpen && text.length <= LONGEST) {
    const { done, value: more } = await rest.next()
    if (done) break
    text += `\n${more.text}`
    fault ??= more.fault
    if (hasOddQuotes(more.text)) isOpen = false
  }
  if (isOpen) fault ??= 'a quote is not closed'
  return { number, text, fault }
}

/** Whether the text opens or closes a quoted field. */
function hasOddQuotes(text: string): boolean {
  return text.split('"').length % 2 === 0
}

/** The cells of a record. White space at the ends of a cell is a part of it only within quotes. */
function cellsOf(text: string, separator: string): string[] {
  const cells: string[] = []
  let start = 0
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '"') isQuoted = !isQuoted
    if (text[i] !== separator || isQuoted) continue
    cells.push(text.slice(start, i))
    start = i + 1
  }
  return [...cells, text.slice(start)].map(unquoted)
}

function unquoted(cell: string): string {
  return cell.trim().replace(/"([^"]*(?:""[^"]*)*)"/g, (_, quoted: string) => quoted.replaceAll('""', '"'))
}
