import type { Decision } from '../entitlement/decide.js'
import type { ItemOptions } from '../entitlement/items.js'

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
   * The same answer with its reason, evidence and age. Never rejects.
   *
   * @example
   * const { entitled, reason, explanation } = await marketplace.explain('business-1')
   */
  explain(businessUid: string | number, options?: ItemOptions): Promise<Decision>
}
