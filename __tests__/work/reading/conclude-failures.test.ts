import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import { createKnown, createReader, found_, REFUSED } from '../../support/scenes/reader.js'

const MISSING: ReadResult = { kind: 'missing' }
const TOKEN_REFUSED: ReadResult = { kind: 'token_refused' }
const OUTAGE: ReadResult = { kind: 'outage', code: 'platform_timeout' }

describe('a read that fails', () => {
  it.each([
    [MISSING, 'platform_record_missing', true],
    [TOKEN_REFUSED, 'token_refused', false],
    [REFUSED, 'platform_refused', false],
    [OUTAGE, 'platform_timeout', false],
    [{ kind: 'throttled' }, 'platform_throttled', false],
    [{ kind: 'credentials_refused' }, 'app_credentials_refused', false],
  ] as [ReadResult, string, boolean][])(
    'stores the code, changes nothing, and settles the request only if the platform answered: %j',
    (result, failure, settled) => {
      const first = createReader()
      expect(first.reads(result)).toMatchObject({ failure, settled, moves: [] })
      expect(first.reads(found_('purchased', 1))).toMatchObject({ failure: null, settled: true, urgency: 4 })
      // A known record stays after the first such answer.
      expect(first.reads(result)).toMatchObject({ failure, settled: false, moves: [] })
    },
  )

  it('settles nothing for a revoked or missing subscription, unless the platform answers again that it is missing', () => {
    const reader = revoked()
    const refused = reader.reads(REFUSED)
    expect(refused).toMatchObject({ failure: 'platform_refused', settled: false, moves: [] })
    expect([refused.found, refused.urgency]).toEqual([undefined, undefined])
    const missing = reader.reads(MISSING)
    expect(missing).toMatchObject({ failure: 'platform_record_missing', settled: true, moves: [] })
    expect(missing.found).toMatchObject({ state: null, gone: 'revoked' })
  })

  it('doubles the pauses of an outage, and starts again with the next event', () => {
    const reader = createKnown()
    const pauses = () => Array.from({ length: 4 }, () => reader.reads(OUTAGE).nextInMs)
    expect(pauses()).toEqual([500, 1_000, 2_000, 4_000])
    reader.event()
    expect(pauses()).toEqual([500, 1_000, 2_000, 4_000])
  })

  it('waits a second longer than the platform asks, and two seconds if it names no time', () => {
    const reader = createReader()
    expect(reader.reads({ kind: 'throttled', retryAfterMs: MINUTE }).nextInMs).toBe(61 * SECOND)
    expect(reader.reads({ kind: 'throttled' }).nextInMs).toBe(2 * SECOND)
    expect(reader.reads({ kind: 'credentials_refused' }).nextInMs).toBe(30 * SECOND)
  })

  it('does not end the verification of a subscription that was never read', () => {
    const reader = createReader()
    expect(reader.reads(OUTAGE).verifying).toBe(false)
    expect(reader.reads(MISSING).verifying).toBe(true)
    expect(reader.reads(OUTAGE).verifying).toBe(true)
  })
})

describe('refusals of a subscription that has been read before', () => {
  /** No end before the refusals are final. */
  const LONG = { maxStaleMs: 1_000 * HOUR }

  it('are retried with doubling pauses, then twice an hour, until there are twelve over three days', () => {
    const reader = createKnown()
    const pauses = Array.from({ length: 10 }, () => reader.reads(REFUSED, LONG).nextInMs)
    expect(pauses.slice(0, 4)).toEqual([2_000, 4_000, 8_000, 16_000])
    expect(pauses[9]).toBe(5 * MINUTE)
    reader.pass(2 * HOUR)
    expect(reader.reads(REFUSED, LONG).nextInMs).toBe(12 * MINUTE)
    reader.pass(70 * HOUR - 1)
    expect(reader.reads(REFUSED, LONG).nextInMs).toBe(30 * MINUTE)
    reader.pass(1)
    expect(reader.reads(REFUSED, LONG).nextInMs).toBe(24 * HOUR)
  })

  it('are not final a millisecond before three days, however many there are', () => {
    const reader = createKnown()
    for (let refusal = 0; refusal < 20; refusal++) reader.reads(REFUSED, LONG)
    reader.pass(72 * HOUR - 1)
    expect(reader.reads(REFUSED, LONG).nextInMs).toBe(30 * MINUTE)
    reader.pass(1)
    expect(reader.reads(REFUSED, LONG).nextInMs).toBe(24 * HOUR)
  })

  it.each([
    [10 * HOUR, 30 * MINUTE],
    [72 * HOUR, 24 * HOUR],
  ])('that are final are verified with growing pauses after an event: after %i ms', (lastedMs, thenMs) => {
    const reader = createKnown()
    for (let refusal = 0; refusal < 12; refusal++) reader.reads(REFUSED, LONG)
    reader.pass(lastedMs)
    reader.event()
    const pauses = Array.from({ length: 5 }, () => reader.reads(REFUSED, LONG).nextInMs)
    expect(pauses).toEqual([5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, thenMs])
  })
})

