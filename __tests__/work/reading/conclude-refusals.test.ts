import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { VERIFY_DELAYS_MS } from '../../../lib/work/reading/schedule.js'
import { createKnown, createReader, found_, REFUSED } from '../../support/scenes/reader.js'

describe('the conclusion from a read', () => {
  it('D7 verifies a purchase that the read does not show yet', () => {
    const reader = createReader()
    expect(reader.reads({ kind: 'missing' }).nextInMs).toBe(5 * SECOND)
    expect(reader.reads({ kind: 'missing' }).nextInMs).toBe(30 * SECOND)
    expect(reader.reads(found_('purchased', 1)).moved).toMatchObject({ from: null, to: 'purchased' })
  })

  it('gives up a subscription that no read showed for three days', () => {
    const reader = createReader()
    for (let step = 0; step < 11; step++) reader.reads({ kind: 'missing' })
    reader.pass(72 * HOUR)
    expect(reader.reads({ kind: 'missing' }).nextInMs).toBeNull()
  })

  it('E6 waits as long as the platform asks when it limits the rate', () => {
    const reader = createReader()
    const { nextInMs, settled } = reader.reads({ kind: 'throttled', retryAfterMs: MINUTE })
    expect(settled).toBe(false)
    expect(nextInMs).toBeGreaterThanOrEqual(MINUTE * 0.8)
  })

  it('retries an outage for ever, with pauses of at most five minutes', () => {
    const reader = createReader()
    for (let outage = 0; outage < 500; outage++) {
      const { nextInMs, settled } = reader.reads({ kind: 'outage', code: 'platform_timeout' })
      expect(settled).toBe(false)
      expect(nextInMs).toBeLessThanOrEqual(5 * MINUTE)
      reader.pass(10 * MINUTE)
    }
  })

  it('E8 gives up a subscription that was never read only after twelve tries and three days', () => {
    const tries = createReader()
    for (let refusal = 0; refusal < 100; refusal++) {
      expect(tries.reads(REFUSED).nextInMs).not.toBeNull()
    }
    tries.pass(72 * HOUR)
    expect(tries.reads(REFUSED).nextInMs).toBeNull()
    const days = createReader()
    for (let refusal = 1; refusal < 12; refusal++) {
      expect(days.reads(REFUSED).nextInMs).not.toBeNull()
      days.pass(24 * HOUR)
    }
    expect(days.reads(REFUSED).nextInMs).toBeNull()
  })

  it('E8 gives a revived subscription all its tries again', () => {
    const reader = createReader()
    const refused = () => reader.reads(REFUSED).nextInMs
    for (let refusal = 1; refusal < 12; refusal++) refused()
    reader.pass(72 * HOUR)
    expect(refused()).toBeNull()
    reader.event()
    for (let refusal = 1; refusal < 12; refusal++) {
      expect(refused()).not.toBeNull()
      reader.pass(7 * HOUR)
    }
    expect(refused()).toBeNull()
  })

  it.each([
    ['refused', { kind: 'refused', code: 'platform_refused' } as const],
    ['refused a token', { kind: 'token_refused' } as const],
  ])('E20 never gives up a subscription that was read once, however long it is %s', (_how, result) => {
    const reader = createKnown()
    let most = 0
    for (let reads = 0; reader.elapsed() < 30 * 24 * HOUR; reads++) {
      const { nextInMs, moved } = reader.reads(result, { belief: 'many' })
      expect(moved).toBeUndefined()
      expect(nextInMs).not.toBeNull()
      reader.pass(nextInMs as number)
      most = Math.max(most, nextInMs as number)
      expect(reads).toBeLessThan(5_000)
    }
    // In the end it is read as often as the reconcile, and soon again after a request.
    expect(most).toBe(24 * HOUR)
    reader.event()
    expect(reader.reads(result, { belief: 'many' }).nextInMs).toBe(5 * SECOND)
    expect(reader.reads(found_('suspended', 2)).moved).toMatchObject({ from: 'purchased', to: 'suspended' })
  })

  it('E21 does not give up a subscription that was never read while the platform serves no other', () => {
    const reader = createReader()
    for (let reads = 0; reads < 40; reads++) {
      const { nextInMs } = reader.reads(REFUSED, { belief: 'unproven' })
      expect(nextInMs).toBeLessThanOrEqual(24 * HOUR)
      reader.pass(nextInMs as number)
    }
    expect(reader.elapsed()).toBeGreaterThan(72 * HOUR)
    expect(reader.reads(REFUSED).nextInMs).toBeNull()
  })

  it.each([
    ['missing', { kind: 'missing' } as const],
    ['refused a token', { kind: 'token_refused' } as const],
  ])(
    'D20 reads a subscription that was never read and is %s twice again within the wait, and then verifies',
    (_how, result) => {
      const reader = createReader()
      const at: number[] = []
      for (let reads = 0; reads < 6; reads++) {
        const { nextInMs, verifying } = reader.reads(result, { waitMs: 2 * SECOND })
        expect(verifying).toBe(true)
        reader.pass(nextInMs as number)
        at.push(reader.elapsed())
      }
      expect(at.slice(0, 2)).toEqual([500, 1_700])
      expect(at.slice(2).map((time, i) => time - (at[i + 1] as number))).toEqual([...VERIFY_DELAYS_MS])
      expect(reader.reads(result, { waitMs: 2 * SECOND }).verifying).toBe(false)
    },
  )
})
