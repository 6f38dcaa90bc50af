/** The subscriptions of other businesses that are read at once. */
export type ReadOthers =
  /**
   * Active ones without a failed read or an announced end that were not read for this long, the longest unread ones
   * first, to find out whether the platform still shows them. Those would be read next anyway, and are no selection of
   * those that are well.
   */
  | { which: 'served'; unreadForMs: number; limit: number }
  /**
   * Those whose reads fail, or that ended within the last days without an event, because the platform shows the
   * subscription of the claim again: due at once, or `pauseMs` after their last read. If an event has named one
   * meanwhile, it is due a minute later, because whether it has ended shows when the others are served again. So are
   * those that were never read, are not shown and are `verifying`. They come last, the newest request first, because
   * anybody who knows the delivery secret can add such rows; of very many only the newest may be considered.
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
  /** Active ones whose end is not announced, and that were not read since: up to 20. */
  unread: number
  /**
   * What the last day shows beside that, because regular reads find one after the other: businesses that began to fail
   * without any event, itself included, and those served since the first of them. Both are 0 if an event announced the
   * end.
   */
  lately: { failing: number; served: number }
  /**
   * Whether any other business has a subscription that is neither gone nor canceled, and whose end is not announced.
   */
  exist: boolean
}