describe('a subscription that was never read', () => {
  it('is not given up while an event is being verified', () => {
    const reader = createReader()
    for (let refusal = 0; refusal < 12; refusal++) reader.reads(REFUSED)
    reader.pass(72 * HOUR)
    reader.event()
    expect(reader.reads(REFUSED)).toMatchObject({ nextInMs: 5 * SECOND, verifying: true })
  })

  it('is read again early; the times count from the request, or from its creation when there was no request', () => {
    const reader = createReader()
    reader.claim.subscription.requestedAt = reader.start + 10 * MINUTE
    reader.pass(10 * MINUTE)
    expect(reader.reads(MISSING, { waitMs: 2 * SECOND }).nextInMs).toBe(500)
    const unasked = createReader()
    unasked.claim.subscription.requestedAt = null
    unasked.pass(100)
    expect(unasked.reads(MISSING, { waitMs: 2 * SECOND }).nextInMs).toBe(400)
  })

  it('keeps its progress after an uninstall, and no handler gets a change', () => {
    const reader = createReader()
    reader.uninstall()
    expect(reader.reads(TOKEN_REFUSED)).toMatchObject({ failure: 'token_refused', moves: [] })
  })
})

describe('a revoked or missing subscription', () => {
  it('is confirmed as revoked, and read again soon, then after half of the time since then', () => {
    const reader = createKnown()
    reader.uninstall()
    reader.reads(TOKEN_REFUSED)
    reader.pass(MINUTE)
    expect(reader.reads(TOKEN_REFUSED)).toMatchObject({
      found: { gone: 'revoked', state: null, record: { purchase_state: 'purchased' } },
      failure: 'token_refused',
      settled: true,
      urgency: 3,
      nextInMs: 5 * SECOND,
    })
    reader.pass(HOUR)
    const pauses = Array.from({ length: 4 }, () => reader.reads(TOKEN_REFUSED).nextInMs)
    expect(pauses).toEqual([30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR / 2])
  })

  it('becomes missing only by an answer of its own', () => {
    const reader = createKnown()
    reader.reads(MISSING)
    reader.reads(MISSING)
    reader.pass(MINUTE)
    expect(reader.reads(MISSING)).toMatchObject({
      failure: 'platform_record_missing',
      settled: true,
      urgency: 3,
    })
    const urgencies = Array.from({ length: 4 }, () => reader.reads(MISSING).urgency)
    expect(urgencies).toEqual([3, 3, 3, 4])
  })

  it('answers an event only by a change, not merely by being visible again', () => {
    const reader = revoked()
    reader.event()
    const back = reader.reads(found_('purchased', 2))
    expect(back).toMatchObject({ nextInMs: 5 * SECOND, urgency: 3 })
    expect(back.moved).toMatchObject({ from: null, to: 'purchased' })
  })
})

