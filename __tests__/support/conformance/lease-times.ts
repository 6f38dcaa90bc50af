/** A lease longer than any check, and one that expires soon. */
export const LONG = 600_000
export const SHORT = 50
/** Later than the end of any check. */
export const LATER = 3_600_000
