import { type Clock, DAY, HOUR, MINUTE } from '../../base/clock.js'
import { ERROR_CODES, type ErrorCode } from '../../base/errors.js'
import { type HealthProblem, isMost, type ProblemCode, problemOf } from '../../base/health.js'

/** How many replies are remembered, at least; at most twice as many. */
const REMEMBERED = 20
/** Replies of the last minute are judged, and at least this many, so that apps with few deliveries are judged too. */
const AT_LEAST = 5
/** Refusals of a week count, because an app may get one delivery a day. */
const OLDEST_MS = 7 * DAY
/** A single refusal may be chance. A purchase causes two deliveries. */
const FEWEST = 2
/** A store may have recovered meanwhile, so its refusals count for a shorter time than those of the app's configuration. */
const OLDEST_OF_STORE_MS = HOUR
/** A person who opens the address in a browser gets 405, so these count for a shorter time too. */
const OLDEST_OF_METHOD_MS = HOUR
/** Deliveries with a right secret within this time show that the address is right; then wrong secrets are noise. */
const RIGHT_FOR_MS = HOUR
const MANY = 3
/** How long failed deliveries take the instance out of rotation. Then the next ones show whether it works again. */
const FAILING_MS = 2 * MINUTE

interface Reply {
  outcome: string
  /** The problem that this outcome is a sign of; undefined for an accepted delivery. */
  code: ProblemCode | undefined
  at: number
}

/**
 * Judges what the senders of deliveries got. It is a problem when most of the last ones were refused, with a code for each
 * kind of refusal; see docs/decisions/judging-replies.md.
 */
export function createDeliveryReplies(clock: Pick<Clock, 'monotonic'>) {
  /** To requests with a right secret, oldest first. */
  let replies: Reply[] = []
  let rightAt = Number.NEGATIVE_INFINITY
  /** The times of requests with a wrong secret since the last request with a right one, oldest first. */
  let wrongAt: number[] = []
  /** Whether most were refused when last asked. */
  let wereRefused = false
  let hasStoreProblem = false
  let storeRecoveredAt = Number.NEGATIVE_INFINITY

  /** The replies that are judged, if most of them are refusals, or were and no end shows; else empty. */
  function mostlyRefused(): Reply[] {
    const now = clock.monotonic()
    const hasRecovered = replies.length >= 2 && replies.slice(-2).every(({ code }) => code === undefined)
    const counts = ({ at, code }: Reply) => {
      if (code === 'deliveries_not_accepted') return !hasRecovered && now - at < OLDEST_OF_STORE_MS
      return now - at < (code === 'methods_not_allowed' ? OLDEST_OF_METHOD_MS : OLDEST_MS)
    }
    const last = replies.filter(counts)
    const newest = last.slice(-AT_LEAST)
    const lately = last.filter(({ at }) => now - at < MINUTE)
    const judged = lately.length > newest.length ? lately : newest
    const isAnyRefused = judged.some(({ code }) => code !== undefined)
    wereRefused =
      (areMostRefused(newest) && areMostRefused(judged)) || (wereRefused && isAnyRefused && !hasRecovered)
    return wereRefused ? judged : []
  }

  function problemsOfRefusals(): HealthProblem[] {
    const judged = mostlyRefused()
    const codes = new Set(judged.flatMap(({ code }) => code ?? []))
    return [...codes].map((code) => {
      const ofCode = judged.filter((reply) => reply.code === code)
      const outcomes = [...new Set(ofCode.map(({ outcome }) => replyOf(outcome)))].join(', ')
      const message = `${ofCode.length} of the last ${judged.length} deliveries got ${outcomes}`
      return problemOf(isFailing(ofCode) ? 'deliveries_failing' : code, message)
    })
  }

  /** Whether the store of this instance refused several since it last recovered, and did so lately. */
  function isFailing(ofCode: readonly Reply[]): boolean {
    const since = ofCode.filter(({ at }) => at >= storeRecoveredAt)
    const last = since.at(-1)
    return (
      last?.code === 'deliveries_not_accepted' &&
      since.length >= MANY &&
      clock.monotonic() - last.at < FAILING_MS
    )
  }

  function problemsOfSecrets(): HealthProblem[] {
    const now = clock.monotonic()
    const wrong = wrongAt.filter((at) => now - at < OLDEST_MS).length
    if (wrong < FEWEST || now - rightAt < RIGHT_FOR_MS) return []
    return [problemOf('secrets_wrong', `the last ${wrong} deliveries had a wrong secret and got 404`)]
  }

  return {
    /** `isDelivery`: whether a request with a wrong secret looks like a delivery. */
    note(outcome: string, isDelivery: boolean) {
      const at = clock.monotonic()
      if (outcome === 'secret_wrong') {
        if (!isDelivery) return
        wrongAt = newest(wrongAt, at)
        return
      }
      rightAt = at
      wrongAt = []
      replies = newest(replies, { outcome, code: PROBLEM_OF_OUTCOME[outcome], at })
    },

    /** What the store last reported about itself: null or undefined when it works. */
    storeProblem(problem: string | null | undefined) {
      const hasProblem = problem !== null && problem !== undefined
      if (hasStoreProblem && !hasProblem) storeRecoveredAt = clock.monotonic()
      hasStoreProblem = hasProblem
    },

    problems: (): HealthProblem[] => [...problemsOfRefusals(), ...problemsOfSecrets()],
  }
}

export type DeliveryReplies = ReturnType<typeof createDeliveryReplies>

/** Adds one, and forgets the oldest ones now and then. */
function newest<T>(list: T[], added: T): T[] {
  list.push(added)
  return list.length < 2 * REMEMBERED ? list : list.slice(-REMEMBERED)
}

/** Two or more of which all are refused; or at least three, and more than half. */
function areMostRefused(replies: readonly Reply[]): boolean {
  const refused = replies.filter(({ code }) => code !== undefined).length
  return refused >= FEWEST && isMost(refused, replies.length)
}

/** The status and the code that the sender got. */
function replyOf(outcome: string): string {
  const code = outcome === 'verification_failed' ? 'delivery_not_accepted' : (outcome as ErrorCode)
  return `${ERROR_CODES[code].status} ${code}`
}

/** The problem that each refusal is a sign of. */
const PROBLEM_OF_OUTCOME: Readonly<Record<string, ProblemCode>> = {
  delivery_not_accepted: 'deliveries_not_accepted',
  verification_failed: 'verification_failing',
  delivery_refused: 'deliveries_refused',
  body_already_read: 'bodies_already_read',
  body_too_large: 'bodies_too_large',
  content_type_unsupported: 'content_types_unsupported',
  body_encoding_unsupported: 'content_types_unsupported',
  body_not_json: 'bodies_not_json',
  body_not_utf8: 'bodies_not_json',
  body_encoding_broken: 'bodies_not_json',
  body_incomplete: 'bodies_incomplete',
  body_timeout: 'bodies_incomplete',
  method_not_allowed: 'methods_not_allowed',
}