describe('a subscription that was never read and whose verifications are over', () => {
  it.each(['many', 'unproven'] as const)(
    'is still being verified while its no is held back: %s',
    (belief) => {
      const reader = createReader()
      for (let reads = 0; reads < 20; reads++) {
        expect(reader.reads(REFUSED, { belief }).verifying).toBe(true)
        reader.pass(10 * HOUR)
      }
      expect(reader.reads(REFUSED, { belief: 'believed' })).toMatchObject({
        verifying: false,
        nextInMs: null,
      })
    },
  )

  it('is not any more once others were served, and not given up before the refusals are final', () => {
    const reader = createReader()
    for (let reads = 0; reads < 4; reads++) {
      const { verifying, nextInMs } = reader.reads(REFUSED)
      expect(verifying).toBe(true)
      reader.pass(nextInMs ?? 0)
    }
    expect(reader.reads(REFUSED)).toMatchObject({ verifying: false, nextInMs: expect.any(Number) })
    // Then its no is definite until a further request, also during an outage.
    expect(reader.reads(REFUSED, { belief: 'unproven' }).verifying).toBe(false)
    reader.event()
    expect(reader.reads(REFUSED).verifying).toBe(true)
  })
})

describe('the candidate, another business that an event named', () => {
  const inVain = { ofCandidate: MISSING }

  it('is dropped when the platform shows it no record at the last verification either', () => {
    const reader = createReader()
    for (let reads = 0; reads < 4; reads++) {
      const { candidate, nextInMs } = reader.reads(MISSING, inVain)
      expect(candidate).toBeUndefined()
      reader.pass(nextInMs ?? 0)
    }
    expect(reader.reads(MISSING, inVain).candidate).toBeNull()
  })

  it.each([OUTAGE, TOKEN_REFUSED, REFUSED, undefined])(
    'is kept for three days after the last request while its own answer is %j',
    (ofCandidate) => {
      const reader = createReader()
      for (let reads = 0; reads < 8; reads++) {
        expect(reader.reads(MISSING, { ofCandidate }).candidate).toBeUndefined()
        reader.pass(10 * HOUR - 1)
      }
      expect(reader.reads(MISSING, { ofCandidate }).candidate).toBeNull()
    },
  )

  it('is kept for three days while the platform shows the record of the business of the row', () => {
    const reader = createReader()
    expect(reader.reads(found_('purchased', 1)).candidate).toBeUndefined()
    reader.pass(72 * HOUR - 1)
    expect(reader.reads(found_('purchased', 1)).candidate).toBeUndefined()
    reader.pass(1)
    expect(reader.reads(found_('purchased', 1)).candidate).toBeNull()
  })

  it('is none any more when its record is found', () => {
    const reader = createReader()
    reader.claim.candidateBusinessUid = 'b'
    expect(reader.reads(found_('purchased', 1)).candidate).toBeNull()
  })

  it('outlives the end of the record that it was named for, until the verifications after the end are over', () => {
    const reader = createKnown()
    reader.reads(MISSING, inVain)
    reader.reads(MISSING, inVain)
    reader.pass(MINUTE)
    const ofMissing = Array.from({ length: 5 }, () => reader.reads(MISSING, inVain).candidate)
    expect(ofMissing).toEqual([undefined, undefined, undefined, undefined, null])
    const uninstalled = createKnown()
    uninstalled.uninstall()
    uninstalled.reads(TOKEN_REFUSED, inVain)
    uninstalled.pass(MINUTE)
    const ofRevoked = Array.from({ length: 5 }, () => uninstalled.reads(TOKEN_REFUSED, inVain).candidate)
    expect(ofRevoked).toEqual([undefined, undefined, undefined, undefined, null])
    const refused = createKnown()
    refused.event()
    const dropped = Array.from({ length: 5 }, () => refused.reads(REFUSED, inVain).candidate)
    expect(dropped).toEqual([undefined, undefined, undefined, undefined, null])
  })

  it('of a revoked or missing subscription is tried while an event is being verified', () => {
    const reader = revoked()
    reader.event()
    const dropped = Array.from({ length: 5 }, () => reader.reads(REFUSED, inVain).candidate)
    expect(dropped).toEqual([undefined, undefined, undefined, undefined, null])
  })
})

/** A purchase, then an uninstall and a refusal. */
function revoked() {
  const reader = createKnown()
  reader.uninstall()
  reader.reads(TOKEN_REFUSED)
  reader.pass(MINUTE)
  reader.reads(TOKEN_REFUSED)
  return reader
}
