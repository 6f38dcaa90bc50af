/** A number of rows, and the bytes of their payloads. */
export interface Size {
  rows: number
  bytes: number
}

/**
 * What comes meanwhile waits for a batch, known or not: in a flood on a slow machine PostgreSQL takes 50 ms. On SQLite the event
 * loop waits for 5 ms: 30 µs for a delivery with its refresh request.
 */
export const BATCH: Size = { rows: 150, bytes: 1024 * 1024 }
export const WAITING: Size = { rows: 10_000, bytes: 64 * 1024 * 1024 }
export const NOTHING: Size = { rows: 0, bytes: 0 }
/** The payload of a small call, such as a notice. */
const SMALL_BYTES = 16 * 1024

export function add(total: Size, more: Size): void {
  total.rows += more.rows
  total.bytes += more.bytes
}

export function fits(size: Size, more: Size, bound: Size): boolean {
  return size.rows + more.rows <= bound.rows && size.bytes + more.bytes <= bound.bytes
}

export function double({ rows, bytes }: Size): Size {
  return { rows: 2 * rows, bytes: 2 * bytes }
}

export function subtract(total: Size, less: Size): void {
  add(total, { rows: -less.rows, bytes: -less.bytes })
}

export function isSmall({ rows, bytes }: Size): boolean {
  return rows === 1 && bytes <= SMALL_BYTES
}

/** The share of a batch that a call takes. */
export function weightOf({ rows, bytes }: Size): number {
  return Math.max(rows / BATCH.rows, bytes / BATCH.bytes)
}

/** The order of the calls of a class: small ones in that of their arrival, then the smaller ones of the large ones. */
export const orderOf = (size: Size) => (isSmall(size) ? 0 : weightOf(size))
