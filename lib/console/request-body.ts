import type { IncomingMessage } from 'node:http'
import { Refusal } from './refusal.js'

const MAX_BYTES = 16_384
const TIMEOUT_MS = 10_000

/** A request of Express. An earlier parser may have read its body. */
export type BodyRequest = IncomingMessage & { body?: unknown }

/** The JSON object in the body of a request, also after a parser of the app has read it. Rejects with a `Refusal`. */
export async function jsonBody(req: BodyRequest): Promise<object> {
  if (!/^application\/json\b/i.test(req.headers['content-type'] ?? ''))
    throw new Refusal(415, 'content_type_unsupported', 'Send application/json.')
  if (Number(req.headers['content-length']) > MAX_BYTES) throw tooLarge()
  const value = req.readableDidRead ? req.body : parsed(await text(req))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new Refusal(400, 'body_not_json', 'Send a JSON object.')
}

function text(req: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(
      () => reject(new Refusal(408, 'body_timeout', 'The body did not arrive in time.')),
      TIMEOUT_MS,
    )
    timer.unref()
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_BYTES) reject(tooLarge())
      else chunks.push(Buffer.from(chunk))
    })
    req.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    req.on('close', () => {
      clearTimeout(timer)
      reject(new Refusal(400, 'body_incomplete', 'The connection closed before the whole body had arrived.'))
    })
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function tooLarge(): Refusal {
  return new Refusal(413, 'body_too_large', `Send at most ${MAX_BYTES} bytes.`)
}
