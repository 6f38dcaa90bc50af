import { HOUR, MINUTE } from '../../base/clock.js'
import type { ReadResult } from '../../platform/read-result.js'
import type { Gone } from '../../store/port/store.js'
import type { ReadFacts } from './facts.js'
import { isLastingRefusal } from './schedule.js'

/** What shows that a subscription has ended, beside reads that the platform refuses or answers without the record. */
export type Evidence =
  /**
   * The business uninstalled the app, and a token for it, or a read with one (401, 403), is refused, a minute or longer
   * after another refusal of any kind.
   */
  | 'uninstall'
  /** An event whose own record shows an end, and a refused read. */
  | 'record'
  /**
   * An `update` named it, or its business uninstalled the app, and its reads have been refused for an hour since. When the
   * token is refused, an `update` of any subscription of the business counts.
   */
  | 'update'
  /** Its reads have been refused for `freshness.maxStaleMs`. */
  | 'silence'
  /** The platform answered three times over a minute that it has no such record. */
  | 'missing'
  /** It was never read, and the platform has not shown it for long enough to give it up. */
  | 'never shown'

const UNINSTALLED_FOR_MS = MINUTE
const UNINSTALLED_READS = 2
const UPDATED_FOR_MS = HOUR
/** A record that disappears counts as gone after three reads over a minute. */
export const MISSING_READS = 3
const MISSING_FOR_MS = MINUTE

/** Why the subscription counts as ended, for each kind of evidence. */
export const GONE_BY = {
  uninstall: 'revoked',
  record: 'ended',
  update: 'ended',
  silence: 'ended',
  missing: 'missing',
} as const satisfies Record<Exclude<Evidence, 'never shown'>, Gone>

/**
 * The evidence for an end that this read completes; undefined if there is none, or nothing to end. Whether it is
 * believed depends on the other businesses: see `believe-end.ts`.
 */
export function evidenceOfEnd(read: ReadFacts): Evidence | undefined {
  if (mayEnd(read)) return read.result.kind === 'missing' ? ofMissing(read) : ofRefusal(read)
  const { before, result } = read
  return before.record === null && isNotShown(result) && isNeverShown(read) ? 'never shown' : undefined
}

/**
 * Whether the platform has refused, or no longer shows, a subscription that it has shown. The end of a canceled one is no
 * news, unless it gives access by the app's rule.
 */
export function mayEnd({ before, result }: ReadFacts): boolean {
  const isOver = before.state === 'canceled' && !before.entitles
  return before.gone === null && before.record !== null && !isOver && isNotShown(result)
}

/** Whether the platform has answered, and not shown the subscription. */
export function isNotShown({ kind }: ReadResult): boolean {
  return kind === 'missing' || kind === 'refused' || kind === 'token_refused'
}

function ofMissing({ progress, env: { now } }: ReadFacts): Evidence | undefined {
  const { missing, missingSince } = progress
  const isLong = now - (missingSince ?? now) >= MISSING_FOR_MS
  return missing + 1 >= MISSING_READS && isLong ? 'missing' : undefined
}

function ofRefusal(read: ReadFacts): Evidence | undefined {
  const { claim, progress, env } = read
  const { uninstalledAt, endAt } = claim
  const refusedForMs = env.now - (progress.refusedSince ?? env.now)
  const failingForMs = failingMs(read)
  const isTokenRefused =
    read.result.kind === 'token_refused' ||
    (read.result.kind === 'refused' && 'status' in read.result && isAuthorization(read.result.status))
  const isTwice = progress.refusals + 1 >= UNINSTALLED_READS && refusedForMs >= UNINSTALLED_FOR_MS
  if (uninstalledAt !== null && isTokenRefused && isTwice) return 'uninstall'
  if (endAt !== null) return 'record'
  const changedAt = changedAtOf(read)
  if (changedAt !== null && Math.min(failingForMs, env.now - changedAt) >= UPDATED_FOR_MS) return 'update'
  return failingForMs >= env.maxStaleMs ? 'silence' : undefined
}

/** When an event said that something has changed. A token is the whole business's, so then any of its updates counts. */
function changedAtOf({ claim, result }: ReadFacts): number | null {
  const { updateAt, businessUpdateAt, uninstalledAt } = claim
  return updateAt ?? (result.kind === 'token_refused' ? businessUpdateAt : null) ?? uninstalledAt
}

const isAuthorization = (status: number | undefined) => status === 401 || status === 403

/** For how long the reads of a known subscription have failed, without an end. */
export function failingMs({ claim, env }: Pick<ReadFacts, 'claim' | 'env'>): number {
  return Math.max(0, env.now - (claim.failingSince ?? env.now))
}

function isNeverShown({ progress, env: { now } }: ReadFacts): boolean {
  const { refusals, refusedSince } = progress
  return isLastingRefusal(refusals + 1, now - (refusedSince ?? now))
}

/** When the next refusal would complete some evidence: a read is due then, so that the end is found in time. */
export function evidenceInMs(read: ReadFacts): number {
  const { claim, progress, env } = read
  const { uninstalledAt } = claim
  const changedAt = changedAtOf(read)
  const failing = failingMs(read)
  const dues = [
    env.maxStaleMs - failing,
    ...(uninstalledAt === null ? [] : [UNINSTALLED_FOR_MS - (env.now - (progress.refusedSince ?? env.now))]),
    ...(changedAt === null ? [] : [UPDATED_FOR_MS - Math.min(failing, env.now - changedAt)]),
  ]
  return Math.min(...dues.map((ms) => (ms > 0 ? ms : Number.POSITIVE_INFINITY)))
}
