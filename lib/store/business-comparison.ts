/** The businesses of a store, compared with one whose reads fail. Each number is counted up to 1,000. */
export interface OtherBusinesses {
  /** Businesses whose reads began to fail with this one's or later, itself included. */
  failing: number
  /** Other businesses whose record was found since, and whose reads do not fail. */
  served: number
  /** Of those, the ones that failed meanwhile, and have been shown again for less than half of that time. */
  recovered: number
  /** Whether one of those was shown by every read, since before this one's reads began to fail. */
  isSteady: boolean
  /** Whether any other business has a subscription that is neither gone nor canceled, and whose end is not announced. */
  exist: boolean
}
