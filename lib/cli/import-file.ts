import { createReadStream, statSync } from 'node:fs'
import type { TrackedSubscription } from '../index.js'
import { Stop, USAGE } from './exit-codes.js'
import { linesOf, type Row, rowsOfCsv, separatorOf } from './text-lines.js'

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
      throw new Stop(USAGE, `Cannot read ${file}: ${(error as NodeJS.ErrnoException).code ?? 'it failed'}`)
    }
  }

  const lines = linesOf(counted())[Symbol.asyncIterator]()
  const first = await firstLine(lines)
  if (first === undefined) throw new Stop(USAGE, `Cannot use ${file}: it is empty`)
  const start = first.text.trimStart()[0]
  if (start === '[')
    throw new Stop(USAGE, `Cannot use ${file}: it is a JSON array`, {
      fix: 'Write one object on each line (JSON Lines): jq -c ".[]" file.json > file.jsonl',
    })
  const rows =
    start === '{'
      ? rowsOfJson(first, lines)
      : rowsOfCsv(lines, headerOf(first.text, file), separatorOf(first.text))
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

interface Line {
  text: string
  number: number
}

async function firstLine(lines: AsyncIterator<Line>): Promise<Line | undefined> {
  for (;;) {
    const { done, value } = await lines.next()
    if (done) return undefined
    if (value.text.trim() !== '') return value
  }
}

function headerOf(text: string, file: string): (string | undefined)[] {
  const names = text.split(separatorOf(text)).map((name) => name.trim().replace(/^"(.*)"$/, '$1'))
  const missing = COLUMNS.filter((column) => !names.includes(column))
  if (missing.length === 0) return names
  throw new Stop(USAGE, `Cannot use ${file}: its header has no column ${missing.join(' and no ')}`, {
    fix: 'Write the names of the columns into the first line: subscription_uid,business_uid. Other columns are allowed.',
  })
}

async function* rowsOfJson(first: Line, rest: AsyncIterator<Line>): AsyncGenerator<Row> {
  for (let line: Line | undefined = first; line; ) {
    const { text, number } = line
    if (text.trim() !== '') yield { number, ...objectIn(text) }
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
