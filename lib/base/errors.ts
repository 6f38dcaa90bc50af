import { types } from 'node:util'

/**
 * Every error that this package throws or replies with, as one table: the code is stable, the status is what an HTTP
 * reply carries, and `retryable` is whether the same call may succeed later. `refusal` marks the answers by which the
 * platform does not show a subscription; all other failures of a read leave open what it would show.
 */
export const ERROR_CODES = {
  // Programming and configuration
  config_invalid: { status: 500, retryable: false },
  token_kind_not_accepted: { status: 500, retryable: false },
  event_unknown: { status: 500, retryable: false },
  argument_invalid: { status: 500, retryable: false },
  closed: { status: 503, retryable: false },
  not_settled: { status: 503, retryable: true },
  // Deliveries
  method_not_allowed: { status: 405, retryable: false },
  body_timeout: { status: 408, retryable: true },
  body_too_large: { status: 413, retryable: false },
  body_not_json: { status: 400, retryable: false },
  body_not_utf8: { status: 400, retryable: false },
  body_incomplete: { status: 400, retryable: true },
  body_already_read: { status: 500, retryable: false },
  body_encoding_unsupported: { status: 415, retryable: false },
  body_encoding_broken: { status: 400, retryable: false },
  content_type_unsupported: { status: 415, retryable: false },
  delivery_refused: { status: 403, retryable: false },
  delivery_not_accepted: { status: 503, retryable: true },
  // Guard
  business_missing: { status: 401, retryable: false },
  not_entitled: { status: 402, retryable: false },
  entitlement_unknown: { status: 503, retryable: true },
  // Platform
  platform_unreachable: { status: 503, retryable: true },
  platform_timeout: { status: 503, retryable: true },
  platform_failing: { status: 503, retryable: true },
  platform_throttled: { status: 503, retryable: true },
  platform_redirected: { status: 503, retryable: true },
  platform_reply_too_large: { status: 503, retryable: true },
  platform_reply_invalid: { status: 503, retryable: true },
  platform_refused: { status: 503, retryable: true, refusal: true },
  platform_record_mismatch: { status: 503, retryable: true, refusal: true },
  platform_record_missing: { status: 503, retryable: true, refusal: true },
  token_refused: { status: 503, retryable: true, refusal: true },
  app_credentials_refused: { status: 503, retryable: true },
  find_subscriptions_failed: { status: 503, retryable: true },
  // Store
  store_driver_missing: { status: 500, retryable: false },
  store_corrupt: { status: 500, retryable: false },
  store_in_use: { status: 503, retryable: true },
  store_of_another_app: { status: 500, retryable: false },
  store_unavailable: { status: 503, retryable: true },
  delivery_turned_away: { status: 503, retryable: true },
  backup_failed: { status: 500, retryable: true },
  restore_failed: { status: 500, retryable: true },
  copy_failed: { status: 500, retryable: true },
  // Handlers
  handler_timeout: { status: 500, retryable: true },
  lease_lapsed: { status: 500, retryable: true },
  entry_dead: { status: 500, retryable: false },
} as const satisfies Record<string, { status: number; retryable: boolean; refusal?: true }>

/** A code of `ERROR_CODES`. Codes are stable: a new version may add some, and renames none. */
export type ErrorCode = keyof typeof ERROR_CODES

/** The codes that are marked as a refusal. */
export const REFUSALS: readonly string[] = Object.entries(ERROR_CODES).flatMap(([code, row]) =>
  'refusal' in row ? code : [],
)

/** The page with an anchor for each code, by its path in the package: it is installed with the code it explains. */
const HELP_PAGE = 'marketplace-webhooks/docs/errors.md'

/**
 * The one base class: everything this package throws, and everything its promises reject with. `message` reads
 * "Cannot *do what*: *why*" and contains no secret.
 *
 * @example
 * try {
 *   await marketplace.subscriptions.track({ subscriptionUid, businessUid })
 * } catch (error) {
 *   if (error instanceof MarketplaceError && error.retryable) return tryLater()
 *   throw error
 * }
 */
export class MarketplaceError extends Error {
  /** Stable and documented: compare this, never the message. */
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'MarketplaceError'
    this.code = code
  }

  /** The HTTP status that belongs to the code. */
  get status(): number {
    return ERROR_CODES[this.code].status
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable
  }

  /** The place that explains the code: a page of this package, such as `marketplace-webhooks/docs/errors.md#store_in_use`. */
  get help(): string {
    return `${HELP_PAGE}#${this.code}`
  }
}

/**
 * `createMarketplace` throws it when the options are wrong.
 *
 * @example
 * try {
 *   createMarketplace(options)
 * } catch (error) {
 *   if (error instanceof ConfigError) console.error(error.faults.join('\n'))
 * }
 */
