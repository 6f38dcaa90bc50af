import { type ErrorCode, MarketplaceError } from '../../index.js'
import { asLines, oneLine } from './layout.js'

/** Every exit code of the program, and its meaning. */
export const EXIT_CODES = {
  0: 'Done, or yes: the business may use the app, all checks passed.',
  1: 'No: the business may not use the app, the id was not found, no entry matched a replay, a check failed, a handler failed again, or some lines were not read.',
  2: 'The command, its arguments or the settings are not valid. Nothing was done.',
  3: 'The database or the platform is unavailable, no worker answered, or the answer is not known yet.',
  70: 'An error in this program.',
  130: 'Interrupted by Ctrl+C. Finished steps are not undone.',
} as const

export type ExitCode = keyof typeof EXIT_CODES

export const DONE = 0
export const NO = 1
export const USAGE = 2
export const UNAVAILABLE = 3
export const FAULT = 70
export const INTERRUPTED = 130

/** Ends a command with a message for the person, a line or several, a way to fix the problem, and an exit code. */
export class Stop extends Error {
  readonly exitCode: ExitCode
  readonly code: string
  /** What the person can do next. */
  readonly fix: string | undefined

  constructor(
    exitCode: ExitCode,
    message: string | readonly string[],
    options: { fix?: string | undefined; code?: string } = {},
  ) {
    super(asLines(message))
    this.name = 'Stop'
    this.exitCode = exitCode
    this.code = options.code ?? (exitCode === USAGE ? 'usage' : 'stopped')
    this.fix = options.fix && asLines(options.fix)
  }
}

const OF_USAGE: readonly ErrorCode[] = [
  'config_invalid',
  'argument_invalid',
  'event_unknown',
  'token_kind_not_accepted',
]

/**
 * The message, the exit code and, if known, the fix for any error. The lines of SQL in a message stay, so that it can
 * be copied.
 */
export function stopFor(error: unknown, fixes = FIXES): Stop {
  if (error instanceof Stop) return error
  if (!(error instanceof MarketplaceError)) {
    const message = error instanceof Error ? error.message : String(error)
    return new Stop(FAULT, `An unexpected error: ${oneLine(message)}`, { code: 'unexpected' })
  }
  const exitCode = OF_USAGE.includes(error.code) ? USAGE : UNAVAILABLE
  return new Stop(exitCode, error.message.split(LINE_OF_SQL), { code: error.code, fix: fixes[error.code] })
}

/** The SQL for missing rights that a message contains. Every other end of a line comes from a path or a name in the message. */
const LINE_OF_SQL = /\n(?=(?:create schema|or start the app|grant|alter) )/

/** What a person can do about an error, by its code. */
export const FIXES: Partial<Record<ErrorCode, string>> = {
  store_in_use:
    'The running app uses this SQLite file, and its SQLite library does not allow a second process. Use the console of ' +
    'the app (marketplace-webhooks/console), or for a backup marketplace.backup(path) in the app. Or stop the app, run this ' +
    'command, and start the app again. ' +
    'With SQLite 3.51.3 or newer in the app and here (a current Node 24), both can use the file at once.',
  store_of_another_app:
    'The database belongs to another app: check MARKETPLACE_STORE, MARKETPLACE_CLIENT_ID and MARKETPLACE_BASE_URL.',
  store_unavailable: 'Check MARKETPLACE_STORE, and that the database runs and accepts this user.',
  token_refused:
    'Check that the business has installed the app, and that MARKETPLACE_AUTH_URL is the address of the token endpoint.',
  app_credentials_refused: 'Check MARKETPLACE_CLIENT_ID and MARKETPLACE_CLIENT_SECRET.',
  platform_unreachable:
    'Check MARKETPLACE_BASE_URL and MARKETPLACE_AUTH_URL, and that no firewall, proxy or DNS setting blocks the way.',
  platform_timeout:
    'Try again. If it happens again, check the network between this machine and the platform.',
  platform_failing: 'The platform has an error. Try again later.',
  platform_throttled: 'The platform limits the rate of calls. Try again in a few minutes.',
  platform_redirected:
    'Set MARKETPLACE_BASE_URL and MARKETPLACE_AUTH_URL to the addresses after the redirect.',
  platform_reply_invalid:
    'The reply does not come from the platform: check MARKETPLACE_BASE_URL and MARKETPLACE_AUTH_URL.',
  platform_refused: 'Check MARKETPLACE_BASE_URL, and that the app may make this call.',
  platform_record_missing: 'Check the uid of the subscription, and that it belongs to this business.',
  platform_record_mismatch: 'The subscription belongs to another business: check both uids.',
}
