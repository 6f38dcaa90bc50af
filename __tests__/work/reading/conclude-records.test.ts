import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import { createKnown, createReader, found_, record } from '../../support/scenes/reader.js'

describe('a read that shows a record', () => {
  it('is verified once more for each event that it did not answer', () => {
    const reader = createKnown()
    reader.event()
    reader.event()
    expect(reader.reads(found_('suspended', 2))).toMatchObject({ nextInMs: 5 * SECOND, urgency: 3 })
    expect(reader.reads(found_('purchased', 3))).toMatchObject({ nextInMs: 24 * HOUR, urgency: 4 })
  })

  it('answers an event by a different state alone, even with the same date', () => {
    const reader = createKnown('purchased', 5)
    reader.event()
    expect(reader.reads(found_('suspended', 5)).nextInMs).toBe(24 * HOUR)
  })

  it('restarts the verifications if it is the first record', () => {
    const reader = createReader()
    reader.event()
    for (let reads = 0; reads < 3; reads++) reader.reads({ kind: 'missing' })
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(5 * SECOND)
  })

  it('is verified if it is the first one and an update named the subscription: it may be the state before that', () => {
    const reader = createReader()
    reader.claim.updateAt = reader.start
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(5 * SECOND)
    reader.pass(5 * SECOND)
    expect(reader.reads(found_('suspended', 2))).toMatchObject({ nextInMs: 24 * HOUR, clearUpdate: true })
  })

  it('needs no verification for an event after all of them were made', () => {
    const reader = createKnown()
    reader.event()
    for (let reads = 0; reads < 5; reads++) reader.reads(found_('purchased', 1))
    reader.event()
    expect(reader.reads(found_('suspended', 2)).nextInMs).toBe(24 * HOUR)
  })

  it('never schedules a verification later than the reconcile', () => {
    const reader = createKnown()
    reader.event()
    expect(reader.reads(found_('purchased', 1), { reconcileEveryMs: SECOND }).nextInMs).toBe(SECOND)
  })

  it('forgets an uninstall only if there was one', () => {
    const reader = createReader()
    expect(reader.reads(found_('purchased', 1)).clearUninstalled).toBe(false)
  })

  it('of another business is one change if no record was known before', () => {
    const reader = createReader()
    const there: ReadResult = { kind: 'found', record: { ...record('purchased', 1), business_uid: 'other' } }
    expect(reader.reads(there).moves).toEqual([
      { businessUid: 'other', from: null, to: 'purchased', record: there.record },
    ])
  })

  it('of another business is two changes even if the state is the same', () => {
    const reader = createKnown()
    const before = reader.claim.subscription.record
    const there = { ...record('purchased', 2), business_uid: 'other' }
    expect(reader.reads({ kind: 'found', record: there }).moves).toEqual([
      { businessUid: 'b', from: 'purchased', to: null, record: before },
      { businessUid: 'other', from: null, to: 'purchased', record: there },
    ])
  })
})

describe('a read that shows an older record', () => {
  it('settles the request, and is verified with growing pauses', () => {
    const reader = createKnown('suspended', 5)
    reader.event()
    const reads = Array.from({ length: 5 }, () => reader.reads(found_('purchased', 4)))
    expect(reads.map(({ nextInMs }) => nextInMs)).toEqual([
      5 * SECOND,
      30 * SECOND,
      2 * MINUTE,
      10 * MINUTE,
      HOUR,
    ])
    for (const read of reads) {
      expect(read).toMatchObject({ settled: true, failure: null, urgency: 3, moves: [] })
    }
  })

  it('restarts its hour when the record is still older', () => {
    const reader = createKnown('suspended', 9)
    reader.reads(found_('purchased', 4))
    reader.pass(HOUR)
    expect(reader.reads(found_('purchased', 3)).moved).toBeUndefined()
    reader.pass(HOUR - 1)
    expect(reader.reads(found_('purchased', 3)).moved).toBeUndefined()
    reader.pass(1)
    expect(reader.reads(found_('purchased', 3)).moved).toMatchObject({ to: 'purchased' })
  })
})
