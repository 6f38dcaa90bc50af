import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../clock.js'
import { createDeadlines } from '../deadlines.js'
import type { Envelope, Receipt } from '../envelope.js'
import { type ErrorCode, MarketplaceError } from '../errors.js'
import { createBodyReader } from './body.js'
import type { Body, BodyRequest } from './body-read-before.js'
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
  bodyLimitBytes: number
  bodyTimeoutMs: number
  /** Time for `verifyDelivery` and `accept` together; then the reply is 503, and the sender may try again. */
  acceptTimeoutMs: number
  clock: Clock
  /** Called with the outcome of every request; the error's `cause` is what `accept` or `verifyDelivery` threw. */
  count?: ((outcome: DeliveryOutcome, error?: MarketplaceError) => void) | undefined
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
 * Returns `takeDelivery(req, res, candidate)`, which answers one request whose path ends in `candidate`. It never throws:
 *
 * | request | reply |
 * |---|---|
 * | any candidate but a secret | 404 with no body, before the body is read |
 * | any method but POST | 405 |
 * | a body that cannot be read, or is not JSON | 400, 408, 413 or 415 |
 * | refused by `verifyDelivery` | 403 |
 * | JSON | 200 `{ received, id }` once `accept` has resolved; for an array also `ids`; `issues` when there are any |
 * | not accepted in time | 503 with `Retry-After` |
 *
 * Not stated by the interface document: which reply the platform expects, and whether it sends a refused delivery again.
 * So all JSON is accepted, recognised or not, and nothing is acknowledged before it is on disk.
 *
 * A request goes from step to step by plain calls: promises and timers of its own for each made it a third slower.
 */
export function createTakeDelivery(options: ReceiverOptions) {
  const { isSecret, whichSecret, accept, verifyDelivery, clock, count } = options
  const { bodyLimitBytes, bodyTimeoutMs, acceptTimeoutMs } = options
  const readBody = createBodyReader({ limitBytes: bodyLimitBytes, timeoutMs: bodyTimeoutMs, clock })
  const deadlines = createDeadlines(acceptTimeoutMs, clock)

  return function takeDelivery(req: BodyRequest, res: ServerResponse, candidate: string): void {
    if (!isSecret(candidate)) {
      tally('secret_wrong')
      reply(req, res, 404, '', {}, clock)
      return
    }
    const secret = whichSecret?.(candidate)
    const refuse = (thrown: unknown) => {
      const error = thrown instanceof MarketplaceError ? thrown : notKept(thrown)
      tally(error.code, error)
      const headers = error.code === 'method_not_allowed' ? { Allow: 'POST' } : {}
      replyProblem(req, res, error.code, error.message, { headers, clock })
    }
    try {
      if (req.method !== 'POST') {
        throw new MarketplaceError(
          'method_not_allowed',
          'Cannot take the delivery: it must be sent with POST',
        )
      }
      readBody(req, (body) => keep(req, res, body, secret, refuse), refuse)
    } catch (error) {
      refuse(error)
    }
  }

  /**
   * Verifies, then accepts, both within the deadline: a delivery that is verified too late is not accepted. Throws, or
   * calls `refuse`, once, unless it replies.
   */
  function keep(
    req: BodyRequest,
    res: ServerResponse,
    body: Body,
    secret: number | undefined,
    refuse: (thrown: unknown) => void,
  ): void {
    const text = 'text' in body ? body.text : undefined
    const value = 'text' in body ? parse(body.text) : body.parsed
    const isListed = isList(value)
    const envelopes = isListed ? value.map(asElement) : [{ value, text: text ?? null }]
    let isOpen = true

    const fail = (cause: unknown) => {
      if (isOpen) end(() => refuse(notKept(cause)))
    }
    const acknowledge = (receipts: readonly Receipt[]) => {
      if (!isOpen) return
      try {
        if (receipts.length !== envelopes.length) {
          throw new Error(`accept gave ${receipts.length} receipts for ${envelopes.length} envelopes`)
        }
        const answer = isListed ? receiptsText(receipts) : receiptText(receipts)
        end(() => {
          tally('received')
          reply(req, res, 200, answer, JSON_HEADERS, clock)
        })
      } catch (cause) {
        fail(cause)
      }
    }

    const cancelDeadline = deadlines.set(() => fail(new Error(`not done after ${acceptTimeoutMs} ms`)))
    try {
      if (verifyDelivery === undefined) {
        accept(envelopes, secret).then(acknowledge, fail)
        return
      }
      Promise.resolve(verifyDelivery({ req, text }))
        .then((answer) => {
          if (!isOpen) return
          if (answer === true) return accept(envelopes, secret).then(acknowledge)
          end(() =>
            refuse(new MarketplaceError('delivery_refused', 'Cannot take the delivery: it was not verified')),
          )
        })
        .catch(fail)
    } catch (cause) {
      fail(cause)
    }

    function end(answer: () => void): void {
      isOpen = false
      cancelDeadline()
      answer()
    }
  }

  /** A `count` that throws neither loses the reply nor ends the process. */
  function tally(outcome: DeliveryOutcome, error?: MarketplaceError): void {
    try {
      count?.(outcome, error)
    } catch {
      // There is nowhere else to report this: `count` is where failures are reported.
    }
  }
}

/** The message of the cause is for the app's operator, not for the sender. */
function notKept(cause: unknown): MarketplaceError {
  return new MarketplaceError('delivery_not_kept', 'Cannot keep the delivery now: try again', { cause })
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
  return JSON.stringify(issues?.length ? { received: true, id, issues } : { received: true, id })
}

function receiptsText(receipts: readonly Receipt[]): string {
  const ids = receipts.map(({ id }) => id)
  const issues = receipts.flatMap((receipt, i) => (receipt.issues ?? []).map((issue) => `[${i}] ${issue}`))
  return JSON.stringify({ received: true, id: ids[0], ids, ...(issues.length ? { issues } : {}) })
}
