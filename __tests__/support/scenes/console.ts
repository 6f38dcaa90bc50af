import { type ConsoleRouter, consoleRouter } from '../../../lib/console/index.js'
import type { Marketplace } from '../../../lib/index.js'

export const PEOPLE = {
  support: { name: 'sue@example.com', role: 'support' },
  operator: { name: 'otto@example.com', role: 'operator' },
} as const
export type RoleName = keyof typeof PEOPLE

/** Mounts the console at `path`. The header `x-person` or the user agent of the browser names the person. */
export function mountConsole(
  app: { use(path: string, router: ConsoleRouter): unknown },
  marketplace: Marketplace,
  { path = '/ops', ...options }: Record<string, unknown> & { path?: string } = {},
) {
  const router = consoleRouter(marketplace, {
    authorize: ({ headers }) => PEOPLE[(headers['x-person'] ?? headers['user-agent']) as RoleName] ?? null,
    ...options,
  })
  app.use(path, router)
}

/** Calls the console as its page does for `role`. */
export function consoleCaller(url: string, role: RoleName) {
  const headers = { 'x-person': role, 'sec-fetch-site': 'same-origin' }

  async function read(name: string, query: Record<string, string> = {}) {
    const reply = await fetch(`${url}/call/${name}?${new URLSearchParams(query)}`, { headers })
    return { status: reply.status, headers: reply.headers, body: (await reply.json()) as Reply }
  }
  async function act(name: string, input: unknown, more: Record<string, string> = {}) {
    const { body } = await read('session')
    const reply = await fetch(`${url}/call/${name}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'x-console-token': body.token, ...more },
      body: typeof input === 'string' ? input : JSON.stringify(input),
    })
    return { status: reply.status, headers: reply.headers, body: (await reply.json()) as Reply }
  }
  return { read, act }
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into any reply
type Reply = any
