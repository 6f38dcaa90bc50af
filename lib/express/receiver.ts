import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, SECOND, systemClock } from '../clock.js'
import { type ErrorCode, MarketplaceError } from '../errors.js'
import { readBody } from './body.js'
import type { BodyRequest } from './body-read-before.js'
import { reply, replyProblem } from './reply.js'

export interface ReceiverOptions {
  /** Whether the last part of the path is one of the delivery secrets; see `createSecretCheck`. */
  isSecret(candidate: string): boolean
  /** Which of the secrets a right one is; see `createWhichSecret`. */
  whichSecret?: ((candidate: string) => number) | undefined
  /** Writes the envelopes to disk before it resolves with one receipt for each, in their order. */
  accept(envelopes: readonly Envelope[], secret?: number): Promise<readonly Receipt[]>
  /** A further check by the app; returning anything but true refuses the delivery. */
  verifyDelivery?: VerifyDelivery | undefined
  bodyLimitBytes?: number | undefined
  bodyTimeoutMs?: number | undefined
  /** Time for `verifyDelivery` and `accept` together; then the reply is 503, and the sender may try again. */
  acceptTimeoutMs?: number | undefined
  clock?: Clock | undefined
  /** Called with the outcome of every request; the error's `cause` is what `accept` or `verifyDelivery` threw. */
  count?: ((outcome: DeliveryOutcome, error?: MarketplaceError) => void) | undefined
}

export interface Envelope {
  value: unknown
  /** The JSON text of `value` as it was sent; null when it is one of several, or when an earlier middleware has parsed it. */
  text: string | null
}

export interface Receipt {
  id: string
  /** Why the envelope was not recognised, one sentence each; null when it was. */
  issues: readonly string[] | null
}

export type VerifyDelivery = (delivery: {
  req: IncomingMessage
  /** The body as text; undefined when an earlier middleware has parsed it. */
  text: string | undefined
}) => boolean | Promise<boolean>

export type DeliveryOutcome = 'received' | 'secret_wrong' | ErrorCode

/** Each element of an array is an envelope of its own; an array longer than this is one unrecognised envelope. */
const MAX_ENVELOPES = 1_000
const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8' }

/**
 * Returns the middleware that takes deliveries at `<mount>/<secret>`. Mount it with `app.use(path, …)`, or give it to
 * `node:http` or `node:http2` as it is. It answers every request itself, and never throws:
 *
 * | request | reply |
 * |---|---|
 * | any path but the secret | 404 with no body, before the body is read |
 * | any method but POST | 405 |
 * | a body that cannot be read, or is not JSON | 400, 408, 413 or 415 |
 * | refused by `verifyDelivery` | 403 |
 * | JSON | 200 `{ received, id }` once `accept` has resolved; for an array also `ids`; `issues` when there are any |
 * | not accepted in time | 503 with `Retry-After` |
 *
 * Not stated by the interface document: which reply the platform expects, and whether it sends a refused delivery again.
 * So all JSON is accepted, recognised or not, and nothing is acknowledged before it is on disk.
 *
 * Throws `argument_invalid` at once when an option is out of bounds.
 */
