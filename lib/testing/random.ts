/**
 * Repeatable random numbers: one seed gives any number of streams, each with its own name. Drawing from one stream does
 * not change another, so the order in which requests arrive changes no identifier.
 */
export interface Seeded {
  /** Numbers in [0, 1), the same ones in the same order for the same seed and name. */
  stream(name: string): () => number
}

export function seeded(seed: number | string): Seeded {
  return { stream: (name) => mulberry32(hash(`${seed}/${name}`)) }
}

/** Text in the form of a version 4 UUID. */
export function uuid(random: () => number): string {
  const hex = hexDigits(random, 32)
  const variant = '89ab'[Math.floor(random() * 4)]
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20),
  ].join('-')
}

export function hexDigits(random: () => number, length: number): string {
  return Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join('')
}

/** The same items in another order (Fisher-Yates). */
export function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  const left = [...items]
  const order: Item[] = []
  while (left.length > 0) order.push(...left.splice(Math.floor(random() * left.length), 1))
  return order
}

/** FNV-1a with the final mix of murmur3, so that names with a different last letter get very different seeds. */
function hash(text: string): number {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Tommy Ettinger's 32-bit generator (public domain): small, and far better than what a test needs. */
function mulberry32(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
