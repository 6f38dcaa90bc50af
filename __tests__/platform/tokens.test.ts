import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE } from '../../lib/base/clock.js'
import { createTokens, type FetchedToken } from '../../lib/platform/tokens.js'

describe('tokens', () => {
  it('F3 are fetched once for many callers, and once per business', async () => {
    const { tokens, fetched } = create()
    const answers = await Promise.all([
      tokens.get('b1'),
      tokens.get('b1'),
      tokens.get('b2'),
      tokens.get('b1'),
    ])
    expect(answers).toEqual(['b1-1', 'b1-1', 'b2-2', 'b1-1'])
    expect(fetched()).toBe(2)
  })

  it.each([
    [3_600, HOUR - MINUTE],
    ['600', 9 * MINUTE],
    [1_000_000_000, HOUR],
    [undefined, 5 * MINUTE],
    [null, 5 * MINUTE],
    ['soon', 5 * MINUTE],
    ['', 5 * MINUTE],
    [-5, 5 * MINUTE],
    [Number.NaN, 5 * MINUTE],
  ])('F1 with expires_in %p are cached for %p ms', async (expiresIn, keptMs) => {
    const { tokens, pass, fetched } = create({ expiresIn })
    await tokens.get('b1')
    pass(keptMs - 1)
    await tokens.get('b1')
    expect(fetched()).toBe(1)
    pass(1)
    await tokens.get('b1')
    expect(fetched()).toBe(2)
  })

  it('F1, F3 that end within a minute go to the waiting callers, and to no later one', async () => {
    const { tokens, fetched } = create({ expiresIn: 30 })
    expect(await Promise.all([tokens.get('b1'), tokens.get('b1')])).toEqual(['b1-1', 'b1-1'])
    expect(await tokens.get('b1')).toBe('b1-2')
    expect(fetched()).toBe(2)
  })

  it('F3 are fetched again after a failure', async () => {
    const { tokens, failNext } = create()
    failNext()
    await expect(Promise.all([tokens.get('b1'), tokens.get('b1')])).rejects.toThrow('refused')
    expect(await tokens.get('b1')).toBe('b1-2')
  })

  it('F2 are dropped after a refusal only if they are still the current ones', async () => {
    const { tokens, fetched } = create()
    const first = await tokens.get('b1')
    tokens.drop('b1', 'another')
    expect(await tokens.get('b1')).toBe(first)
    tokens.drop('b1', first)
    const second = await tokens.get('b1')
    tokens.drop('b1', first)
    expect(await tokens.get('b1')).toBe(second)
    expect(fetched()).toBe(2)
  })

  it('F8 are cached up to the maximum number', async () => {
    const { tokens, fetched } = create({ maxEntries: 10 })
    for (let business = 0; business < 20; business++) await tokens.get(`b${business}`)
    await tokens.get('b19')
    expect(fetched()).toBe(20)
    await tokens.get('b0')
    expect(fetched()).toBe(21)
  })
})

function create(options: { expiresIn?: unknown; maxEntries?: number } = {}) {
  const { expiresIn, maxEntries } = { expiresIn: 3_600, maxEntries: 1_000, ...options }
  let now = Date.parse('2026-01-01T00:00:00Z')
  let fetches = 0
  let isFailing = false
  const clock = { now: () => now, monotonic: () => now, setTimeout: () => 0, clearTimeout: () => {} }
  async function fetchToken(businessUid: string): Promise<FetchedToken> {
    const count = ++fetches
    if (isFailing) {
      isFailing = false
      throw new Error('refused')
    }
    return { accessToken: `${businessUid}-${count}`, expiresIn }
  }
  return {
    tokens: createTokens({ fetchToken, maxEntries, clock }),
    fetched: () => fetches,
    pass: (ms: number) => {
      now += ms
    },
    failNext: () => {
      isFailing = true
    },
  }
}
