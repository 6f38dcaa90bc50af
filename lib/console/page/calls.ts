import type { ActName, ReadName } from '../protocol/calls.js'
import type { Inputs } from '../protocol/inputs.js'
import type { Replies, SearchCharacters } from '../protocol/shapes.js'

/** A call that was refused or failed. `message` is for the person. */
export class CallError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** The page has one address, with or without a trailing slash. Its calls are below that address. */
const BASE = location.pathname.replace(/\/?$/, '/')

let token = ''

export async function read<Name extends ReadName>(
  name: Name,
  query: { [Key in keyof Inputs[Name]]?: string | number | undefined } = {},
  signal?: AbortSignal,
): Promise<Replies[Name]> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const params = new URLSearchParams(given.map(([key, value]) => [key, String(value)]))
  const content = await contentOf(await request(`${name}?${params}`, signal ? { signal } : {}))
  if (name === 'session') token = content.token
  return content
}

const SEARCH_CHARACTERS: SearchCharacters = 1_500

/** Finds what a pasted text names. An input with a `maxlength` would cut it, perhaps within the identifier. */
export async function search(pasted: string): Promise<Replies['search']> {
  if (pasted.length > SEARCH_CHARACTERS)
    throw new Error(
      `A text to search has at most ${SEARCH_CHARACTERS} characters. Paste only the identifier.`,
    )
  return read('search', { q: pasted })
}

/** Makes an action. If the token has expired, fetches a new one and tries again, once. */
export async function act<Name extends ActName & keyof Replies>(
  name: Name,
  input: Inputs[Name],
): Promise<Replies[Name]> {
  return contentOf(await post(name, input))
}

/** The file of an export. The page does not parse it: it may be longer than a text can be. */
export async function exportFile(input: Inputs['export']): Promise<{ fileName: string; file: Blob }> {
  const reply = await post('export', input)
  const file = await reply.blob().catch(() => {
    throw new CallError('broken_off', 'The export broke off, and nothing was saved. Try again.')
  })
  const [, fileName = 'business.json'] =
    /filename="(.*)"/.exec(reply.headers.get('content-disposition') ?? '') ?? []
  return { fileName, file }
}

async function post(name: ActName, input: object): Promise<Response> {
  const once = () =>
    request(name, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-console-token': token },
      body: JSON.stringify(input),
    })
  try {
    return await once()
  } catch (error) {
    if (!(error instanceof CallError) || error.code !== 'token_invalid') throw error
    await read('session')
    return once()
  }
}

async function contentOf(reply: Response) {
  return reply.json().catch(() => {
    throw new CallError('broken_off', 'The answer of the server is not complete. Try again.')
  })
}

/** The reply of a call that succeeded. */
async function request(path: string, init: RequestInit): Promise<Response> {
  const how = { ...init, credentials: 'same-origin', redirect: 'manual' } as const
  const reply = await fetch(`${BASE}call/${path}`, how).catch((error) => {
    if (init.signal?.aborted) throw error
    throw new CallError('unreachable', 'The server cannot be reached. Try again in a moment.')
  })
  if (reply.ok) {
    dispatchEvent(new Event('signedin'))
    return reply
  }
  // The console sends nobody elsewhere: something before it asks the person to sign in.
  if (reply.type === 'opaqueredirect') {
    dispatchEvent(new Event('signedout'))
    throw new CallError('not_signed_in', 'You are signed out. Sign in in another tab, then try again here.')
  }
  const body = await reply.json().catch(() => undefined)
  if (reply.status === 401) dispatchEvent(new Event('signedout'))
  throw new CallError(
    body?.code ?? `status_${reply.status}`,
    body?.detail ?? `The server answered ${reply.status}.`,
  )
}
