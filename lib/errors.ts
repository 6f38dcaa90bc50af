/**
 * Every error this package throws or answers with, as one table: the code is stable, the status is what an HTTP
 * reply carries, and `retryable` says whether trying the same thing again may help.
 */
export const ERROR_CODES = {
  // Programming and configuration
  config_invalid: { status: 500, retryable: false },
  token_kind_not_accepted: { status: 500, retryable: false },
  event_unknown: { status: 500, retryable: false },
  argument_invalid: { status: 500, retryable: false },
  closed: { status: 503, retryable: false },
  not_idle: { status: 503, retryable: true },
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
  delivery_not_kept: { status: 503, retryable: true },
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
  platform_refused: { status: 503, retryable: true },
  platform_record_mismatch: { status: 503, retryable: true },
  platform_record_missing: { status: 503, retryable: true },
  token_refused: { status: 503, retryable: true },
  app_credentials_refused: { status: 503, retryable: true },
  // Store
  store_driver_missing: { status: 500, retryable: false },
  store_corrupt: { status: 500, retryable: false },
  store_in_use: { status: 503, retryable: true },
  store_of_another_app: { status: 500, retryable: false },
  store_unavailable: { status: 503, retryable: true },
  backup_failed: { status: 500, retryable: true },
  // Handlers
  handler_timeout: { status: 500, retryable: true },
  lease_lapsed: { status: 500, retryable: true },
} as const satisfies Record<string, { status: number; retryable: boolean }>

export type ErrorCode = keyof typeof ERROR_CODES

/** The one base class. `code` is stable and documented; `message` reads "Cannot <do what>: <why>" and holds no secret. */
export class MarketplaceError extends Error {
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
}

/** Thrown at construction. `faults` names every fault of the options at once, one sentence each. */
export class ConfigError extends MarketplaceError {
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super('config_invalid', `Cannot create the marketplace: ${faults.join('; ')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/** The body of an error reply, RFC 9457 (application/problem+json). */
export interface Problem {
  type: string
  title: string
  status: number
  code: ErrorCode
  detail?: string
}

/** Titles are the code in words; `detail` is for the person who reads the log of the sender. */
export function problem(code: ErrorCode, detail?: string): Problem {
  const title = code.replaceAll('_', ' ')
  return { type: 'about:blank', title, status: ERROR_CODES[code].status, code, ...(detail ? { detail } : {}) }
}

/** The text of an error of any kind, for a log or a message; never a stack, and bounded. */
export function messageOf(error: unknown): string {
  try {
    const text = (error as { message?: unknown } | null)?.message ?? error
    return String(text).slice(0, 500) || 'unknown error'
  } catch {
    return 'unknown error'
  }
}
