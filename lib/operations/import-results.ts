import type { Subscription } from '../store/store.js'

/**
 * What became of a line. `read`: the platform has shown the subscription for this business, now or before. `missing`:
 * the platform does not show it. `refused`: the platform refuses to show it, or shows it for another business. `invalid`:
 * not two identifiers. `pending`: its read was not answered before the import ended.
 */
export type ImportResult = 'read' | 'missing' | 'refused' | 'invalid' | 'pending'

/** A line of an import with its result. */
export interface ImportLine {
  /** The first line is 1. */
  line: number
  /** As given; null where the line has none that can be an identifier. */
  subscription_uid: string | null
  business_uid: string | null
  result: ImportResult
  /** Why it is not `read`, in words; null when it is. */
  why: string | null
}

/** How many lines have which result, until now. */
export interface ImportProgress {
  /** Lines that have a result. */
  done: number
  /** How many lines there are, for an array or a set. */
  total?: number
  read: number
  missing: number
  refused: number
  invalid: number
  pending: number
}

/** How an import ended. */
export interface ImportSummary extends ImportProgress {
  /** `unanswered`: no read was answered for `answerTimeoutMs`, so no further lines were taken. */
  ended: 'complete' | 'aborted' | 'unanswered'
  /** How it ended and what to do now, in words. */
  explanation: string
  /** The first 1,000 lines that are not `read`. */
  notRead: ImportLine[]
}

/** The answer for a line whose read was asked for, as far as the row of its subscription has it. */
export function resultOf(
  { record, gone, businessUid, pending, failure }: Subscription,
  wantedBusinessUid: string,
): { result: ImportResult; why: string | null } | undefined {
  const isRead = record !== null && gone === null
  if (isRead && businessUid === wantedBusinessUid) return { result: 'read', why: null }
  if (failure === null ? pending : !(failure in ANSWERS)) return undefined
  if (failure !== null) return ANSWERS[failure as keyof typeof ANSWERS]
  if (gone === 'missing') return ANSWERS.platform_record_missing
  if (gone === 'revoked') return ANSWERS.token_refused
  return isRead ? OF_ANOTHER_BUSINESS : undefined
}

/** Failures that are the platform's answer; after any other one the read is tried again by itself. */
const ANSWERS = {
  platform_record_missing: {
    result: 'missing',
    why: 'platform_record_missing: the platform does not show this subscription for this business',
  },
  platform_refused: {
    result: 'refused',
    why: 'platform_refused: the platform refuses to show this subscription to the app',
  },
  platform_record_mismatch: {
    result: 'refused',
    why: 'platform_record_mismatch: the platform shows another subscription, or this one for another business',
  },
  token_refused: {
    result: 'refused',
    why: 'token_refused: the platform gives the app no token for this business: has it installed the app?',
  },
} as const

const OF_ANOTHER_BUSINESS = {
  result: 'refused',
  why: 'the platform shows this subscription for another business',
} as const

/** Counts results as they come, and keeps the first lines that are not read. */
export function createTally(total: number | undefined) {
  const counts = { done: 0, read: 0, missing: 0, refused: 0, invalid: 0, pending: 0 }
  const notRead: ImportLine[] = []
  const progress = (): ImportProgress => ({ ...counts, ...(total === undefined ? {} : { total }) })

  return {
    add(line: ImportLine): ImportProgress {
      counts.done++
      counts[line.result]++
      if (line.result !== 'read' && notRead.length < MOST_NAMED) notRead.push(line)
      return progress()
    },
    summary(ended: ImportSummary['ended'], waitedMs: number): ImportSummary {
      const { done, pending } = counts
      return {
        ...progress(),
        ended,
        explanation: EXPLANATIONS[ended](done, pending, waitedMs / 1_000),
        notRead,
      }
    },
  }
}

const MOST_NAMED = 1_000

const AGAIN = 'Run it again with the same lines: what is read is skipped.'
const EXPLANATIONS = {
  complete: (done: number, pending: number) =>
    pending === 0
      ? `All ${done} lines were answered.`
      : `All ${done} lines were taken, and the reads of ${pending} go on failing: a worker tries them again. ${AGAIN}`,
  aborted: (done: number, pending: number) =>
    `Aborted after ${done} lines, of which ${pending} are pending. ${AGAIN}`,
  unanswered: (_done: number, pending: number, waitedS: number) =>
    `No read was answered for ${waitedS} s, so no further lines were taken, and ${pending} are pending: does a worker run, and is the platform up? See health(). ${AGAIN}`,
} as const
