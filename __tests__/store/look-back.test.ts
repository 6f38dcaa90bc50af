import { describe, expect, it } from '@jest/globals'
import { createLookBack } from '../../lib/store/leases/look-back.js'

describe('a look back', () => {
  it('reads all rows at first, and then those since the oldest that was found, or since the last search', () => {
    const { looks, pass } = searching()
    expect(looks({ tookMs: 1 })).toBeUndefined()
    pass(9)
    expect(looks({ tookMs: 1, oldestMs: 3_000 })).toBe(15_010)
    pass(9)
    expect(looks({ tookMs: 1 })).toBe(3_510)
    pass(9)
    expect(looks({ tookMs: 1 })).toBe(510)
  })

  it('goes no further back for a part because the rows of another one wait long', () => {
    const { looks, pass } = searching()
    looks({ tookMs: 1 })
    looks({ tookMs: 1, part: 'others', oldestMs: 7_000 })
    pass(8)
    expect(looks({ tookMs: 0, part: 'others' })).toBe(7_509)
    expect(looks({ tookMs: 0 })).toBe(510)
    expect(looks({ tookMs: 0, part: 'new' })).toBeUndefined()
  })

  it('reads all rows again, the more rarely the longer that takes', () => {
    const { looks, pass } = searching()
    for (const tookMs of [2, 200]) {
      expect(looks({ tookMs })).toBeUndefined()
      pass(tookMs * 50 - 1)
      expect(looks({ tookMs: 0 })).toBeDefined()
      pass(1)
    }
    expect(looks({ tookMs: 2 })).toBeUndefined()
  })
})

function searching() {
  let now = 1_000_000
  const { look } = createLookBack({ monotonic: () => now })
  return {
    pass(ms: number) {
      now += ms
    },
    looks({ tookMs, oldestMs = 0, part = 'reads' }: { tookMs: number; oldestMs?: number; part?: string }) {
      const { sinceMs, found, end } = look()
      const seen = sinceMs(part)
      now += tookMs
      found(part, oldestMs)
      end()
      return seen
    },
  }
}
