import { randomFillSync } from 'node:crypto'

const pool = new Uint8Array(10 * 128)
let used = pool.length

/**
 * A UUID version 7 (RFC 9562): unique, and ordered by the millisecond in which it was made, so that an index over
 * many of them grows at one end instead of touching a page for each.
 */
export function newId(now: number): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.subarray(used, used + 10)
  used += 10
  const time = now.toString(16).padStart(12, '0')
  const versioned = 0x7000 | ((((random[0] as number) << 8) | (random[1] as number)) & 0x0fff)
  const variant = 0x8000 | ((((random[2] as number) << 8) | (random[3] as number)) & 0x3fff)
  const tail = Buffer.from(random.buffer, random.byteOffset + 4, 6).toString('hex')
  return `${time.slice(0, 8)}-${time.slice(8)}-${versioned.toString(16)}-${variant.toString(16)}-${tail}`
}
