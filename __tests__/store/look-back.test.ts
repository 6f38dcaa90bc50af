import { describe, expect, it } from '@jest/globals'
import { createLookBack } from '../../lib/store/leases/look-back.js'
import { sql } from '../../lib/store/sql/sql.js'

describe('a look back', () => {
  it('reads all rows at first, and then those since the oldest that was found, or since the last search', async () => {
    const { looks, pass } = searching()
    expect(await looks({ tookMs: 1 })).toBeUndefined()
    pass(9)
    expect(await looks({ tookMs: 1, oldestMs: 3_000 })).toBe(15_010)
    pass(9)
    expect(await looks({ tookMs: 1 })).toBe(3_510)
    pass(9)
    expect(await looks({ tookMs: 1 })).toBe(510)
  })

  it('goes no further back for a part because the rows of another one wait long', async () => {
    const { looks, pass } = searching()
    await looks({ tookMs: 1 })
    await looks({ tookMs: 1, part: 'others', oldestMs: 7_000 })
    pass(8)
    expect(await looks({ tookMs: 0, part: 'others' })).toBe(7_509)
    expect(await looks({ tookMs: 0 })).toBe(510)
    expect(await looks({ tookMs: 0, part: 'new' })).toBeUndefined()
  })

  it('reads all rows again, the more rarely the longer that takes', async () => {
    const { looks, pass } = searching()
    for (const tookMs of [2, 200]) {
      expect(await looks({ tookMs })).toBeUndefined()
      pass(tookMs * 50 - 1)
      expect(await looks({ tookMs: 0 })).toBeDefined()
      pass(1)
    }
    expect(await looks({ tookMs: 2 })).toBeUndefined()
  })

  it('reads no further back than a limit after a query that took too long, and further again after those that did not', async () => {
    const { looks, pass } = searching()
    const limits: unknown[] = []
    for (let i = 0; i < 3; i++) limits.push(await looks({ tookMs: 5_000, error: TIMEOUT }))
    for (let i = 0; i < 7; i++) {
      limits.push(await looks({ tookMs: 1_000 }))
      pass(49_000)
      // Between them the queries read a little, without any limit.
      expect(await looks({ tookMs: 0 })).toBe(65_000)
      pass(1_000)
    }
    const minutes = limits.map((ms) => ms && Number(ms) / 60_000)
    expect(minutes).toEqual([undefined, 60, 15, 3.75, 15, 60, 240, 960, 3_840, undefined])
    for (let i = 0; i < 9; i++) await looks({ tookMs: 5_000, error: TIMEOUT })
    expect(await looks({ tookMs: 1 })).toBe(15_000)
  })

  it('has the limit for parts whose oldest row waits longer, too', async () => {
    const { looks, pass } = searching()
    await looks({ tookMs: 1_000, oldestMs: 7_200_000 })
    pass(1_000)
    expect(await looks({ tookMs: 5_000, error: TIMEOUT })).toBe(7_217_000)
    expect(await looks({ tookMs: 0 })).toBe(3_600_000)
  })

  it('reads all rows where the entries of those that are not due any more are removed at once', async () => {
    const { looks, pass } = searching({ isLocal: true })
    for (const _ of [1, 2]) {
      expect(await looks({ tookMs: 1, oldestMs: 3_000 })).toBeUndefined()
      pass(9)
    }
  })

  it('keeps no limit after other errors', async () => {
    const { looks } = searching()
    expect(await looks({ tookMs: 5_000, error: new Error('connection lost') })).toBeUndefined()
    expect(await looks({ tookMs: 1 })).toBeUndefined()
  })
})

const TIMEOUT = new Error('it took too long')

function searching({ isLocal = false } = {}) {
  let now = 1_000_000
  const { look } = createLookBack({
    clock: { monotonic: () => now },
    isTimeout: (error) => error === TIMEOUT,
    isLocal,
    now: () => sql`now`,
  })
  return {
    pass(ms: number) {
      now += ms
    },
    async looks({ tookMs, oldestMs = 0, part = 'reads', error }: Look) {
      const { since, found, during } = look()
      const { texts, values } = since(part, sql`due_at`)
      expect(texts.join('?')).toBe(values.length > 0 ? 'due_at >= now - ?' : '1 = 1')
      now += tookMs
      if (error) await expect(during(Promise.reject(error))).rejects.toBe(error)
      else {
        found(part, oldestMs)
        await during(Promise.resolve())
      }
      return values[0]
    },
  }
}

interface Look {
  tookMs: number
  oldestMs?: number
  part?: string
  error?: Error
}
