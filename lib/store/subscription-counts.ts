/** The most that is counted: no count reads more rows of an index. SQLite counts as many in a quarter of a millisecond. */
export const COUNTED_UP_TO = 10_000

/** Each number is counted up to `COUNTED_UP_TO`. */
export interface SubscriptionCounts {
  /** All subscriptions, up to 1,000. */
  subscriptions: number
  /** Those whose requested read the platform has not answered yet. */
  requested: number
  /** The age of the oldest unanswered request; null when there is none. */
  oldestRequestMs: number | null
  /** How long the longest due read has been due, regular ones included; null when none is due. */
  oldestOverdueMs: number | null
  /** Those that are not read any more. */
  givenUp: number
  /** Of those given up, the ones that were read before. */
  knownGivenUp: number
  /** Those that are put off because their reads have ended the process `MAX_LAPSES` times or more. */
  lapsed: number
  /**
   * Businesses with a subscription that was read before and is neither gone nor canceled: the refused ones, and as many of
   * the others as there are, up to 1,000 or to `refused`. While there are none: businesses of the newest subscriptions
   * that were never read and that the platform has answered.
   */
  active: number
  /** Of the active ones, those whose reads the platform refuses or answers without their record. */
  refused: number
  /** Of the refused ones, those whose last read was answered without their record. */
  hidden: number
  /** Of the refused ones, those to which the platform last refused a token. */
  withoutToken: number
  /** Of the refused ones, those whose end was announced not long ago, and whose end is awaited. */
  leaving: number
  /** Of the refused ones, those that do not leave and whose reads began to fail within the last ten minutes. */
  refusedLately: number
  /** Businesses that the platform has shown since the first of those began to fail. */
  servedMeanwhile: number
  /** Of the active ones, those with a subscription that no read has confirmed for `maxStaleMs`. */
  stale: number
  /** Those with one that a read has confirmed since, not many more than 1,000; 0 while none is stale. */
  confirmed: number
}
