/** The kinds of token of the interface document, Authentication. */
export const TOKEN_KINDS = ['app', 'business', 'directory'] as const
/** Whose token it is: `app` for an app in a business, `business`, or `directory`. */
export type TokenKind = (typeof TOKEN_KINDS)[number]
