import { type ErrorCode, MarketplaceError } from '../index.js'

/** Every exit code of the program, and its meaning. */
export const EXIT_CODES = {
  0: 'Done, or yes: the business may use the app, each check passed.',
  1: 'No: it may not use the app, nothing of that id was found, a check failed, some lines were not read.',
  2: 'The command, its arguments or the settings cannot be used. Nothing was done.',
  3: 'The database or the platform cannot be used now, no worker answered, or the answer is not known yet.',
  70: 'A fault of this program.',
  130: 'Interrupted by Ctrl+C. What was done until then is kept.',
} as const

export type ExitCode = keyof typeof EXIT_CODES

export const DONE = 0
export const NO = 1
export const USAGE = 2
export const UNAVAILABLE = 3
export const FAULT = 70
export const INTERRUPTED = 130

/** Ends a command with a message for the person, what to do about it, and an exit code. */
export class Stop extends Error {
  readonly exitCode: ExitCode
  readonly code: string
  /** What the person can do. */
  readonly mend: string | undefined

  constructor(exitCode: ExitCode, message: string, options: { mend?: string; code?: string } = {}) {
    super(message)
    this.name = 'Stop'
    this.exitCode = exitCode
    this.code = options.code ?? (exitCode === USAGE ? 'usage' : 'stopped')
    this.mend = options.mend
  }
}

const OF_USAGE: readonly ErrorCode[] = [
  'config_invalid',
  'argument_invalid',
  'event_unknown',
  'token_kind_not_accepted',
]

/** What an error of any kind means for the exit code, in words, with what to do where that is known. */
export function stopFor(error: unknown): Stop {
  if (error instanceof Stop) return error
  if (!(error instanceof MarketplaceError)) {
    const message = error instanceof Error ? error.message : String(error)
    return new Stop(FAULT, `An unexpected error: ${message}`, { code: 'unexpected' })
  }
  const exitCode = OF_USAGE.includes(error.code) ? USAGE : UNAVAILABLE
  const mend = MENDS[error.code]
  return new Stop(exitCode, error.message, { code: error.code, ...(mend ? { mend } : {}) })
}

/** What a person can do about an error that this program can meet, where its message does not have it. */
export const MENDS: Partial<Record<ErrorCode, string>> = {
  store_in_use:
    'The running app holds this SQLite file, and its SQLite library must not share one. While the app runs, use the ' +
    'console that it serves (marketplace-webhooks/console); or stop the app, run this command, and start the app again. ' +
    'With Node 22.13 or better-sqlite3 12.8, or newer, in the app and here, both can use the file at once.',
  store_of_another_app:
    'Check MARKETPLACE_STORE, MARKETPLACE_CLIENT_ID and MARKETPLACE_BASE_URL: the database is of another app.',
  store_unavailable: 'Check MARKETPLACE_STORE, and that the database is up and lets this user in.',
  token_refused:
    'Has the business installed the app? Is MARKETPLACE_AUTH_URL the address of the token endpoint?',
  app_credentials_refused: 'Check MARKETPLACE_CLIENT_ID and MARKETPLACE_CLIENT_SECRET.',
  platform_unreachable:
    'Check MARKETPLACE_BASE_URL and MARKETPLACE_AUTH_URL, and whether a firewall, a proxy or DNS is in the way.',
  platform_timeout: 'Try again; when it stays, check the network between this machine and the platform.',
  platform_failing: 'The platform is in trouble. Try again later.',
  platform_throttled: 'The platform asks for fewer calls. Try again in a few minutes.',
  platform_redirected:
    'Set MARKETPLACE_BASE_URL and MARKETPLACE_AUTH_URL to the addresses after the redirect.',
  platform_reply_invalid:
    'What answers is not the platform: check MARKETPLACE_BASE_URL and MARKETPLACE_AUTH_URL.',
  platform_refused: 'Check MARKETPLACE_BASE_URL, and whether the app may make this call.',
  platform_record_missing: 'Check the uid of the subscription, and that it is of this business.',
  platform_record_mismatch: 'The subscription is of another business.',
}
