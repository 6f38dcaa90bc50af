/** The kinds of token of the interface document, Authentication. */
export const TOKEN_KINDS = ['app', 'business', 'directory'] as const
export type TokenKind = (typeof TOKEN_KINDS)[number]
