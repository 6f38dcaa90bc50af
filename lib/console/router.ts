import type { IncomingMessage, ServerResponse } from 'node:http'
import { MarketplaceError } from '../index.js'
import { createActionTokens } from './action-token.js'
import { CALLS, type CallName } from './calls.js'
import { INPUTS } from './inputs.js'
import { jsonWithoutSecrets } from './masking.js'
import type { ConsoleMarketplace } from './needs.js'
import { createRateLimit } from './rate-limit.js'
import { Refusal } from './refusal.js'
import { refusalOf, sendJson, sendPage, sendText } from './reply.js'
import { type BodyRequest, jsonBody } from './request-body.js'
import { mayDo, type Person, personIn } from './roles.js'
import { createService } from './service.js'

// biome-ignore lint/suspicious/noExplicitAny: any other type would refuse one of Express 4, Express 5 or the app's own.
type AppRequest = any

/**
 * Who may use the console, and how often.
 *
 * @example
 * const authorize = (req) => (req.session.user?.isStaff ? { name: req.session.user.email, role: 'support' } : null)
 * app.use('/ops', consoleRouter(marketplace, { authorize, tokenKey: process.env.CONSOLE_KEY }))
 */
export interface ConsoleOptions {
  /**
   * Who asks: `{ name, role: 'support' | 'operator' }`, or null for nobody. Called for every request. Throwing, rejecting, or
   * answering anything else denies with 401. There is no console without it.
   */
  authorize(req: AppRequest): unknown
  /**
   * Key of the tokens for actions, at least 32 characters, the same in all instances behind one address. Without it each
   * process makes its own at its start, which is enough for one instance.
   */
  tokenKey?: string | undefined
  /** Calls a minute of one person; 600 unless told. */
  callsPerMinute?: number | undefined
  /** Actions a minute of one person; 60 unless told. */
  actionsPerMinute?: number | undefined
}

/** Middleware of Express 4 and 5, by shape. */
export type ConsoleRouter = (req: BodyRequest, res: ServerResponse, next?: unknown) => void

/**
 * The console as middleware: a page for support and operators, and the calls it makes, under any path. It answers every
 * request itself. Throws `argument_invalid` at once when an option is wrong.
 *
 * @example
 * app.use('/ops', consoleRouter(marketplace, {
 *   authorize: (req) => req.session.user && { name: req.session.user.email, role: 'support' },
 * }))
 */
export function consoleRouter(marketplace: ConsoleMarketplace, options: ConsoleOptions): ConsoleRouter {
  const { authorize, tokenKey, callsPerMinute = 600, actionsPerMinute = 60 } = checked(options)
  const tokens = createActionTokens({ key: tokenKey })
  const mayCall = createRateLimit({ perMinute: callsPerMinute })
  const mayAct = createRateLimit({ perMinute: actionsPerMinute })
  const jsonOf = jsonWithoutSecrets(marketplace.targetUrl)
  const service = createService({ marketplace, tokenFor: tokens.tokenFor })

  async function personOf(req: IncomingMessage): Promise<Person | undefined> {
    try {
      return personIn(await authorize(req))
    } catch {
      return undefined
    }
  }

  async function answer(req: BodyRequest, res: ServerResponse): Promise<void> {
    const [path = '/', query = ''] = splitOnce(req.url ?? '/', '?')
    const called = /^\/call\/(\w+)$/.exec(path)?.[1]
    const person = await personOf(req)
    if (called !== undefined) return answerCall(req, res, called, query, person)
    if (person === undefined)
      return sendText(res, 401, 'Please sign in', 'This console is for people who are signed in to it.')
    if (path !== '/' && path !== '') return sendText(res, 404, 'Not here', 'The console has one page.')
    if (req.method === 'GET' || req.method === 'HEAD') return sendPage(res)
    res.setHeader('allow', 'GET, HEAD')
    sendText(res, 405, 'Not allowed', 'The page can only be read.')
  }

  async function answerCall(
    req: BodyRequest,
    res: ServerResponse,
    called: string,
    query: string,
    person: Person | undefined,
  ): Promise<void> {
    try {
      const name = permitted(req, res, called, person)
      const asker = person as Person
      const given =
        CALLS[name].kind === 'act' ? await jsonBody(req) : Object.fromEntries(new URLSearchParams(query))
      const { data, error } = INPUTS[name].safeParse(given)
      if (error) throw new Refusal(400, 'argument_invalid', faultsOf(error))
      sendJson(res, 200, jsonOf(await service[name](asker, data as never)))
    } catch (error) {
      const { status, code, message } = refusalOf(error)
      if (status === 429) res.setHeader('retry-after', '10')
      sendJson(res, status, jsonOf({ status, code, title: code.replaceAll('_', ' '), detail: message }))
    }
  }

  /** The call, when this request may make it. Throws a `Refusal`. */
  function permitted(
    req: IncomingMessage,
    res: ServerResponse,
    called: string,
    person: Person | undefined,
  ): CallName {
    if (person === undefined)
      throw new Refusal(401, 'not_signed_in', 'You are not signed in, or not any more.')
    const site = req.headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin')
      throw new Refusal(403, 'other_origin', 'Calls are answered only to the page of this console.')
    if (!Object.hasOwn(CALLS, called)) throw new Refusal(404, 'call_unknown', 'There is no such call.')
    const name = called as CallName
    const { kind, role } = CALLS[name]
    const method = kind === 'act' ? 'POST' : 'GET'
    if (req.method !== method) {
      res.setHeader('allow', method)
      throw new Refusal(405, 'method_not_allowed', `This call takes ${method}.`)
    }
    if (!mayDo(person, role)) throw new Refusal(403, 'role_missing', `This is for the role ${role}.`)
    if (kind === 'act' && !tokens.isValid(person, req.headers['x-console-token']))
      throw new Refusal(403, 'token_invalid', 'The token of the page is missing or old: load the page again.')
    if (!(kind === 'act' ? mayAct : mayCall)(person.name))
      throw new Refusal(429, 'too_many_calls', 'Too many calls in a minute. Wait a moment.')
    return name
  }

  return function serveConsole(req, res, _next) {
    answer(req, res).catch(() => {
      if (res.headersSent) res.destroy()
      else sendText(res, 500, 'Not answered', 'The console could not answer.')
    })
  }
}

function checked(options: ConsoleOptions): ConsoleOptions {
  const { authorize, tokenKey, callsPerMinute = 1, actionsPerMinute = 1 } = options ?? {}
  const cannot = (why: string) =>
    new MarketplaceError('argument_invalid', `Cannot create the console: ${why}`)
  if (typeof authorize !== 'function')
    throw cannot('expected the function authorize; without it anybody could use it')
  if (tokenKey !== undefined && (typeof tokenKey !== 'string' || tokenKey.length < 32))
    throw cannot('expected a tokenKey of at least 32 characters')
  for (const [name, value] of Object.entries({ callsPerMinute, actionsPerMinute }))
    if (!Number.isInteger(value) || value < 1)
      throw cannot(`expected ${name} as a whole number of at least 1`)
  return options
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function faultsOf({ issues }: { issues: readonly { path: PropertyKey[]; message: string }[] }): string {
  return `Cannot do this: ${issues.map(({ path, message }) => [...path, message].join(': ')).join('; ')}`
}
