import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Person } from './roles.js'

/** A token is valid for one to two windows. Then an open page fetches a new one. */
const WINDOW_MS = 12 * 3_600_000

/**
 * Tokens for actions. A token is bound to a time and to the name and role of the person, so nobody else can use it. `key`
 * must be the same in all instances behind one address. Without it, each process generates its own key.
 */
export function createActionTokens(options: { key: string | undefined; now?: () => number }) {
  const { key, now = Date.now } = options
  const secret = key ?? randomBytes(32)

  function tokenAt({ name, role }: Person, window: number): string {
    return createHmac('sha256', secret)
      .update(JSON.stringify(['console', name, role, window]))
      .digest('base64url')
  }
  const currentWindow = () => Math.floor(now() / WINDOW_MS)

  return {
    tokenFor: (person: Person): string => tokenAt(person, currentWindow()),

    isValid(person: Person, token: unknown): boolean {
      if (typeof token !== 'string') return false
      const given = Buffer.from(token)
      return [currentWindow(), currentWindow() - 1].some((window) => {
        const expected = Buffer.from(tokenAt(person, window))
        return expected.length === given.length && timingSafeEqual(expected, given)
      })
    },
  }
}