export class ConfigError extends MarketplaceError {
  /** Every fault of the options, a sentence for each. They never repeat a value, because it may be a secret. */
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super('config_invalid', `Cannot create the marketplace: ${faults.join('; ')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/** The body of an error reply, RFC 9457 (application/problem+json). */
interface Problem {
  /** Always `about:blank`: `code` names the problem. */
  type: string
  /** The code in words. */
  title: string
  /** The HTTP status of the reply. */
  status: number
  code: ErrorCode
  /** The cause, for the person who reads the log of the sender. It contains no secret and no body. */
  detail?: string
}

/** The problem of a code. */
export function problem(code: ErrorCode, detail?: string): Problem {
  const title = code.replaceAll('_', ' ')
  return { type: 'about:blank', title, status: ERROR_CODES[code].status, code, ...(detail ? { detail } : {}) }
}

/** The code of an error of this package; undefined for every other value. */
export function ownCode(error: unknown): ErrorCode | undefined {
  try {
    return error instanceof MarketplaceError && Object.hasOwn(ERROR_CODES, error.code)
      ? error.code
      : undefined
  } catch {
    return undefined // a Proxy that throws
  }
}

/** The text of an error of any kind, for a message, as one printable line; never a stack, and bounded. */
export function messageOf(error: unknown): string {
  try {
    const text = (error as { message?: unknown } | null)?.message ?? error
    return printable(String(text), 1_000) || 'unknown error'
  } catch {
    return 'unknown error'
  }
}

/**
 * The class and the message of a thrown value of any kind, for the journal or a log: `TypeError: x is not a function`. It
 * begins with the class and a colon, whatever was thrown, and is one printable line; never a stack, and bounded.
 */
export function thrownText(thrown: unknown, maxLength: number): string {
  return printable(`${classOf(thrown)}: ${messageOf(thrown)}`, maxLength)
}

/** The name of the class of a thrown value; the type of a value that is not an error. */
export function classOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error || types.isNativeError(thrown))) return typeof thrown
    const { name } = thrown.constructor
    return /^[\p{ID_Continue}$]{1,100}$/u.test(name) ? name : 'Error'
  } catch {
    return 'unknown'
  }
}

/** A field of a value of any kind; undefined also if reading it throws. */
export function fieldOf(value: unknown, name: string): unknown {
  try {
    return (value as Record<string, unknown> | null | undefined)?.[name]
  } catch {
    return undefined
  }
}

/**
 * The stack of a thrown error, of the first errors that it holds and of its causes, bounded; null for any other value. Each
 * error is one printable line with its class and message, and its frames follow, a line for each.
 */
export function stackOf(thrown: unknown): string | null {
  const lines = errorsIn(thrown).flatMap(({ relation, text, frames }) => [relation + text, ...frames])
  return lines.length === 0 ? null : lines.join('\n').slice(0, MAX_STACK_LENGTH).toWellFormed()
}

/** One error of a stack: `relation` stands before its text, such as `caused by `. */
interface StackError {
  error: unknown
  relation: string
  text: string
  frames: string[]
}

/**
 * A thrown error, and after each error those that it holds, as an `AggregateError` does, and its cause: each once, bounded in
 * number and in length. Nothing for a value without a stack.
 */
export function errorsIn(thrown: unknown): StackError[] {
  const found: Pick<StackError, 'error' | 'relation'>[] = []
  function find(error: unknown, relation: string, depth: number) {
    const isKnown = typeof error === 'object' && found.some((each) => each.error === error)
    if (isKnown || depth === MAX_DEPTH || found.length === MAX_ERRORS) return
    found.push({ error, relation })
    const { count, first } = heldBy(error)
    for (const [i, held] of first.entries()) find(held, `error ${i + 1} of ${count}: `, depth + 1)
    const cause = fieldOf(error, 'cause')
    if (cause !== undefined && cause !== null) find(cause, 'caused by ', depth + 1)
  }
  if (typeof fieldOf(thrown, 'stack') === 'string') find(thrown, '', 0)

  // Each error may take an equal share of what those before it have left.
  let left = MAX_STACK_LENGTH
  return found.map(({ error, relation }, i) => {
    const end = left - Math.floor(left / (found.length - i))
    const text = thrownText(error, Math.min(500, left - end - relation.length - 1))
    left -= relation.length + text.length + 1
    const frames: string[] = []
    for (const frame of framesOf(error)) {
      if (left - frame.length - 1 < end) break
      left -= frame.length + 1
      frames.push(frame)
    }
    return { error, relation, text, frames }
  })
}

/** How many errors a value holds in its field `errors`, and the first ones. */
function heldBy(error: unknown): { count: number; first: unknown[] } {
  try {
    const { errors } = error as { errors?: unknown }
    const isHolder = types.isNativeError(error) && Array.isArray(errors)
    if (isHolder) return { count: errors.length, first: errors.slice(0, MAX_HELD) }
  } catch {
    // A getter has thrown.
  }
  return { count: 0, first: [] }
}

const MAX_ERRORS = 8
const MAX_DEPTH = 4
/** The most that is shown of the errors that one error holds. */
const MAX_HELD = 3
const MAX_FRAMES = 20
const MAX_STACK_LENGTH = 4_000

function framesOf(error: unknown): string[] {
  const [stack, message] = [fieldOf(error, 'stack'), fieldOf(error, 'message')]
  if (typeof stack !== 'string') return []
  // The message stands in front of the frames, and it may contain lines that look like frames.
  const at = typeof message === 'string' ? stack.indexOf(message) : -1
  return stack
    .slice(at === -1 ? 0 : at + String(message).length)
    .slice(0, 100_000)
    .split('\n')
    .filter((line) => /^\s+at \S/.test(line))
    .slice(0, MAX_FRAMES)
    .map((line) => `    at ${printable(line.trim().slice(3), 300)}`)
}

/** The longest line of a log, and the longest text of one of its fields. */
const MAX_LINE_LENGTH = 4_000

/**
 * Control and format characters, separators of lines and paragraphs, halves of surrogate pairs, and all characters that are
 * not shown, such as tags and variation selectors.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * The text as one printable line, for a log and for the journal: white space becomes a space, every other character that
 * could change how the line is shown becomes U+FFFD, and what exceeds `maxLength` is cut off.
 *
 * @example printable('one\n\u202etwo') // one \ufffdtwo
 */
export function printable(text: string, maxLength = MAX_LINE_LENGTH): string {
  return text.slice(0, maxLength).replace(/\s+/g, ' ').trim().replace(UNPRINTABLE, '\ufffd')
}
