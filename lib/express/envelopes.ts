import type { Envelope, Receipt } from '../base/envelope.js'
import { MarketplaceError } from '../base/errors.js'
import type { Body } from './body-read-before.js'

/** The most envelopes in an array. A longer array is a single unrecognised envelope. */
const MAX_ENVELOPES = 1_000

/**
 * The envelopes of a body, and `acknowledgement`, which makes the JSON of the 200 from their receipts:
 * `{ received, id }`, for an array also `ids`, and `issues` if there are any.
 *
 * Throws `body_not_json`; `acknowledgement` throws when a receipt is missing.
 */
export function envelopesOf(body: Body) {
  const text = 'text' in body ? body.text : undefined
  const value = 'text' in body ? parse(body.text) : body.parsed
  const isListed = Array.isArray(value) && value.length > 0 && value.length <= MAX_ENVELOPES
  const envelopes: Envelope[] = isListed ? value.map(asElement) : [{ value, text: text ?? null }]

  function acknowledgement(receipts: readonly Receipt[]): string {
    if (receipts.length !== envelopes.length) {
      throw new Error(`accept returned ${receipts.length} receipts for ${envelopes.length} envelopes`)
    }
    return isListed ? receiptsText(receipts) : receiptText(receipts)
  }

  return { text, envelopes, acknowledgement }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The error has no cause, because the message of a SyntaxError quotes the body.
    throw new MarketplaceError('body_not_json', 'Cannot read the body of the delivery: it is not JSON')
  }
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
