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

  it('is verified if it is the first one and more than a minute older than the event', () => {
    for (const [olderMs, nextInMs] of [
      [MINUTE, 24 * HOUR],
      [MINUTE + 1, 5 * SECOND],
    ] as const) {
      const reader = createReader()
      const updatedAt = Date.parse(record('purchased', 1).updated_at as string)
      reader.claim.subscription.requestedAt = updatedAt + olderMs
      expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(nextInMs)
    }
  })

  it('is what one of several events announced, even if it is the first one', () => {
    const reader = createReader()
    reader.update()
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(5 * SECOND)
    expect(reader.reads(found_('suspended', 2)).nextInMs).toBe(24 * HOUR)
  })

  it('is read again an hour after an uninstall, which it then refutes', () => {
    const reader = createKnown()
    reader.uninstall()
    reader.pass(10 * MINUTE)
    for (let reads = 0; reads < 4; reads++) reader.reads(found_('purchased', 1))
    expect(reader.reads(found_('purchased', 1))).toMatchObject({ nextInMs: 50 * MINUTE, urgency: 3 })
    reader.pass(50 * MINUTE)
    const refuting = reader.reads(found_('purchased', 1))
    expect(refuting).toMatchObject({ nextInMs: 24 * HOUR, urgency: 4, clearUninstalled: true })
  })

  it('ends an update that it shows, and any that is an hour old', () => {
    const reader = createKnown()
    reader.update()
    expect(reader.reads(found_('purchased', 1)).clearUpdate).toBe(false)
    expect(reader.reads(found_('suspended', 2)).clearUpdate).toBe(true)
    reader.update()
    reader.pass(HOUR - 1)
    expect(reader.reads(found_('suspended', 2)).clearUpdate).toBe(false)
    reader.pass(1)
    expect(reader.reads(found_('suspended', 2)).clearUpdate).toBe(true)
  })

  it('ends the end that another record showed, after the last verification or an hour', () => {
    const reader = createKnown()
    reader.showsEnd()
    const ends = Array.from({ length: 5 }, () => reader.reads(found_('purchased', 1)).clearEnd)
    expect(ends).toEqual([false, false, false, false, true])
    reader.showsEnd()
    reader.pass(HOUR)
    expect(reader.reads(found_('purchased', 1))).toMatchObject({ nextInMs: 5 * SECOND, clearEnd: true })
  })

  it('keeps a candidate that the platform has denied: the denial may lag', () => {
    const reader = createKnown()
    reader.claim.candidateBusinessUid = 'other'
    for (const result of [found_('purchased', 1), { kind: 'missing' } as const])
      expect(reader.reads(result, { ofCandidate: { kind: 'missing' } }).candidate).toBeUndefined()
    reader.showsEnd()
    const ended = reader.reads({ kind: 'token_refused' }, { ofCandidate: { kind: 'missing' } })
    expect([ended.found?.gone, ended.candidate]).toEqual(['ended', undefined])
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
