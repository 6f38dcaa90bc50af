import { timingSafeEqual } from 'node:crypto'
import { MarketplaceError } from '../base/errors.js'

/**
 * The delivery secret is the last part of the address that the platform delivers to. The interface document defines no
 * signature for deliveries, so a sender can prove only that it knows the address.
 */

/**
 * Returns a search for a presented text among the configured secrets: its index, or -1. The search takes the same time whether
 * the first, the last or no secret matches. It accepts texts of any length and never throws.
 *
 * The text and the secrets are compared in padded buffers of one size, so the time depends on the length of the text
 * only; see docs/decisions/delivery-secret-comparison.md.
 */
export function createSecretSearch(secrets: readonly string[]): (presented: string) => number {
  const size = Math.max(BUFFER_BYTES, ...secrets.map((secret) => Buffer.byteLength(secret)))
  const padded = secrets.map((secret) => {
    const bytes = Buffer.alloc(size)
    bytes.write(secret)
    return { bytes, length: secret.length }
  })
  // All searches share one buffer: they are synchronous.
  const given = Buffer.alloc(size)

  return function indexOfSecret(presented) {
    if (typeof presented !== 'string') return -1
    given.fill(0)
    given.write(presented)
    let found = -1
    for (const [index, { bytes, length }] of padded.entries()) {
      // `&` and not `&&`, which would compare the lengths only where the bytes are equal.
      const isEqual = Number(timingSafeEqual(bytes, given)) & Number(presented.length === length)
      found += isEqual * (index - found)
    }
    return found
  }
}

/** 128 characters of a secret, which holds only ASCII characters; `openssl rand -hex 24` makes 48. */
const BUFFER_BYTES = 128

/** Whether a text is long enough for a delivery secret, which the usual paths of a search for weak servers are not. */
export function couldBeSecret(presented: string): boolean {
  return presented.length >= MIN_LENGTH
}

/**
 * Why a secret is too weak, one phrase per fault; empty for a strong secret. The phrases never contain the secret.
 * Generated random text passes: `randomBytes(24).toString('base64url')`, a UUID, 32 hex digits.
 */
export function secretFaults(secret: unknown): string[] {
  if (typeof secret !== 'string') return ['a delivery secret must be a string']
  if (secret === '') return [`a delivery secret must not be empty: ${HOW_TO_MAKE_ONE}`]
  const faults: string[] = []
  if (secret.length < MIN_LENGTH)
    faults.push(`a delivery secret must have at least ${MIN_LENGTH} characters: ${HOW_TO_MAKE_ONE}`)
  if (!/^[A-Za-z0-9._~-]*$/.test(secret)) {
    faults.push('a delivery secret may hold only letters, digits and . _ ~ - because it is part of a URL')
  }
  if (new Set(secret).size < MIN_DISTINCT || period(secret) < MIN_LENGTH) {
    faults.push('a delivery secret must not repeat the same few characters')
  } else if (surprises(secret) < MIN_SURPRISES) {
    faults.push(
      `a delivery secret must be random, not a placeholder, common words or a sequence: ${HOW_TO_MAKE_ONE}`,
    )
  }
  return faults
}

/**
 * The address to register with the platform: the mount address, one slash, the secret. Query and fragment are dropped.
 * Throws `argument_invalid` when the mount address is not an absolute http or https URL, or ends with the secret.
 */
export function targetUrl(mountUrl: string | URL, secret: string): string {
  const url = URL.canParse(String(mountUrl)) ? new URL(mountUrl) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') {
    throw new MarketplaceError(
      'argument_invalid',
      'Cannot build the target URL: the mount URL must be absolute and start with https:// or http://',
    )
  }
  if (url.pathname.endsWith(`/${secret}`)) {
    throw new MarketplaceError(
      'argument_invalid',
      'Cannot build the target URL: the mount URL already has the delivery secret. Pass it without',
    )
  }
  url.search = ''
  url.hash = ''
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/${secret}`
  return url.href
}

const MIN_LENGTH = 16
const HOW_TO_MAKE_ONE = 'make one with `openssl rand -hex 24`'
/** 16 random hex digits have fewer than 6 different ones once in 28,000 times. */
const MIN_DISTINCT = 6
const MIN_SURPRISES = 8

const COMMON_WORDS =
  /change|replace|your|this|goes|here|super|secret|s3cr3t|passw[o0]rd|passphrase|default|example|sample|placeholder|delivery|webhooks?|marketplace|token|test|demo|dummy|todo|admin|letmein|welcome|me|my|key/g
const SEQUENCES = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
const BOTH_WAYS = SEQUENCES.flatMap((row) => [row, [...row].reverse().join('')])

/** The length of the shortest part whose repetition gives the whole text; Infinity when the text does not repeat. */
function period(text: string): number {
  for (let size = 1; size <= text.length / 2; size++) {
    if (text.startsWith(text.slice(size))) return size
  }
  return Number.POSITIVE_INFINITY
}

/** The number of characters that neither belong to a common word nor follow from the character before. */
function surprises(secret: string): number {
  const rest = secret
    .toLowerCase()
    .replace(COMMON_WORDS, '')
    .replace(/[._~-]/g, '')
  return [...rest].filter((char, i) => {
    const before = rest[i - 1]
    return before !== char && !BOTH_WAYS.some((row) => row.includes(`${before}${char}`))
  }).length
}
