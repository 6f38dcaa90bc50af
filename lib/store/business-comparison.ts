/** The subscriptions of other businesses that are read at once. */
export type ReadOthers =
  /**
   * Active ones without a failing read or an announced end, the last confirmed ones first, to find out whether the
   * platform still shows them. Those read within the last minute and since the reads of the claim began to fail, `failingMs` ago,
   * are left out.
   */
  | { which: 'served'; failingMs: number; limit: number }
  /**
   * Those whose reads fail, because the platform shows the subscription of the claim again: due at once, or `pauseMs`
   * after their last read. If an event has named one meanwhile, it is due a minute later, because whether it has ended
   * shows when the others are served again.
   */
  | { which: 'failing'; pauseMs: number; limit: number }

/** The businesses of a store, compared with one whose reads fail. Each number is counted up to 1,000. */
export interface OtherBusinesses {
  /** Businesses whose reads began to fail with this one's or later, itself included. */
  failing: number
  /** Other businesses whose record was found since, and whose reads do not fail. */
  served: number
  /** Of those, the ones that failed, and have been shown again for less than half of that time or ten minutes. */
  recovered: number
  /** Whether one of those was shown by every read, since before this one's reads began to fail. */
  isSteady: boolean
  /** Whether any other business has a subscription that is neither gone nor canceled, and whose end is not announced. */
  exist: boolean
}
