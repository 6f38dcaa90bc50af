import { describe, expect, it } from '@jest/globals'
import { HOUR, SECOND, systemClock } from '../../../lib/base/clock.js'
import type { SubscriptionRecord } from '../../../lib/base/record.js'
import { type ReadClaim, type Subscription, URGENCY } from '../../../lib/store/port/store.js'
import { type AccessOf, entitlementsOf, withAccess } from '../../../lib/work/reading/access.js'
import type { Conclusion } from '../../../lib/work/reading/facts.js'
import { createReader, record, subscriptionOf } from '../../support/scenes/reader.js'

const NOW = Date.parse('2026-01-01T12:00:00Z')
const PURCHASED = record('purchased', 1)
const READ = { found: { record: PURCHASED, state: 'purchased', gone: null } }

describe('whether a subscription gives access after a read', () => {
  it('is the answer of the rule about the record that is stored then', () => {
    expect(after(READ).entitles).toBe(true)
    expect(after({ found: { ...READ.found, record: record('suspended', 2) } }).entitles).toBe(false)
    expect(after({ failure: 'outage' }, { record: PURCHASED }).entitles).toBe(true)
    expect(after({ found: { ...READ.found, gone: 'missing' } }).entitles).toBe(false)
    expect(after({ failure: 'outage' }, { record: PURCHASED, gone: 'ended', entitles: true }).entitles).toBe(
      false,
    )
    expect(after({ failure: 'outage' }).entitles).toBe(false)
  })

  it('stays as it was while the rule gives no answer', () => {
    const broken = () => ({ failure: 'threw' })
    for (const entitles of [true, false]) expect(after(READ, { entitles }, broken).entitles).toBe(entitles)
  })
})

describe('the next read of a subscription whose answer ends', () => {
  const endsIn = (ms: number) => () => ({ entitled: true, until: NOW + ms })

  it('comes at that end, by the clock, if no read is due before', () => {
    const regular = { nextInMs: 24 * HOUR, urgency: URGENCY.reconcile }
    expect(after({ ...READ, ...regular }, {}, endsIn(HOUR))).toMatchObject({
      ...{ nextInMs: HOUR, urgency: URGENCY.verification, cause: 'clock' },
    })
    const untouched = after({ ...READ, ...regular }, {}, endsIn(25 * HOUR))
    expect(untouched).toMatchObject(regular)
    expect(untouched).not.toHaveProperty('cause')
  })

  it('keeps the class and the cause of a retry or a verification that comes earlier by it', () => {
    const retry = after({ failure: 'outage', nextInMs: 5 * HOUR }, { record: PURCHASED }, endsIn(HOUR))
    expect(retry.nextInMs).toBe(HOUR)
    expect(retry).not.toHaveProperty('cause')
    expect(retry).not.toHaveProperty('urgency')
  })

  it('is no earlier than two seconds from now, because an end may move', () => {
    expect(after({ ...READ, nextInMs: HOUR }, {}, endsIn(1)).nextInMs).toBe(2 * SECOND)
  })

  it('comes at the end of a no too, and never after the subscription was given up', () => {
    const opens = () => ({ entitled: false, until: NOW + HOUR })
    expect(after({ ...READ, nextInMs: 24 * HOUR }, {}, opens)).toMatchObject({
      entitles: false,
      nextInMs: HOUR,
    })
    expect(after({ ...READ, nextInMs: null }, {}, opens).nextInMs).toBeNull()
  })
})

describe('the entries about the entitlement of a business', () => {
  const flips = (before: Partial<Subscription>, entitles: boolean, shown: SubscriptionRecord = PURCHASED) => {
    const found = { record: shown, state: shown.purchase_state, gone: null }
    return entitlementsOf(claimOf({ record: PURCHASED, ...before }), { found, entitles }, systemClock).map(
      ({ businessUid, ...flip }) => [businessUid, flip.before, flip.after],
    )
  }

  it('are for a business whose access by the subscription begins, ends, or is of another item', () => {
    const other = { ...PURCHASED, purchasable_uid: 'other' }
    expect(flips({ entitles: false }, true)).toEqual([['b', null, 'p']])
    expect(flips({ entitles: true }, false)).toEqual([['b', 'p', null]])
    expect(flips({ entitles: true }, true, other)).toEqual([['b', 'p', 'other']])
    expect(flips({ entitles: true }, true)).toEqual([])
    expect(flips({ entitles: false }, false, other)).toEqual([])
  })

  it('are for both businesses of a move, as far as each has or had access by it', () => {
    const moved = { ...PURCHASED, business_uid: 'c', purchasable_uid: 'other' }
    const [ended, begun] = [
      ['b', 'p', null],
      ['c', null, 'other'],
    ]
    expect(flips({ entitles: true }, true, moved)).toEqual([ended, begun])
    expect(flips({ entitles: true }, false, moved)).toEqual([ended])
    expect(flips({ entitles: false }, true, moved)).toEqual([begun])
  })

  it('say what ended although the platform shows nothing any more', () => {
    const gone = { record: null, state: null, gone: 'missing' } as const
    const claim = claimOf({ record: PURCHASED, entitles: true })
    expect(entitlementsOf(claim, { found: gone, entitles: false }, systemClock)).toMatchObject([
      { businessUid: 'b', before: 'p', after: null },
    ])
  })

  it('have the cause of the read, and each an id of its own', () => {
    const found = { ...READ.found, record: { ...PURCHASED, business_uid: 'c' } }
    const claim: ReadClaim = { ...claimOf({ record: PURCHASED, entitles: true }), cause: 'clock' }
    const entries = entitlementsOf(claim, { found, entitles: true }, systemClock)
    expect(entries.map(({ cause }) => cause)).toEqual(['clock', 'clock'])
    expect(new Set(entries.map(({ id }) => id)).size).toBe(2)
  })
})

function claimOf(subscription: Partial<Subscription>): ReadClaim {
  return { ...createReader().claim, subscription: subscriptionOf(subscription) }
}

function after(
  conclusion: Partial<Conclusion>,
  before: Partial<Subscription> = {},
  accessOf: AccessOf = ({ purchase_state }) => ({ entitled: purchase_state === 'purchased', until: null }),
): Conclusion {
  const concluded = { settled: true, failure: null, progress: null, nextInMs: HOUR, moves: [], ...conclusion }
  return withAccess(claimOf(before), concluded, { accessOf, now: NOW })
}
