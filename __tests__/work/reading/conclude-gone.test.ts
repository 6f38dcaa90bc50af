import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import { VERIFY_DELAYS_MS } from '../../../lib/work/reading/schedule.js'
import { createKnown, createReader, found_, record } from '../../support/scenes/reader.js'

describe('the conclusion from a read', () => {
  it('D12 denies a record that disappears only after three reads over a minute', () => {
    const reader = createKnown()
    const first = reader.reads({ kind: 'missing' })
    expect(first.moved).toBeUndefined()
    reader.pass(first.nextInMs as number)
    const second = reader.reads({ kind: 'missing' })
    expect(second.moved).toBeUndefined()
    reader.pass(second.nextInMs as number)
    const third = reader.reads({ kind: 'missing' })
    expect(reader.elapsed()).toBe(MINUTE)
    expect(third.moved).toMatchObject({ from: 'purchased', to: null })
    expect(third.found).toMatchObject({ gone: 'missing', state: null })
  })

  it.each([
    ['missing', { kind: 'missing' }],
    ['ended', { kind: 'token_refused' }],
  ] as [string, ReadResult][])(
    'D26 holds an end back while those of most businesses end, and reads it again: %s',
    (gone, result) => {
      const reader = createKnown()
      if (gone === 'ended') reader.showsEnd()
      else for (const _ of [1, 2]) reader.pass(reader.reads(result).nextInMs as number)
      const pauses: number[] = []
      for (let read = 0; read < 30; read++) {
        const { moved, nextInMs } = reader.reads(result, { belief: 'many' })
        expect(moved).toBeUndefined()
        pauses.push(nextInMs as number)
        reader.pass(nextInMs as number)
      }
      expect(pauses.slice(0, 2)).toEqual([2 * SECOND, 2 * SECOND])
      expect(Math.max(...pauses.slice(2, 10))).toBeLessThanOrEqual(20 * SECOND)
      // A lasting one costs no more reads than any other refusal.
      expect(Math.min(...pauses.slice(20))).toBeGreaterThanOrEqual(2 * MINUTE)
      expect(reader.reads(result).found).toMatchObject({ gone })
    },
  )

  it('D12 reads a canceled record that disappears again as after a refusal, and counts these reads', () => {
    const missing = createKnown('canceled').reads({ kind: 'missing' })
    expect(missing.nextInMs).toBe(createKnown('canceled').reads({ kind: 'token_refused' }).nextInMs)
    expect(missing.nextInMs).not.toBe(createKnown().reads({ kind: 'missing' }).nextInMs)
    expect(JSON.parse(missing.progress as string)).toMatchObject({
      missing: 1,
      missingSince: expect.any(Number),
    })
  })

  it('D12 does not deny after three reads within a minute, which events may cause', () => {
    const reader = createKnown()
    for (let read = 0; read < 10; read++) {
      reader.event()
      expect(reader.reads({ kind: 'missing' }).moved).toBeUndefined()
      reader.pass(5 * SECOND)
    }
    reader.pass(10 * SECOND)
    expect(reader.reads({ kind: 'missing' }).moved).toMatchObject({ to: null })
  })

  it('D12 reads a missing record again, soon and then more and more rarely', () => {
    const reader = createKnown()
    for (let read = 0; read < 2; read++) {
      reader.reads({ kind: 'missing' })
      reader.pass(MINUTE)
    }
    const pauses = Array.from({ length: 5 }, () => reader.reads({ kind: 'missing' }).nextInMs)
    expect(pauses).toEqual([5 * SECOND, 30 * SECOND, 2 * MINUTE, 5 * MINUTE, 5 * MINUTE])
    expect(reader.reads(found_('purchased', 1)).moved).toMatchObject({ from: null, to: 'purchased' })
  })

  it('D12 confirms with every read that the record is still missing', () => {
    const reader = createKnown()
    for (let read = 0; read < 3; read++) {
      reader.pass(MINUTE)
      reader.reads({ kind: 'missing' })
    }
    const readAt = reader.readAt() as number
    reader.pass(HOUR)
    reader.reads({ kind: 'missing' })
    expect(reader.readAt()).toBe(readAt + HOUR)
  })

  it('D12 forgets two reads without the record if the third shows it', () => {
    const reader = createKnown()
    reader.reads({ kind: 'missing' })
    reader.reads({ kind: 'missing' })
    expect(reader.reads(found_('purchased', 1)).moved).toBeUndefined()
    reader.pass(HOUR)
    expect(reader.reads({ kind: 'missing' }).moved).toBeUndefined()
  })

  it('D17 revokes if the business has uninstalled and the platform refuses its token', () => {
    const reader = createKnown()
    reader.uninstall()
    // The first refusal may be a moment's.
    expect(reader.reads({ kind: 'token_refused' }).moved).toBeUndefined()
    for (let read = 0; reader.elapsed() < MINUTE; read++) {
      reader.pass(reader.reads({ kind: 'token_refused' }).nextInMs as number)
      expect(read).toBeLessThan(6)
    }
    expect(reader.reads({ kind: 'token_refused' }).moved).toMatchObject({ from: 'purchased', to: null })
  })

  it('D17 does not revoke after a refused token alone, nor after an uninstall alone', () => {
    const refusedOnly = createKnown()
    expect(refusedOnly.reads({ kind: 'token_refused' }).moved).toBeUndefined()
    const uninstalledOnly = createKnown()
    uninstalledOnly.uninstall()
    expect(uninstalledOnly.reads(found_('purchased', 1)).moved).toBeUndefined()
  })

  it('forgets an uninstall if the platform serves the business an hour later', () => {
    const reader = createKnown()
    reader.uninstall()
    expect(reader.reads(found_('purchased', 1)).clearUninstalled).toBe(false)
    reader.pass(HOUR)
    expect(reader.reads(found_('purchased', 1)).clearUninstalled).toBe(true)
  })

  it('D17 restores a revoked subscription when the platform shows the record again', () => {
    const reader = createKnown()
    revoke(reader)
    expect(reader.reads(found_('purchased', 1)).moved).toMatchObject({ from: null, to: 'purchased' })
  })

  it('D22 treats a record of another business as the end of one access and the start of another', () => {
    const reader = createKnown()
    const there: ReadResult = { kind: 'found', record: { ...record('purchased', 2), business_uid: 'other' } }
    expect(reader.reads(there).moves).toMatchObject([
      { businessUid: 'b', from: 'purchased', to: null },
      { businessUid: 'other', from: null, to: 'purchased' },
    ])
  })

  it('D22 drops a candidate that was tried without success', () => {
    const reader = createReader()
    const dropped: unknown[] = []
    for (let reads = 0; reads < 5; reads++) {
      const { candidate, nextInMs } = reader.reads({ kind: 'missing' }, { ofCandidate: { kind: 'missing' } })
      dropped.push(candidate)
      reader.pass(nextInMs ?? 0)
    }
    // The answer may lag like any other: the last verification ends it.
    expect(dropped).toEqual([undefined, undefined, undefined, undefined, null])
  })

  it('D23 reads a revoked or missing record again, more rarely the longer it is in this state', () => {
    const reader = createKnown()
    revoke(reader)
    const pauses: number[] = []
    const until = [30 * MINUTE, 2 * HOUR, 6 * HOUR, 24 * HOUR, 100 * HOUR]
    for (const time of until) {
      let { nextInMs } = reader.reads({ kind: 'token_refused' })
      while (reader.elapsed() < time) {
        expect(nextInMs).toBeGreaterThan(0)
        reader.pass(nextInMs as number)
        nextInMs = reader.reads({ kind: 'token_refused' }).nextInMs
      }
      pauses.push((nextInMs as number) / reader.elapsed())
      expect(nextInMs).toBeGreaterThanOrEqual(5 * MINUTE)
    }
    for (const pause of pauses.slice(1, 4)) expect(pause).toBeCloseTo(0.5, 1)
    expect((pauses[4] as number) * reader.elapsed()).toBe(24 * HOUR)
    // An event is verified at once.
    reader.event()
    expect(reader.reads({ kind: 'token_refused' }).nextInMs).toBe(5 * SECOND)
  })

  it.each([
    ['revoked', { kind: 'token_refused' }],
    ['missing', { kind: 'missing' }],
  ] as [string, ReadResult][])(
    'D28 verifies what was announced before a record was %s, once it is back',
    (gone, result) => {
      const reader = createKnown('suspended', 1)
      reader.event()
      reader.event()
      if (gone === 'revoked') reader.uninstall()
      else reader.event()
      for (let reads = 0; reader.claim.subscription.gone === null && reads < 9; reads++) {
        reader.reads(result)
        reader.pass(MINUTE)
      }
      expect(reader.claim.subscription.gone).toBe(gone)
      for (let reads = 0; reads < 9; reads++) reader.reads(result)
      // It is shown again, and each read lags a change behind.
      const waits = [2, 3, 4, 5].map((updated) => reader.reads(found_('suspended', updated)).nextInMs)
      expect(waits.slice(0, 3)).toEqual(VERIFY_DELAYS_MS.slice(0, 3))
      // The next read is a reconcile, or the one that refutes the uninstall.
      expect(waits[3]).toBeGreaterThan(Math.max(...VERIFY_DELAYS_MS))
    },
  )
})

function revoke(reader: ReturnType<typeof createReader>) {
  reader.uninstall()
  reader.reads({ kind: 'token_refused' })
  reader.pass(MINUTE)
  expect(reader.reads({ kind: 'token_refused' }).found).toMatchObject({ gone: 'revoked' })
}
