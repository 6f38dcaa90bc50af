/**
 * One event of a delivery: its JSON text, and the value of that text. A value may take thirty times the memory of its text, so
 * only the text is kept while anything is awaited.
 */
export interface Envelope {
  value: unknown
  /**
   * The text as it was sent, without a byte order mark; of an element of an array, or of what an earlier middleware parsed,
   * `JSON.stringify` of its value.
   */
  text: string
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
