import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../base/clock.js'
import { createDeadlines } from '../base/deadlines.js'
import type { Envelope, Receipt } from '../base/envelope.js'
import { type ErrorCode, MarketplaceError, ownCode } from '../base/errors.js'
import { type BodyRequest, createBodyReader, isFormOrXml, isMultipart } from './body.js'
import { couldBeSecret } from './delivery-secret.js'
import { type Body, envelopesOf, parse, textOf } from './envelopes.js'
import { type Given, givenWith } from './given.js'
import { mostBytesFor } from './open-bodies.js'
import { reply, replyProblem } from './reply.js'

export interface ReceiverOptions {
  /** The index of the delivery secret that the path ends in, or -1; see `createSecretSearch`. */
  indexOfSecret(presented: string): number
  /** Writes the envelopes to disk, then resolves with one receipt for each, in the same order. May empty the list. */
  accept(envelopes: Envelope[], secret: number, headers: IncomingHttpHeaders): Promise<readonly Receipt[]>
  /** The app's own check. Returning anything but true refuses the delivery. */
  verifyDelivery?: VerifyDelivery | undefined
  bodyLimitBytes: number
  bodyTimeoutMs: number
  /** See `createOpenBodies`. As many bytes may be verified at once, and twice as many of small bodies. */
  openBodiesBytes?: number | undefined
  /** The error of a delivery for which there is no room. */
  turnAway(why: string): MarketplaceError
  /** Time for `verifyDelivery` and `accept` together. After it the reply is 503, and the sender may send it again. */
  acceptTimeoutMs: number
  clock: Clock
  /**
   * Called with the outcome of every request. The error's `cause` is the error of `accept` or `verifyDelivery`.
   * `isDelivery`: false if the secret is wrong and the request does not look like a delivery. `given`
   * returns what `verifyDelivery` was given, if it has failed.
   */
  count?:
    | ((
        outcome: DeliveryOutcome,
        error: MarketplaceError | undefined,
        isDelivery: boolean,
        given: (() => Given) | undefined,
      ) => void)
    | undefined
}

/** A further check of a delivery. Only true lets it in. */
export type VerifyDelivery = (delivery: {
  /** The request, for its headers and the address of its sender. */
  req: IncomingMessage
  /** The body as text, decompressed; undefined if an earlier middleware has parsed it. */
  text: string | undefined
  /**
   * The body as it was sent, which a signature covers: with a `Content-Encoding` the compressed bytes. Undefined if an
   * earlier middleware has read the body and left no such bytes in `req.rawBody` or `req.body`.
   */
  bytes: Buffer | undefined
}) => boolean | Promise<boolean>

/** `verification_failed`: `verifyDelivery` threw, rejected or did not answer in time; the reply is 503. */
type DeliveryOutcome = 'received' | 'secret_wrong' | 'verification_failed' | ErrorCode

/** A notice has some hundred bytes. */
const SMALL_BYTES = 16 * 1024
const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8' }

/**
 * Returns `takeDelivery(req, res, presented)`, which answers one request whose path ends in `presented`. It never throws:
 *
 * | request | reply |
 * |---|---|
 * | wrong secret | 404 with no body, before the body is read |
 * | any method but POST | 405 |
 * | a body that cannot be read, or is not JSON | 400, 408, 413, 415, or 500 if it was read before |
 * | refused by `verifyDelivery` | 403 |
 * | JSON | 200 `{ received, id }` after `accept` has resolved; for an array of 1 to 1,000 also `ids`; `issues` if there are any |
 * | not accepted in time, or `accept` or `verifyDelivery` failed | 503 with `Retry-After` |
 *
 * Not stated by the interface document: which reply the platform expects, and whether it sends a refused delivery again.
 * So all JSON is accepted, recognised or not. It is on disk before it is acknowledged, but for unrecognised deliveries
 * beyond those that the store keeps, which are only counted.
 *
 * The steps are plain calls: a promise and a timer for each step made a request a third slower.
 */
