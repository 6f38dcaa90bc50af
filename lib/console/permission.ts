import type { IncomingMessage, ServerResponse } from 'node:http'
import type { createActionTokens } from './action-token.js'
import { CALLS, type CallName } from './calls.js'
import { createRateLimit } from './rate-limit.js'
import { Refusal } from './refusal.js'
import { mayDo, type Person } from './roles.js'

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
      throw new Refusal(401, 'not_signed_in', 'You are not signed in. Sign in, then load this page again.')
    const site = req.headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin')
      throw new Refusal(403, 'other_origin', 'Only the page of this console may make calls.')
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
