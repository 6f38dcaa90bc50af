/** One event of a delivery: the parsed value, and its JSON text. */
export interface Envelope {
  value: unknown
  /**
   * The text as it was sent, without a byte order mark; null for an element of an array, or when an earlier middleware
   * parsed it.
   */
  text: string | null
}

/** The result of accepting one envelope. */
export interface Receipt {
  /** The id of its journal entry. */
  id: string
  /** Why the envelope was not recognised, one sentence each; null when it was. */
  issues: readonly string[] | null
}

/** The kinds of token of the interface document, Authentication. */
export const TOKEN_KINDS = ['app', 'business', 'directory'] as const
/** Whose token it is: `app` for an app in a business, `business`, or `directory`. */
export type TokenKind = (typeof TOKEN_KINDS)[number]
