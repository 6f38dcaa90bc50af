import { types } from 'node:util'
import { type Clock, DAY } from '../base/clock.js'
import { thrownText } from '../base/errors.js'
import { type HealthProblem, problemOf } from '../base/health.js'
import type { SubscriptionRecord } from '../base/record.js'

/** The answer of `entitledWhen` about a record, or why it gave none. */
export type RuleAnswer = boolean | { failure: string }

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
  entitledWhen(record: SubscriptionRecord): unknown
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
    answer(record: SubscriptionRecord): RuleAnswer {
      let answer: unknown
      try {
        answer = entitledWhen(record)
      } catch (error) {
        const failure = `threw ${thrownText(error, MAX_TEXT)}`
        return failed({ kind: 'threw', failure, thrown: error, record })
      }
      if (typeof answer === 'boolean') {
        if (failures.size > 0) failures.delete(record.uid)
        return answer
      }
      if (types.isPromise(answer)) {
        // A promise that the rule returns may reject, which must not end the process.
        Promise.resolve(answer).catch(() => {})
        return failed({ kind: 'promise', failure: 'returned a promise, but it must answer at once', record })
      }
      const what =
        answer === null ? 'null' : answer === undefined ? 'nothing' : `a value of type ${typeof answer}`
      return failed({ kind: 'value', failure: `returned ${what}, not true or false`, record })
    },

    /** Whether a record gives access; undefined when the rule fails. */
    access(record: SubscriptionRecord): boolean | undefined {
      const answer = rule.answer(record)
      return typeof answer === 'boolean' ? answer : undefined
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

/** Faults of the option: a rule that cannot answer at once, as far as its class shows it. */
export function ruleFaults(rule: unknown): string[] {
  const name = (rule as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && /^Async|Generator/.test(name)
    ? ['expected a function that returns true or false at once, not an async function or a generator']
    : []
}
