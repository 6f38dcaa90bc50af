import type { Writable } from 'node:stream'
import type { Stop } from './exit-codes.js'

type Stream = Writable & { isTTY?: boolean; columns?: number }

export interface Output {
  readonly isJson: boolean
  /** Longest line, in characters. */
  readonly width: number
  readonly paint: Paint
  /** Prints a result: with `--json` its value on one line, else its text. */
  result(value: unknown, text: () => string): void
  /** Prints a text for people, on stderr. */
  note(text: string): void
  /** Prints a line on stderr that the next output replaces; on a terminal only. */
  progress(text: string): void
  warning(text: string): void
  error(stop: Stop): void
  /** Registers texts that are never printed, also as part of other texts. */
  hide(secrets: readonly (string | undefined)[]): void
}

/** Colours a text for a terminal. Without a terminal the text stays unchanged. */
export type Paint = Record<'good' | 'bad' | 'unsure' | 'dim' | 'bold', (text: string) => string>

/** The output of a command. Results go to stdout, everything else to stderr. It removes secrets and control characters. */
export function createOutput(options: {
  stdout: Stream
  stderr: Stream
  env: NodeJS.ProcessEnv
  isJson: boolean
}): Output {
  const { stdout, stderr, env, isJson } = options
  const mayPaint = !env.NO_COLOR && env.TERM !== 'dumb' && !isJson
  const paint = paintFor(mayPaint && stdout.isTTY === true)
  const onErrors = paintFor(mayPaint && stderr.isTTY === true)
  let secrets: string[] = []
  let isProgressShown = false

  const hidden = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
  const clean = (text: string) => printable(hidden(text))
  /** A text with JSON in it would escape the secret twice. */
  const jsonOf = (value: unknown) =>
    JSON.stringify(value, (_name, each) => (typeof each === 'string' ? hidden(each) : each))

  function writeErr(text: string) {
    if (isProgressShown) stderr.write('\r\u001b[K')
    isProgressShown = false
    stderr.write(`${clean(text)}\n`)
  }

  return {
    isJson,
    width: Math.max(40, Math.min(stdout.columns ?? 80, 120)),
    paint,
    result(value, text) {
      if (isProgressShown) stderr.write('\r\u001b[K')
      isProgressShown = false
      const shown = isJson ? jsonOf(value) : text()
      if (shown !== '') stdout.write(`${clean(shown)}\n`)
    },
    note: (text) => writeErr(text),
    progress(text) {
      if (stderr.isTTY !== true) return
      stderr.write(`\r\u001b[K${clean(text)}`)
      isProgressShown = true
    },
    warning: (text) => writeErr(`${onErrors.unsure('warning:')} ${text}`),
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
 * Removes control characters and direction marks, so that received data cannot control the terminal. Colours stay.
 */
function printable(text: string): string {
  return text.replace(CONTROL, '\ufffd')
}

const CONTROL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  /\u001b(?!\[\d{1,2}m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

const SGR = { good: 32, bad: 31, unsure: 33, dim: 2, bold: 1 }

function paintFor(mayPaint: boolean): Paint {
  const entries = Object.entries(SGR).map(([name, code]) => [
    name,
    (text: string) => (mayPaint ? `\u001b[${code}m${text}\u001b[0m` : text),
  ])
  return Object.fromEntries(entries) as Paint
}
