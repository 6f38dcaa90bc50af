import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import type { Stop } from './exit-codes.js'
import { asLines } from './layout.js'

type Stream = Writable & { isTTY?: boolean; columns?: number }

export interface Output {
  readonly isJson: boolean
  /** Longest line, in characters. */
  readonly width: number
  readonly paint: Paint
  /** Aborted once the reader of stdout, such as `head`, has closed it. Nothing more is printed there. */
  readonly readerGone: AbortSignal
  /** Prints a result: with `--json` its value on one line, else its text. */
  result(value: unknown, text: () => string): void
  /** Prints a part of a result that is one long document. It adds no end of a line. */
  part(text: string): void
  /** Prints a line for people, or several, on stderr. */
  note(text: string | readonly string[]): void
  /** Prints a line on stderr that the next output replaces; on a terminal only. */
  progress(text: string): void
  warning(text: string): void
  error(stop: Stop): void
  /** Registers texts that are never printed, also as part of other texts. */
  hide(secrets: readonly (string | undefined)[]): void
}

/** Colours a text for a terminal. Without a terminal the text stays unchanged. */
export type Paint = Record<'good' | 'bad' | 'unsure' | 'dim' | 'bold', (text: string) => string>

/**
 * The output of a command. Results go to stdout, everything else to stderr. It removes secrets, and all
 * control and format characters but its own colours.
 */
export function createOutput(options: {
  stdout: Stream
  stderr: Stream
  env: NodeJS.ProcessEnv
  isJson: boolean
}): Output {
  const { stdout, stderr, env, isJson } = options
  const mayPaint = !env.NO_COLOR && env.TERM !== 'dumb' && !isJson
  const colours = createColours()
  const paint = colours.paintFor(mayPaint && stdout.isTTY === true)
  const onErrors = colours.paintFor(mayPaint && stderr.isTTY === true)
  let secrets: string[] = []
  let isProgressShown = false
  const reader = new AbortController()
  stdout.on('error', () => reader.abort())

  const hidden = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
  const clean = (text: string) => colours.shown(hidden(text))
  /** Hidden before, because a text with JSON in it would escape the secret twice. */
  const jsonOf = (value: unknown) => jsonText(value, { shown: hidden })

  function writeErr(text: string) {
    if (isProgressShown) stderr.write('\r\u001b[K')
    isProgressShown = false
    stderr.write(`${clean(text)}\n`)
  }

  function writeOut(text: string) {
    if (reader.signal.aborted) return
    if (isProgressShown) stderr.write('\r\u001b[K')
    isProgressShown = false
    stdout.write(clean(text))
  }

  return {
    isJson,
    width: Math.max(40, Math.min(stdout.columns ?? 80, 120)),
    paint,
    readerGone: reader.signal,
    result(value, text) {
      const shown = isJson ? jsonOf(value) : text()
      writeOut(shown === '' ? '' : `${shown}\n`)
    },
    part: writeOut,
    note: (text) => writeErr(asLines(text)),
    progress(text) {
      if (stderr.isTTY !== true) return
      // A line that wraps could not be replaced.
      stderr.write(`\r\u001b[K${clean(asLines(text)).slice(0, (stderr.columns ?? 80) - 1)}`)
      isProgressShown = true
    },
    warning: (text) => writeErr(`${onErrors.unsure('warning:')} ${asLines(text)}`),
    error({ message, fix, code, exitCode }) {
      if (isJson) return writeErr(jsonOf({ error: { code, message, fix: fix ?? null, exitCode } }))
      writeErr(`${onErrors.bad('error:')} ${message}`)
      if (fix) writeErr(fix)
    },
    hide(more) {
      const known = [...secrets, ...more.flatMap((secret) => (secret ? formsOf(secret) : []))]
      // The longest secret is replaced first, because it may contain another.
      secrets = [...new Set(known)].sort((a, b) => b.length - a.length)
    },
  }
}

/** The secret as it is, in an address, and in JSON. Very short secrets are left out: they would remove ordinary text. */
function formsOf(secret: string): string[] {
  const forms = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]
  return forms.filter((form) => form.length >= 6)
}

/**
 * Control and format characters, separators of lines and paragraphs, and all characters that are not shown, such as tags
 * and variation selectors. Streams and JSON replace halves of surrogate pairs.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** The text without anything that controls a terminal or changes how it is read. The ends of lines stay. */
function printable(text: string): string {
  return text.replaceAll('\t', ' ').replace(UNPRINTABLE, (each) => (each === '\n' ? each : '\ufffd'))
}

/** The same value as a JSON text without these characters. JSON has them only in strings, where they can be escaped. */
export function jsonText(
  value: unknown,
  { indent, shown = (text) => text }: { indent?: number; shown?: (text: string) => string } = {},
): string {
  return printableJson(
    JSON.stringify(value, (_name, each) => (typeof each === 'string' ? shown(each) : each), indent),
  )
}

/** A JSON text, or a part of one, without these characters. */
export function printableJson(json: string): string {
  return json.replace(UNPRINTABLE, (each) =>
    each === '\n' ? each : [...Array(each.length).keys()].map((at) => escaped(each.charCodeAt(at))).join(''),
  )
}

const escaped = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`

const SGR = { good: 32, bad: 31, unsure: 33, dim: 2, bold: 1 }

/**
 * The colours of this program. In a text they are marks with a random number, which no received text can contain, and
 * `shown` makes colours of them after everything else that looks like one was removed.
 */
function createColours() {
  const mark = `<${randomUUID()}:`
  const marks = new RegExp(`${mark}(\\d+)>`, 'g')

  return {
    paintFor(mayPaint: boolean): Paint {
      const entries = Object.entries(SGR).map(([name, code]) => [
        name,
        (text: string) => (mayPaint ? `${mark}${code}>${text}${mark}0>` : text),
      ])
      return Object.fromEntries(entries) as Paint
    },
    shown: (text: string): string => printable(text).replace(marks, '\u001b[$1m'),
  }
}
