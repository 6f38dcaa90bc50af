import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { fullJitter, spread } from '../../lib/base/backoff.js'

describe('fullJitter', () => {
  const highest = () => 1
  const lowest = () => 0

  it('doubles its upper bound with each failure, up to the cap', () => {
    const ceilings = [0, 1, 2, 3, 4, 100].map((failures) => fullJitter(failures, 1_000, 10_000, highest))
    expect(ceilings).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000])
  })

  it('never returns less than a tenth of the base', () => {
    expect(fullJitter(5, 1_000, 60_000, lowest)).toBe(100)
  })

  it('returns a random whole number between its bounds', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.double({ min: 0, max: 1, noNaN: true }), (failures, chance) => {
        const ms = fullJitter(failures, 1_000, 300_000, () => chance)
        expect(Number.isInteger(ms)).toBe(true)
        expect(ms).toBeGreaterThanOrEqual(100)
        expect(ms).toBeLessThanOrEqual(Math.min(300_000, 1_000 * 2 ** failures))
      }),
    )
    const drawn = new Set(Array.from({ length: 20 }, () => fullJitter(8, 1_000, 300_000)))
    expect(drawn.size).toBeGreaterThan(1)
  })
})

describe('spread', () => {
  it('moves a delay by up to its share in both directions', () => {
    expect([0, 0.5, 1].map((chance) => spread(1_000, 0.2, () => chance))).toEqual([800, 1_000, 1_200])
  })
})
