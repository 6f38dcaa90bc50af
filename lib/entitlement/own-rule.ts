import { types } from 'node:util'
import { type Clock, DAY } from '../base/clock.js'
import { thrownText } from '../base/errors.js'
import { type HealthProblem, problemOf } from '../base/health.js'
import type { SubscriptionRecord } from '../base/record.js'

/**
 * The option `entitledWhen`: which records let a business in. It answers at once, for the time `now` (milliseconds, as of
 * `Date.now()`). `until` says when its answer ends, in any form that `new Date` takes: a number is milliseconds. Then access
 * ends, and the rule is asked again. Without it the answer holds until the record changes. Each end makes a read, so give the end itself: one that
 * moves with `now` makes a read each time it comes.
 *
 * @example
 * const trial: EntitledWhen = ({ purchase_state, created_at }) =>
 *   purchase_state === 'purchased' && { entitled: true, until: Date.parse(String(created_at)) + 14 * 86_400_000 }
 */
export type EntitledWhen = (
  record: SubscriptionRecord,
  at: {
    /** The time of the question, in milliseconds, as of `Date.now()`. */
    now: number
  },
) => boolean | RuleAnswerUntil

/** An answer that may have an end. */
interface RuleAnswerUntil {
  /** Whether the record gives access. */
  entitled: boolean
  /** When this answer ends: a `Date`, a text that `new Date` takes, or milliseconds. */
  until?: Date | string | number | null | undefined
}

/** The answer of `entitledWhen` about a record, or why it gave none. */
export type RuleAnswer = Answer | { failure: string }

/**
 * `until`: when the answer ends, in milliseconds; null while only a change of the record ends it. `endedAt`: when access has
 * ended by the `until` of the rule.
 */
interface Answer {
  entitled: boolean
  until: number | null
  endedAt?: number
}

const OPEN: Answer = { entitled: true, until: null }
/** The answer of no access. */
export const CLOSED: Answer = { entitled: false, until: null }

/** A call of `entitledWhen` that gave no answer. */
export interface RuleFailure {
  kind: 'threw' | 'promise' | 'value'
  /** What it did instead, as the end of a sentence. */
  failure: string
  /** What it threw. */
  thrown?: unknown
  record: SubscriptionRecord
}

/** The most subscriptions that are counted, and the longest text of an error. */
const MAX_COUNTED = 1_000
const MAX_TEXT = 200

/**
 * Calls the app's own rule. A rule that throws, or returns anything but true or false, gives no answer: access is denied,
 * and the reason is the mistake, not the customer.
 */
export function createOwnRule(options: {
  entitledWhen(record: SubscriptionRecord, at: { now: number }): unknown
  onFailure?(failed: RuleFailure): void
  clock: Clock
}) {
  const { entitledWhen, onFailure = () => {}, clock } = options
  /** When the rule last failed, by subscription. An entry ends when the rule answers for it, or after a day. */
  const failures = new Map<string, { at: number; failure: string }>()

  function failed(failed: RuleFailure): RuleAnswer {
    const { failure, record } = failed
    const { uid } = record
    failures.delete(uid)
    if (failures.size < MAX_COUNTED) failures.set(uid, { at: clock.monotonic(), failure })
    onFailure(failed)
    return { failure }
  }

  const rule = {
    answer(record: SubscriptionRecord, now: number): RuleAnswer {
      let answer: unknown
      let read: Answer | undefined
      try {
        answer = entitledWhen(record, { now })
        // Not only the rule may throw: `until` may be a value that no date can be made of, or a getter.
        read = typeof answer === 'boolean' ? (answer ? OPEN : CLOSED) : answerIn(answer, now)
      } catch (error) {
        const failure = `threw ${thrownText(error, MAX_TEXT)}`
        return failed({ kind: 'threw', failure, thrown: error, record })
      }
      if (read !== undefined) {
        if (failures.size > 0) failures.delete(record.uid)
        return read
      }
      if (types.isPromise(answer)) {
        // A promise that the rule returns may reject, which must not end the process.
        Promise.resolve(answer).catch(() => {})
        return failed({ kind: 'promise', failure: 'returned a promise, but it must answer at once', record })
      }
      return failed({ kind: 'value', failure: `returned ${describe(answer)}`, record })
    },

    /** Whether a record gives access now; undefined when the rule fails. */
    access(record: SubscriptionRecord): boolean | undefined {
      const answer = rule.answer(record, clock.now())
      return 'failure' in answer ? undefined : answer.entitled
    },

    /** The problem of the rule, while it fails. */
    problems(): HealthProblem[] {
      const from = clock.monotonic() - DAY
      for (const [uid, { at }] of failures) if (at < from) failures.delete(uid)
      const last = [...failures.values()].at(-1)
      if (!last) return []
      const count = failures.size === 1 ? '1 subscription' : `${failures.size} subscriptions`
      return [
        problemOf(
          'entitled_when_failed',
          `entitledWhen fails for ${count}, so access is denied: it ${last.failure}`,
        ),
      ]
    },
  }
  return rule
}

/** The answer with an end; undefined for any other value. Access whose end has passed is none. */
function answerIn(answer: unknown, now: number): Answer | undefined {
  if (typeof answer !== 'object' || answer === null || !('entitled' in answer)) return undefined
  const { entitled, until: given = null } = answer as {
    entitled: unknown
    until?: Date | string | number | null
  }
  if (typeof entitled !== 'boolean') return undefined
  const until = given === null ? null : new Date(given).getTime()
  if (Number.isNaN(until) || isInSeconds(given)) return undefined
  if (until === null || until > now) return { entitled, until }
  return entitled ? { ...CLOSED, endedAt: until } : CLOSED
}

/** Whether a number is a time in seconds: from 2001 on. In milliseconds it would lie before March 1973. */
function isInSeconds(until: unknown): boolean {
  return typeof until === 'number' && until >= 1e9 && until < 1e11
}

function describe(answer: unknown): string {
  if (answer === null) return 'null, not true or false'
  if (answer === undefined) return 'nothing, not true or false'
  if (typeof answer !== 'object' || !('entitled' in answer))
    return `a value of type ${typeof answer}, not true or false`
  if (typeof answer.entitled !== 'boolean') return 'an `entitled` that is neither true nor false'
  return 'until' in answer && isInSeconds(answer.until)
    ? 'an `until` in seconds, not in milliseconds'
    : 'an `until` that is no date'
}

/** Faults of the option: a rule that cannot answer at once, as far as its class shows it. */
export function ruleFaults(rule: unknown): string[] {
  const name = (rule as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && /^Async|Generator/.test(name)
    ? ['expected a function that returns true or false at once, not an async function or a generator']
    : []
}
