import type { IncomingMessage, ServerResponse } from 'node:http'
import { MarketplaceError } from '../../index.js'
import { CALLS } from '../protocol/calls.js'
import { INPUTS } from '../protocol/inputs.js'
import { type Person, personIn } from '../protocol/roles.js'
import { createActionTokens, createPermission, createSigner } from './access.js'
import type { Lookup } from './business/lookup.js'
import {
  type BodyRequest,
  jsonBody,
  Refusal,
  refusalOf,
  sendFile,
  sendJson,
  sendPage,
  sendText,
} from './http.js'
import type { ConsoleMarketplace } from './rows.js'
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
   * Returns the person of a request: `{ name, role: 'support' | 'operator' }`, or null. Called for every request. Throwing,
   * rejecting, or returning anything else denies with 401. Required.
   */
  authorize(req: AppRequest): unknown
  /**
   * Key of the tokens for actions: at least 32 characters, the same in all instances behind one address. By default each
   * process generates a key when it starts, which is enough for one instance.
   */
  tokenKey?: string | undefined
  /**
   * Where a person signs in: a path, or an address with http or https. The page offers it when the session is lost, in another tab, so
   * that what was typed stays.
   */
  signInUrl?: string | undefined
  /**
   * Finds businesses by what your app knows of them: a name, a mail address, an order number. It gets the text that a person
   * searches for, if nothing is stored under it, and returns the `business_uid`, several, or null. It may be asynchronous, and
   * has 5 s.
   *
   * @example lookup: async (text) => (await db.customers.find({ mail: text })).map(({ businessUid }) => businessUid)
   */
  lookup?: Lookup | undefined
  /** Calls of one person in a minute, default 600. */
  callsPerMinute?: number | undefined
  /** Actions of one person in a minute, default 60. */
  actionsPerMinute?: number | undefined
}

/** Middleware of Express 4 and 5, by shape. */
export type ConsoleRouter = (req: BodyRequest, res: ServerResponse, next?: unknown) => void

/**
 * The console as middleware: a page for support and operators, and the calls of that page. It works under any path and
 * answers every request itself. Throws `argument_invalid` at once for an invalid option.
 *
 * @example
 * app.use('/ops', consoleRouter(marketplace, {
 *   authorize: (req) => req.session.user && { name: req.session.user.email, role: 'support' },
 * }))
 */
export function consoleRouter(marketplace: ConsoleMarketplace, options: ConsoleOptions): ConsoleRouter {
  const { authorize, tokenKey, signInUrl, lookup, callsPerMinute, actionsPerMinute } = withDefaults(options)
  const sign = createSigner(tokenKey)
  const tokens = createActionTokens({ sign })
  const permitted = createPermission({ tokens, callsPerMinute, actionsPerMinute })
  const service = createService({ marketplace, tokenFor: tokens.tokenFor, signInUrl, lookup, sign })

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
      return sendText(res, 401, 'Please sign in', 'Sign in to use this console.', signInUrl)
    if (path !== '/' && path !== '') return sendText(res, 404, 'Not found', 'The console has only one page.')
    if (req.method === 'GET' || req.method === 'HEAD') return sendPage(res)
    res.setHeader('allow', 'GET, HEAD')
    sendText(res, 405, 'Method not allowed', 'The page can only be read with GET.')
  }

  async function answerCall(
    req: BodyRequest,
    res: ServerResponse,
    called: string,
    query: string,
    person: Person | undefined,
  ): Promise<void> {
    try {
      const { name, person: asker } = permitted(req, res, called, person)
      const given =
        CALLS[name].kind === 'act' ? await jsonBody(req) : Object.fromEntries(new URLSearchParams(query))
      const { data, error } = INPUTS[name].safeParse(given)
      if (error) throw new Refusal(400, 'argument_invalid', faultsOf(error))
      if (name === 'export') return await sendFile(res, service.export(asker, data as never))
      sendJson(res, 200, await service[name](asker, data as never))
    } catch (error) {
      const { status, code, message } = refusalOf(error, person?.role)
      const retryAfter = RETRY_AFTER[status]
      if (retryAfter !== undefined) res.setHeader('retry-after', retryAfter)
      sendJson(res, status, { status, code, title: code.replaceAll('_', ' '), detail: message })
    }
  }

  return function serveConsole(req, res) {
    answer(req, res).catch(() => {
      if (res.headersSent) res.destroy()
      else sendText(res, 500, 'Error', 'The console failed with an unexpected error. Try again.')
    })
  }
}

/** Throws `argument_invalid` for an option of a wrong type. */
function withDefaults(options: ConsoleOptions) {
  const { authorize, tokenKey, signInUrl = null, lookup } = options ?? {}
  const { callsPerMinute = 600, actionsPerMinute = 60 } = options ?? {}
  const cannot = (why: string) =>
    new MarketplaceError('argument_invalid', `Cannot create the console: ${why}`)
  if (typeof authorize !== 'function')
    throw cannot('authorize must be a function; without it anybody could use the console')
  if (tokenKey !== undefined && (typeof tokenKey !== 'string' || tokenKey.length < 32))
    throw cannot('tokenKey must have at least 32 characters')
  if (signInUrl !== null && (typeof signInUrl !== 'string' || !/^(https?:\/\/|\/(?!\/))/.test(signInUrl)))
    throw cannot('signInUrl must be a path, or an address with http or https')
  if (lookup !== undefined && typeof lookup !== 'function') throw cannot('lookup must be a function')
  for (const [name, value] of Object.entries({ callsPerMinute, actionsPerMinute }))
    if (!Number.isInteger(value) || value < 1) throw cannot(`${name} must be a whole number of at least 1`)
  return { authorize, tokenKey, signInUrl, lookup, callsPerMinute, actionsPerMinute }
}

/** After how many seconds to try again, by status. */
const RETRY_AFTER: Readonly<Record<number, string>> = { 429: '10', 503: '5' }

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function faultsOf({ issues }: { issues: readonly { path: PropertyKey[]; message: string }[] }): string {
  return `Cannot do this: ${issues.map(({ path, message }) => [...path, message].join(': ')).join('; ')}`
}
