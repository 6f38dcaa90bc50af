import type { Subscription } from '../../store/port/store.js'

/**
 * The result of a line. `read`: the platform showed the subscription for this business, now or earlier. `missing`: the
 * platform does not show it. `refused`: the platform refuses to show it, or shows it for another business. `invalid`: the
 * line does not have two identifiers. `pending`: the import ended before the read was answered.
 */
export type ImportResult = 'read' | 'missing' | 'refused' | 'invalid' | 'pending'

/** A line of an import with its result. `import` takes such lines again, to retry them. */
export interface ImportLine {
  /** The first line is 1. */
  line: number
  /** As given; null if the line has no valid one, which only an `invalid` line can have. */
  subscriptionUid: string | null
  businessUid: string | null
  result: ImportResult
  /** Why the line is not `read`, as a phrase; null when it is. */
  why: string | null
}

/** How many lines have which result, until now. */
export interface ImportProgress {
  /** Number of lines with a result. */
  done: number
  /** Number of all lines, for an array or a set. */
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
  /** How the import ended and what to do next, in sentences. */
  explanation: string
  /** The first 1,000 lines that are not `read`. */
  notRead: ImportLine[]
}

/** The result of a line from the row of its subscription; undefined while the platform has not answered. */
export function resultOf(
  { record, gone, businessUid, pending, failure }: Subscription,
  givenBusinessUid: string,
): { result: ImportResult; why: string | null } | undefined {
  const isRead = record !== null && gone === null
  if (isRead && businessUid === givenBusinessUid) return { result: 'read', why: null }
  if (failure === null ? pending : !(failure in ANSWERS)) return undefined
  if (failure !== null) return ANSWERS[failure as keyof typeof ANSWERS]
  if (gone === 'missing') return ANSWERS.platform_record_missing
  if (gone !== null) return ANSWERS.token_refused
  return isRead ? OF_ANOTHER_BUSINESS : undefined
}

/** Failures that are an answer of the platform. After any other failure a worker tries the read again. */
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
    why: 'token_refused: the platform refuses the app a token for this business; check that it has installed the app',
  },
} as const

const OF_ANOTHER_BUSINESS = {
  result: 'refused',
  why: 'the platform shows this subscription for another business',
} as const

/** Counts the results and collects the first lines that are not read. */
export function createResultCounts(total: number | undefined) {
  const counts = { done: 0, read: 0, missing: 0, refused: 0, invalid: 0, pending: 0 }
  const notRead: ImportLine[] = []
  const progress = (): ImportProgress => ({ ...counts, ...(total === undefined ? {} : { total }) })

  return {
    add(line: ImportLine): ImportProgress {
      counts.done++
      counts[line.result]++
      if (line.result !== 'read' && notRead.length < MAX_NAMED) notRead.push(line)
      return progress()
    },
    summary(ended: ImportSummary['ended'], waitedMs: number): ImportSummary {
      const { done, read, pending } = counts
      const [first] = notRead
      const explanation =
        ended === 'complete' && read === 0 && pending === 0 && first
          ? `None of the ${done} lines was read. Why the first was not: ${first.why}. ${NEXT_STEPS[first.result]}`
          : EXPLANATIONS[ended](done, pending, waitedMs / 1_000)
      return { ...progress(), ended, explanation, notRead }
    },
  }
}

const MAX_NAMED = 1_000

/** What to do when no line was read, by the result of the first. */
const NEXT_STEPS: Record<ImportResult, string> = {
  read: '',
  missing:
    'Compare the uids with those of the platform, and check that platform.baseUrl is the right platform.',
  refused: 'Check app.clientId, that the businesses have installed the app, and which uid is whose.',
  invalid: 'Each line must be { subscriptionUid, businessUid }.',
  pending: '',
}

const AGAIN = 'Run it again with the same lines: it skips lines that are already read.'
const EXPLANATIONS = {
  complete: (done: number, pending: number) =>
    pending === 0
      ? `All ${done} lines have a result.`
      : `All ${done} lines were taken. The reads of ${pending} still fail, and a worker tries them again. ${AGAIN}`,
  aborted: (done: number, pending: number) =>
    `The import was aborted after ${done} lines, of which ${pending} are pending. ${AGAIN}`,
  unanswered: (_done: number, pending: number, waitedS: number) =>
    `No read was answered for ${waitedS} s, so the import stopped with ${pending} lines pending. Check with health() that a worker runs and the platform answers. ${AGAIN}`,
} as const
