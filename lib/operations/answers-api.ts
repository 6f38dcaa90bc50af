import type { Decision } from '../entitlement/decide.js'
import type { ItemOptions } from '../entitlement/items.js'

/**
 * Which answer to explain.
 *
 * @example await marketplace.explain('business-1', { at: '2026-03-01T09:00:00Z' })
 */
export interface ExplainOptions extends ItemOptions {
  /** The answer at this time, by today's rules: a `Date`, or ISO 8601 with an offset or `Z`. */
  at?: Date | string
}

/** The answers of the gate. */
export interface AnswersApi {
  /**
   * Whether the business may use the app now. Never rejects. An uncertain answer is false.
   *
   * Never use it without `await`: the promise itself is always true, so everybody would get in. The lint rule
   * `@typescript-eslint/no-misused-promises` reports it.
   *
   * @example
   * if (await marketplace.isEntitled(business_uid, { purchasableUid: ['pro', 'team'] })) showReports()
   */
  isEntitled(businessUid: string | number, options?: ItemOptions): Promise<boolean>
  /**
   * The answer of `isEntitled` without a promise, for code that runs very often; undefined when no fresh answer is in
   * memory. Never throws and starts no lookup: `isEntitled` does that.
   *
   * @example
   * const entitled = marketplace.peek(business_uid) ?? (await marketplace.isEntitled(business_uid))
   */
  peek(businessUid: string | number, options?: ItemOptions): boolean | undefined
  /**
   * The same answer with its reason, evidence and age. Never rejects.
   *
   * With `at`, the answer at that time, by today's rules, from the changes in the journal: `restsOn` names them. If the
   * journal has no record of that time, the reason is `not_recorded`, and `known` is false. With `at` it may reject:
   * `argument_invalid`, `store_unavailable` or `closed`.
   *
   * @example
   * const { entitled, explanation, restsOn } = await marketplace.explain('business-1', { at: '2026-03-01T09:00:00Z' })
   */
  explain(businessUid: string | number, options?: ExplainOptions): Promise<Decision>
}
