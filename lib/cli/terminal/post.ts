/** The outcome of a delivery to an address. */
export type Posted =
  | { kind: 'answered'; status: number; ms: number; body: Record<string, unknown> }
  /** `why` contains an error code of the system, such as ECONNREFUSED. */
  | { kind: 'failed'; why: string; ms: number }

const TIMEOUT_MS = 10_000
/** A reply of this package to one delivery has less than 2 KiB, and most have 60 bytes. */
const MAX_REPLY_BYTES = 64 * 1024

/** Posts a delivery as the platform does. Never rejects, and never repeats the address, which contains a secret. */
export async function postDelivery(address: string, delivery: unknown): Promise<Posted> {
  const began = performance.now()
  const ms = () => Math.round(performance.now() - began)
  try {
    const reply = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(delivery),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    return { kind: 'answered', status: reply.status, ms: ms(), body: objectIn(await textOf(reply)) }
  } catch (error) {
    const { name, cause } = error as { name?: string; cause?: { code?: unknown } }
    const code = cause?.code
    const why = name === 'TimeoutError' ? `no answer within ${TIMEOUT_MS / 1_000} s` : 'the connection failed'
    return {
      kind: 'failed',
      why: typeof code === 'string' && /^[A-Z_0-9]+$/.test(code) ? `${why} (${code})` : why,
      ms: ms(),
    }
  }
}

/** The text of a reply; '' for one that is too large to be of this package. The bytes are counted after decompression. */
async function textOf({ body }: Response): Promise<string> {
  if (!body) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop cancels the rest of the reply.
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > MAX_REPLY_BYTES) return ''
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
