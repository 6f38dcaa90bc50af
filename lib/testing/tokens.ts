import type { Clock } from '../clock.js'
import type { TokenKind } from '../token-kinds.js'
import { hexDigits } from './random.js'

/** A token known to the platform. `businessUid` is null for a directory token. */
export interface Token {
  kind: TokenKind
  businessUid: string | null
  expiresAt: number | null
}

/** The platform's tokens: opaque strings drawn from the seed. They expire after their lifetime, or all at once. */
export interface Tokens {
  issue(kind: TokenKind, businessUid: string | null): string
  /** The token of an Authorization header; undefined when it is missing, unknown or expired. */
  find(authorization: string | undefined): Token | undefined
  expireAll(): void
}

export function createTokens(options: {
  clock: Clock
  random: () => number
  lifetimeMs: () => number | undefined
}): Tokens {
  const { clock, random, lifetimeMs } = options
  const tokens = new Map<string, Token>()
  return {
    issue(kind, businessUid) {
      const value = `${kind}-${hexDigits(random, 40)}`
      const ms = lifetimeMs()
      tokens.set(value, { kind, businessUid, expiresAt: ms === undefined ? null : clock.now() + ms })
      return value
    },
    find(authorization) {
      const value = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1] ?? ''
      const token = tokens.get(value)
      if (token?.expiresAt == null || clock.now() < token.expiresAt) return token
      tokens.delete(value)
      return undefined
    },
    expireAll: () => tokens.clear(),
  }
}
