import { createHash } from 'node:crypto'

/** All random decisions of a simulated run come from these streams, and so from the seed. */
export interface Random {
  /** [0, 1) */
  next(): number
  chance(probability: number): boolean
  /** Whole numbers, including both ends. */
  between(low: number, high: number): number
  pick<T>(from: readonly T[]): T
  /** Chooses a key by its weight. */
  choose<K extends string>(weights: Readonly<Record<K, number>>): K
  /** A new stream: numbers drawn from it do not change the numbers of other streams. */
  fork(): Random
  /** The stream of `what`: its numbers do not depend on what was drawn before, so real work may come in any order. */
  of(what: string): Random
}

/** mulberry32: 32 bits of state, quick, and random enough to mix faults. */
export function createRandom(seed: number): Random {
  let state = seed | 0

  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  const random: Random = {
    next,
    chance: (probability) => next() < probability,
    between: (low, high) => low + Math.floor(next() * (high - low + 1)),
    pick: (from) => from[Math.floor(next() * from.length)] as (typeof from)[number],
    choose(weights) {
      const entries = Object.entries<number>(weights)
      let rest = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [name, weight] of entries) {
        rest -= weight
        if (rest < 0) return name as keyof typeof weights
      }
      return (entries.at(-1) as [string, number])[0] as keyof typeof weights
    },
    fork: () => createRandom(Math.floor(next() * 4_294_967_296)),
    of: (what) => createRandom(createHash('sha256').update(`${seed} ${what}`).digest().readInt32LE()),
  }
  // The first numbers of neighbouring seeds are similar; later numbers are not.
  for (let i = 0; i < 4; i++) next()
  return random
}

/**
 * From now on `Math.random`, with which the package spreads its pauses, returns the numbers of a world. The package also
 * warns of stores that do not open. Returns a function that ends both.
 */
export function drawingFrom(next: () => number): () => void {
  const real = { random: Math.random, emitWarning: process.emitWarning }
  Math.random = next
  process.emitWarning = () => {}
  return () => {
    Math.random = real.random
    process.emitWarning = real.emitWarning
  }
}
