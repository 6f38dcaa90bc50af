import { type InspectOptions, inspect } from 'node:util'
import createDebug from 'debug'
import { type Clock, SECOND } from '../base/clock.js'
import { printable } from '../base/errors.js'

/**
 * The app's logger, by shape: pino, bunyan, `console`, Fastify's. Each call is `(fields, message)`: pino writes a
 * structured line, and `console` prints `{ code: 'handler_failed' } A handler of …`. The fields are `code`, `area`,
 * `status` and `problems`, those of the audit, and `stack` of an error of the app's own code: its class and its
 * frames, and those of the errors that it holds and of its causes, in one line.
 *
 * Each message and each field is one printable line of at most 4,000 characters, without control and format characters.
 * None contains a secret, a token, the address of a delivery, or text of a body, a payload or a reply of the platform.
 */
export interface Logger {
  /** Details for an investigation. */
  debug?(fields: LogFields, message: string): unknown
  /** A problem has ended. Or, in the area `audit`, a person did something that the journal records. */
  info?(fields: LogFields, message: string): unknown
  /** A problem that needs a look. The work continues. */
  warn(fields: LogFields, message: string): unknown
  /** A failure. */
  error(fields: LogFields, message: string): unknown
}

/** The fields of a line. */
export type LogFields = Record<string, string | number>
export type LogLevel = keyof Logger

/** Returns the printable text without secrets. */
export type Line = (text: string) => string

/**
 * Every text of a log goes through the function that this returns. It masks each of `secrets`, also encoded for a URL, and its
 * beginning, because the texts of errors are cut off.
 */
export function createLine(secrets: readonly string[]): Line {
  const long = [...new Set(secrets)].filter((secret) => secret.length >= MIN_SECRET)
  if (long.length === 0) return (text) => printable(text)
  // The longest one first: another one may be its beginning.
  const search = new RegExp(
    long
      .sort((a, b) => b.length - a.length)
      .map(patternOf)
      .join('|'),
    'g',
  )
  return (text) => printable(text.replace(search, '[secret]'))
}

/** Shorter ones are not masked, and are no secrets: they would hide common words. */
const MIN_SECRET = 8

/**
 * A pattern for a secret: its first `MIN_SECRET` characters, and all characters of it that follow. It may mask more,
 * but a pattern of every character would take the compiler 0.1 s for 500, and end the process for 8,000.
 */
function patternOf(secret: string): string {
  const characters = [...secret]
  const head = characters
    .slice(0, MIN_SECRET)
    .map((character) => `(?:${formsOf(character).flatMap(patternsOfForm).join('|')})`)
  const rest = [...new Set(characters.slice(MIN_SECRET).flatMap(formsOf))].map((each) =>
    each.replace(/[\\\]^-]/, '\\$&'),
  )
  // The encoded form first: `%` may be a character of the secret.
  return `${head.join('')}(?:${ENCODED}[\\da-fA-F]{2}|[${rest.join('')}])*`
}

/** A query has `+` for a space. */
const formsOf = (character: string) => (character === ' ' ? [' ', '+'] : [character])

/** The patterns of a character as it is, and percent-encoded. */
function patternsOfForm(character: string): [string, string] {
  const bytes = [...Buffer.from(character)].map((byte) => {
    const digits = byte.toString(16).padStart(2, '0')
    return ENCODED + [...digits].map((digit) => `[${digit}${digit.toUpperCase()}]`).join('')
  })
  return [character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&'), bytes.join('')]
}

/** A text that is encoded several times has `%25` for each `%`. */
const ENCODED = '%(?:25){0,3}'

type Log = (level: LogLevel, fields: LogFields, message: string) => void

/**
 * Passes a line to the app's logger, with each text as `line` returns it. Errors of the logger are dropped: it must not
 * stop the work it reports.
 */
export function createLog(logger: Logger | undefined, line: Line): Log | undefined {
  return (
    logger &&
    function log(level, fields, message) {
      try {
        const result = logger[level]?.(shownFields(fields, line), line(message))
        if (result instanceof Promise) result.catch(() => {})
      } catch {
        // There is no other place to report it.
      }
    }
  )
}

function shownFields(fields: LogFields, line: Line): LogFields {
  const shown = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === 'string' ? line(value) : value,
  ])
  return Object.defineProperty(Object.fromEntries(shown), inspect.custom, { value: onOneLine })
}

/** The form of the fields for `console`, which would break an object with a long text into lines. */
function onOneLine(this: LogFields, _depth: number, options: InspectOptions): string {
  return inspect({ ...this }, { ...options, compact: true, breakLength: Number.POSITIVE_INFINITY })
}

/** A line, with the stack of the error that it reports. */
export interface LogLine {
  message: string
  /** In one line. */
  stack?: string | undefined
}

/** The shortest time between two lines of one class. */
const EVERY_MS = 10 * SECOND

/**
 * Returns a function that writes a debug line, and passes it to the app's logger. Of one class it writes at most a line
 * in ten seconds; the next one has the number of withheld lines. Classes come from fixed sets. `lineOf` is called for a
 * line that is written.
 */
export function createLogLines(log: Log | undefined, line: Line, clock: Pick<Clock, 'monotonic'>) {
  const loggers = new Map<string, createDebug.Debugger>()
  const lines = new Map<string, { until: number; withheld: number }>()

  return function write(area: string, className: string, lineOf: () => LogLine, level: LogLevel = 'debug') {
    const debug = loggers.get(area) ?? createDebug(`marketplace-webhooks:${area}`)
    loggers.set(area, debug)
    if (!debug.enabled && !log) return
    const now = clock.monotonic()
    const key = `${area}:${className}`
    const last = lines.get(key)
    if (last && last.until > now) {
      last.withheld++
      return
    }
    const withheld = last?.withheld ? ` (${last.withheld} more before this one)` : ''
    lines.set(key, { until: now + EVERY_MS, withheld: 0 })
    const { message, stack } = lineOf()
    log?.(level, { area, code: className, ...(stack ? { stack } : {}) }, message + withheld)
    debug('%s%s%s', line(message), withheld, stack ? ` ${line(stack)}` : '')
  }
}

/** Whether the value has the methods of a `Logger`. */
export function isLogger(value: unknown): boolean {
  const { warn, error } = (value ?? {}) as Record<string, unknown>
  return typeof warn === 'function' && typeof error === 'function'
}