export function createReceiver(options: ReceiverOptions) {
  const { isSecret, whichSecret, accept, verifyDelivery, clock = systemClock, count } = options
  const { bodyLimitBytes = 65_536, bodyTimeoutMs = 10 * SECOND, acceptTimeoutMs = 3 * SECOND } = options
  for (const [name, value] of Object.entries({ bodyLimitBytes, bodyTimeoutMs, acceptTimeoutMs })) {
    // NaN would never be reached, and a delay above 2^31 - 1 ms would pass at once.
    if (typeof value !== 'number' || !(value >= 1 && value < 2 ** 31)) {
      throw new MarketplaceError(
        'argument_invalid',
        `Cannot create the receiver: ${name} must be 1 to 2^31 - 1`,
      )
    }
  }
  const bodyOptions = { limitBytes: bodyLimitBytes, timeoutMs: bodyTimeoutMs, clock }

  return function receiveDelivery(req: BodyRequest, res: ServerResponse): void {
    const candidate = secretIn(req.url)
    if (!isSecret(candidate)) {
      tally('secret_wrong')
      reply(req, res, 404, '', {}, clock)
      return
    }
    void receive(req, whichSecret?.(candidate)).then(
      (text) => {
        tally('received')
        reply(req, res, 200, text, JSON_HEADERS, clock)
      },
      (thrown: unknown) => {
        const error = thrown instanceof MarketplaceError ? thrown : notKept(thrown)
        tally(error.code, error)
        const headers = error.code === 'method_not_allowed' ? { Allow: 'POST' } : {}
        replyProblem(req, res, error.code, error.message, { headers, clock })
      },
    )
  }

  /** A `count` that throws neither loses the reply nor ends the process. */
  function tally(outcome: DeliveryOutcome, error?: MarketplaceError): void {
    try {
      count?.(outcome, error)
    } catch {
      // There is nowhere else to report this: `count` is where failures are reported.
    }
  }

  /** Resolves with the text of the reply. Rejects with a MarketplaceError that the sender may read, or with anything. */
  async function receive(req: BodyRequest, secret: number | undefined): Promise<string> {
    if (req.method !== 'POST') {
      throw new MarketplaceError('method_not_allowed', 'Cannot take the delivery: it must be sent with POST')
    }
    const body = await readBody(req, bodyOptions)
    const text = 'text' in body ? body.text : undefined
    const value = 'text' in body ? parse(body.text) : body.parsed
    const delivery = { req, text }
    if (!isList(value)) return receiptText(await keep(delivery, [{ value, text: text ?? null }], secret))
    return receiptsText(await keep(delivery, value.map(asElement), secret))
  }

  /** Verifies, then accepts, both within the deadline: a delivery that is verified too late is not accepted. */
  async function keep(
    delivery: Parameters<VerifyDelivery>[0],
    envelopes: Envelope[],
    secret: number | undefined,
  ): Promise<readonly Receipt[]> {
    let timer: unknown
    const deadline = new Promise<never>((_resolve, reject) => {
      timer = clock.setTimeout(
        () => reject(new Error(`not done after ${acceptTimeoutMs} ms`)),
        acceptTimeoutMs,
      )
    })
    try {
      const isVerified =
        !verifyDelivery || (await Promise.race([verifyDelivery(delivery), deadline])) === true
      if (isVerified) {
        const receipts = await Promise.race([accept(envelopes, secret), deadline])
        if (receipts.length === envelopes.length) return receipts
        throw new Error(`accept gave ${receipts.length} receipts for ${envelopes.length} envelopes`)
      }
    } catch (cause) {
      throw notKept(cause)
    } finally {
      clock.clearTimeout(timer)
    }
    throw new MarketplaceError('delivery_refused', 'Cannot take the delivery: it was not verified')
  }
}

/** The message of the cause is for the app's operator, not for the sender. */
function notKept(cause: unknown): MarketplaceError {
  return new MarketplaceError('delivery_not_kept', 'Cannot keep the delivery now: try again', { cause })
}

/** Scheme and host of a request target in absolute form, as some proxies send it (RFC 9112, 3.2.2). */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i

/** The path below the mount path; a trailing slash and the query are ignored. */
function secretIn(url: unknown): string {
  if (typeof url !== 'string') return ''
  const target = url.startsWith('/') ? url : url.replace(ORIGIN, '')
  const path = target.split('?', 1)[0] as string
  const candidate = path.slice(1, path.endsWith('/') ? -1 : undefined)
  if (!candidate.includes('%')) return candidate
  try {
    return decodeURIComponent(candidate)
  } catch {
    return ''
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Without a cause: the message of a SyntaxError quotes the body.
    throw new MarketplaceError('body_not_json', 'Cannot read the body of the delivery: it is not JSON')
  }
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_ENVELOPES
}

function asElement(value: unknown): Envelope {
  return { value, text: null }
}

function receiptText([receipt]: readonly Receipt[]): string {
  const { id, issues } = receipt as Receipt
  return JSON.stringify({ received: true, id, ...(issues?.length ? { issues } : {}) })
}

function receiptsText(receipts: readonly Receipt[]): string {
  const ids = receipts.map(({ id }) => id)
  const issues = receipts.flatMap((receipt, i) => (receipt.issues ?? []).map((issue) => `[${i}] ${issue}`))
  return JSON.stringify({ received: true, id: ids[0], ids, ...(issues.length ? { issues } : {}) })
}
