import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { CALLS, type CallName } from '../protocol/calls.js'
import { mayDo, type Person } from '../protocol/roles.js'
import { Refusal } from './http.js'
import { isFromOwnPage } from './origin.js'

/** Returns a function that checks a call of the page before its input is read. It throws a `Refusal`. */
export function createPermission(options: {
  tokens: Pick<ReturnType<typeof createActionTokens>, 'isValid'>
  callsPerMinute: number
  actionsPerMinute: number
}) {
  const { tokens, callsPerMinute, actionsPerMinute } = options
  const mayCall = createRateLimit({ perMinute: callsPerMinute })
  const mayAct = createRateLimit({ perMinute: actionsPerMinute })

  return function permitted(
    req: IncomingMessage,
    res: ServerResponse,
    called: string,
    person: Person | undefined,
  ): { name: CallName; person: Person } {
    if (person === undefined)
      throw new Refusal(
        401,
        'not_signed_in',
        'You are not signed in. Sign in in another tab, then try again here.',
      )
    if (!isFromOwnPage(req))
      throw new Refusal(
        403,
        'other_origin',
        'Only the page of this console may make calls. Behind a proxy, pass the Host header on, or set `trust proxy` of Express.',
      )
    if (!Object.hasOwn(CALLS, called)) throw new Refusal(404, 'call_unknown', 'This call does not exist.')
    const name = called as CallName
    const { kind, role } = CALLS[name]
    const method = kind === 'act' ? 'POST' : 'GET'
    if (req.method !== method) {
      res.setHeader('allow', method)
      throw new Refusal(405, 'method_not_allowed', `This call requires ${method}.`)
    }
    if (!mayDo(person, role)) throw new Refusal(403, 'role_missing', `This call requires the role ${role}.`)
    if (kind === 'act' && !tokens.isValid(person, req.headers['x-console-token']))
      throw new Refusal(
        403,
        'token_invalid',
        'The token of the page is missing or expired. Load the page again.',
      )
    if (!(kind === 'act' ? mayAct : mayCall)(person.name))
      throw new Refusal(429, 'too_many_calls', 'Too many calls in a minute. Wait a moment, then try again.')
    return { name, person }
  }
}

const MINUTE_MS = 60_000
/** The most names that are counted: more than a company has people. `authorize` already limits the names. */
const MAX_NAMES = 1_000

/** Returns a function that decides whether `name` may make one more call: up to `perMinute` at once, refilled evenly. */
export function createRateLimit(options: { perMinute: number; now?: () => number }) {
  const { perMinute, now = Date.now } = options
  const buckets = new Map<string, { left: number; at: number }>()

  return function take(name: string): boolean {
    const at = now()
    const { left, at: before } = buckets.get(name) ?? { left: perMinute, at }
    const refilled = Math.min(perMinute, left + (Math.max(0, at - before) / MINUTE_MS) * perMinute)
    const may = refilled >= 1
    buckets.delete(name)
    buckets.set(name, { left: may ? refilled - 1 : refilled, at })
    if (buckets.size > MAX_NAMES) buckets.delete(buckets.keys().next().value as string)
    return may
  }
}

/** A token is valid for one to two windows. Then an open page fetches a new one. */
const WINDOW_MS = 12 * 3_600_000

/**
 * Returns `sign(...values)`, which nobody can compute without the key. `key` must be the same in all instances behind one
 * address. Without it, each process generates its own key.
 */
export function createSigner(key: string | undefined) {
  const secret = key ?? randomBytes(32)
  return function sign(...values: unknown[]): string {
    return createHmac('sha256', secret).update(JSON.stringify(values)).digest('base64url')
  }
}

/** Tokens for actions. A token is bound to a time and to the name and role of the person, so nobody else can use it. */
export function createActionTokens(options: { sign(...values: unknown[]): string; now?: () => number }) {
  const { sign, now = Date.now } = options

  function tokenAt({ name, role }: Person, window: number): string {
    return sign('console', name, role, window)
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