export function createTakeDelivery(options: ReceiverOptions) {
  const { indexOfSecret, accept, verifyDelivery, turnAway, clock, count } = options
  const { bodyLimitBytes, bodyTimeoutMs, openBodiesBytes, acceptTimeoutMs } = options
  const readBody = createBodyReader({
    limitBytes: bodyLimitBytes,
    timeoutMs: bodyTimeoutMs,
    openBodiesBytes,
    clock,
  })
  const deadlines = createDeadlines(acceptTimeoutMs, clock)
  /** The bytes that are being verified: a check may take long, and anybody with the secret can send as much as he likes. */
  let verifiedBytes = 0
  const mostVerifiedBytes = openBodiesBytes ?? mostBytesFor(bodyLimitBytes)

  return function takeDelivery(req: BodyRequest, res: ServerResponse, presented: string): void {
    const secret = indexOfSecret(presented)
    if (secret === -1) {
      tally('secret_wrong', undefined, couldBeSecret(presented) && looksLikeDelivery(req))
      reply(req, res, 404, '', {}, clock)
      return
    }
    const refuse = (thrown: unknown, outcome?: DeliveryOutcome, given?: () => Given) => {
      const error = ownCode(thrown) ? (thrown as MarketplaceError) : notAccepted(thrown)
      tally(outcome ?? error.code, error, true, given)
      const headers = error.code === 'method_not_allowed' ? { Allow: 'POST' } : {}
      replyProblem(req, res, error.code, error.message, { headers, clock })
    }
    try {
      if (req.method !== 'POST') {
        throw new MarketplaceError(
          'method_not_allowed',
          'Cannot accept the delivery: it must be sent with POST',
        )
      }
      readBody(req, (body) => acceptInTime(req, res, body, presented, secret, refuse), refuse)
    } catch (error) {
      refuse(error)
    }
  }

  /**
   * Verifies, then accepts, both within the deadline: a delivery that is verified too late is not accepted. Then replies,
   * or throws or calls `refuse`, once.
   */
  function acceptInTime(
    req: BodyRequest,
    res: ServerResponse,
    body: Body,
    presented: string,
    secret: number,
    refuse: (thrown: unknown, outcome?: DeliveryOutcome, given?: () => Given) => void,
  ): void {
    const text = textOf(body)
    const received = 'json' in body ? undefined : text
    let isOpen = true
    let isVerified = verifyDelivery === undefined
    let held = 0

    const fail = (cause: unknown, isOurs = isVerified) => {
      if (!isOpen) return
      // The path before the secret is the app's own.
      const given = isOurs ? undefined : () => givenWith(req, [presented, queryOf(req.url)], received)
      end(() => refuse(notAccepted(cause), isVerified ? undefined : 'verification_failed', given))
    }
    const refuseOnce = (reason: unknown) => {
      if (isOpen) end(() => refuse(reason))
    }
    const acknowledge = (answer: string) => {
      if (!isOpen) return
      end(() => {
        tally('received')
        reply(req, res, 200, answer, JSON_HEADERS, clock)
      })
    }

    const cancelDeadline = deadlines.set(() =>
      fail(
        new MarketplaceError(
          'delivery_not_accepted',
          `Cannot accept the delivery: it was not accepted within ${acceptTimeoutMs} ms`,
        ),
        true,
      ),
    )
    if (verifyDelivery === undefined) acceptBody()
    else verify(verifyDelivery, body.sent)

    function verify(check: VerifyDelivery, bytes: Buffer | undefined): void {
      // A check may expect JSON. The value is not kept for what follows, which may be seconds later.
      try {
        parse(text)
      } catch (error) {
        refuseOnce(error)
        return
      }
      const most = text.length <= SMALL_BYTES ? 2 * mostVerifiedBytes : mostVerifiedBytes
      if (verifiedBytes + text.length > most) {
        refuseOnce(notAccepted(turnAway('too many deliveries are being verified')))
        return
      }
      held = text.length
      verifiedBytes += held
      new Promise<unknown>((resolve) => resolve(check({ req, text: received, bytes })))
        .finally(release)
        .then((answer) => {
          if (!isOpen) return
          isVerified = answer === true
          if (isVerified) acceptBody()
          else
            refuseOnce(
              new MarketplaceError(
                'delivery_refused',
                'Cannot accept the delivery: verifyDelivery did not return true',
              ),
            )
        })
        .catch(fail)
    }

    /** While the delivery is stored, nothing refers to the values of its body. */
    function acceptBody(): void {
      let read: ReturnType<typeof envelopesOf>
      try {
        read = envelopesOf(text)
      } catch (error) {
        refuseOnce(error)
        return
      }
      const { acknowledgement } = read
      try {
        accept(read.envelopes, secret, req.headers)
          .then((receipts) => acknowledge(acknowledgement(receipts)))
          .catch(fail)
      } catch (cause) {
        fail(cause)
      }
    }

    function release(): void {
      verifiedBytes -= held
      held = 0
    }

    function end(answer: () => void): void {
      isOpen = false
      cancelDeadline()
      release()
      answer()
    }
  }

  /** Counts the outcome of a request. An error of `count` must neither lose the reply nor end the process. */
  function tally(
    outcome: DeliveryOutcome,
    error?: MarketplaceError,
    isDelivery = true,
    given?: () => Given,
  ): void {
    try {
      count?.(outcome, error, isDelivery, given)
    } catch {
      // Failures are reported by `count`, so a failure of `count` itself cannot be reported.
    }
  }
}

/** The query of a request target, with its question mark. */
function queryOf(url: unknown): string {
  return /\?.*/s.exec(String(url))?.[0] ?? ''
}

/**
 * Whether a request without a right secret may come from the platform, and not from a search for weak servers. Those send
 * forms and XML; the platform may send JSON under any other content type, which is accepted with a right secret.
 */
function looksLikeDelivery(req: IncomingMessage): boolean {
  try {
    const type = req.headers['content-type']
    return req.method === 'POST' && !isMultipart(type) && !isFormOrXml(type)
  } catch {
    // A middleware has replaced members of the request.
    return false
  }
}

/** The cause's message is for the app's operator. The sender does not get it. */
function notAccepted(cause: unknown): MarketplaceError {
  return new MarketplaceError('delivery_not_accepted', 'Cannot accept the delivery now: send it again', {
    cause,
  })
}
