import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../lib/clock.js'
import type { ReadResult } from '../lib/platform/read-result.js'
import type { Move } from '../lib/work/conclusion.js'
import { VERIFY_DELAYS_MS } from '../lib/work/read-schedule.js'
import { EVAL_TYPESCRIPT } from './support/processes.js'
import { createReader, found_, REFUSED, record } from './support/reader.js'

describe('the conclusion from a read', () => {
  it('takes the first record of a subscription as a change from nothing', () => {
    const reader = createReader()
    const { moved, found, nextInMs } = reader.reads(found_('purchased', 1))
    expect(moved).toMatchObject({ from: null, to: 'purchased' })
    expect(found).toMatchObject({ state: 'purchased', gone: null })
    expect(nextInMs).toBe(24 * HOUR)
  })

  it('D7 verifies a read that shows no change after an event, with growing pauses, and then reconciles', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.event()
    const pauses = VERIFY_DELAYS_MS.map(() => reader.reads(found_('purchased', 1)).nextInMs)
    expect(pauses).toEqual([5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE])
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(24 * HOUR)
  })

  it('D7 stops verifying when the record changes, however late', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.event()
    reader.reads(found_('purchased', 1))
    reader.reads(found_('purchased', 1))
    const late = reader.reads(found_('suspended', 2))
    expect(late.moved).toMatchObject({ from: 'purchased', to: 'suspended' })
    expect(late.nextInMs).toBe(24 * HOUR)
  })

  it('D7 does not take unrelated fields that change as the change of the event', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.event()
    for (const name of ['one name', 'another']) {
      const read = found_('purchased', 1)
      if (read.kind === 'found') Object.assign(read.record, { display_name: name })
      expect(reader.reads(read).nextInMs).toBeLessThan(HOUR)
    }
  })

  it('does not verify a reconcile, which no event requested', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(24 * HOUR)
  })

  it('D9 keeps the newer record when the platform shows an older one', () => {
    const reader = createReader()
    reader.reads(found_('suspended', 5))
    reader.event()
    const older = reader.reads(found_('purchased', 4))
    expect(older.moved).toBeUndefined()
    expect(reader.state()).toBe('suspended')
    expect(older.nextInMs).toBe(5 * SECOND)
  })

  it('D9 does not take a read of an older record as a confirmation', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 5))
    const readAt = reader.readAt()
    reader.pass(HOUR)
    reader.reads(found_('purchased', 4))
    expect(reader.readAt()).toBe(readAt)
  })

  it('D9 accepts an older record that the platform has shown for an hour: its clock was set back', () => {
    const reader = createReader()
    reader.reads(found_('suspended', 5))
    reader.event()
    let conclusion = reader.reads(found_('purchased', 4))
    for (let reads = 0; reads < 10 && !conclusion.moved; reads++) {
      expect(reader.elapsed()).toBeLessThan(HOUR)
      reader.pass(conclusion.nextInMs as number)
      conclusion = reader.reads(found_('purchased', 4))
    }
    expect(conclusion.moved).toMatchObject({ from: 'suspended', to: 'purchased' })
    expect(reader.elapsed()).toBeGreaterThanOrEqual(HOUR)
  })

  it('D9 accepts it after the hour also when further events arrive', () => {
    const reader = createReader()
    reader.reads(found_('suspended', 5))
    let conclusion = reader.reads(found_('purchased', 4))
    for (let minutes = 0; minutes < 60; minutes++) {
      expect(conclusion.moved).toBeUndefined()
      reader.pass(MINUTE)
      reader.event()
      conclusion = reader.reads(found_('purchased', 4))
    }
    expect(conclusion.moved).toMatchObject({ from: 'suspended', to: 'purchased' })
  })

  it('D9 restarts the hour when the platform shows a different older record', () => {
    const reader = createReader()
    reader.reads(found_('suspended', 5))
    reader.reads(found_('purchased', 3))
    reader.pass(HOUR)
    expect(reader.reads(found_('canceled', 4)).moved).toBeUndefined()
  })

  it('D8 takes the later of two reads with the same updated_at', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 5))
    expect(reader.reads(found_('suspended', 5)).moved).toMatchObject({ from: 'purchased', to: 'suspended' })
  })

  it.each([undefined, null, '', 'yesterday', 17])(
    'continues reading with an updated_at of %p',
    (updated_at) => {
      const reader = createReader()
      reader.reads(found_('purchased', 5))
      const odd: ReadResult = {
        kind: 'found',
        record: { ...record('suspended', 5), updated_at: updated_at as never },
      }
      expect(reader.reads(odd).moved).toMatchObject({ to: 'suspended' })
    },
  )

  it.each(['UTC', 'Asia/Kathmandu', 'America/New_York'])('D9 takes updated_at as UTC, also in %s', (TZ) => {
    const times = [
      '2026-01-02T03:04:05.678Z',
      '2026-01-02T03:04:05.678',
      '2026-01-02 03:04:05.678',
      '2026-01-02T05:04:05.678+02:00',
      '2026-01-01T22:04:05.678-05:00',
    ]
    const code = `const { updatedAtMs } = require(${JSON.stringify(join(__dirname, '../lib/record.ts'))})
      console.log(JSON.stringify(${JSON.stringify(times)}.map((updated_at) => updatedAtMs({ updated_at }))))`
    const env = { ...process.env, TZ }
    const out = execFileSync(process.execPath, [...EVAL_TYPESCRIPT, code], {
      env,
      encoding: 'utf8',
    })
    expect(JSON.parse(out)).toEqual(times.map(() => Date.UTC(2026, 0, 2, 3, 4, 5, 678)))
  })

  it('treats both spellings of canceled as one state', () => {
    const reader = createReader()
    reader.reads(found_('canceled', 1))
    expect(reader.reads(found_('cancelled', 2)).moved).toBeUndefined()
  })

  it('D12 denies a record that disappears only after three reads over a minute', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
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

  it('D26 believes no record to be gone while those of most businesses vanish, and then reads it three times more', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    const many = { manyVanished: () => true }
    reader.pass(reader.reads({ kind: 'missing' }).nextInMs as number)
    reader.pass(reader.reads({ kind: 'missing' }).nextInMs as number)
    for (let read = 1; read < 20; read++) {
      const { moved, failure, nextInMs } = reader.reads({ kind: 'missing' }, many)
      expect([moved, failure]).toEqual([undefined, 'platform_record_missing'])
      if (read < 8) expect(nextInMs).toBe(2 ** read * SECOND)
      expect(nextInMs).toBeLessThanOrEqual(HOUR / 2)
      reader.pass(nextInMs as number)
    }
    for (const moves of [0, 0, 1]) {
      const { moved, nextInMs } = reader.reads({ kind: 'missing' })
      expect(moved === undefined ? 0 : 1).toBe(moves)
      reader.pass(nextInMs as number)
    }
  })

  it('D12 does not deny after three reads within a minute, which events may cause', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    for (let read = 0; read < 10; read++) {
      reader.event()
      expect(reader.reads({ kind: 'missing' }).moved).toBeUndefined()
      reader.pass(5 * SECOND)
    }
    reader.pass(10 * SECOND)
    expect(reader.reads({ kind: 'missing' }).moved).toMatchObject({ to: null })
  })

  it('D12 reads a missing record again, soon and then more and more rarely', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    for (let read = 0; read < 2; read++) {
      reader.reads({ kind: 'missing' })
      reader.pass(MINUTE)
    }
    const pauses = Array.from({ length: 5 }, () => reader.reads({ kind: 'missing' }).nextInMs)
    expect(pauses).toEqual([5 * SECOND, 30 * SECOND, 2 * MINUTE, 5 * MINUTE, 5 * MINUTE])
    expect(reader.reads(found_('purchased', 1)).moved).toMatchObject({ from: null, to: 'purchased' })
  })

  it('D12 confirms with every read that the record is still missing', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    for (let read = 0; read < 3; read++) {
      reader.pass(MINUTE)
      reader.reads({ kind: 'missing' })
    }
    const readAt = reader.readAt() as number
    reader.pass(HOUR)
    reader.reads({ kind: 'missing' })
    expect(reader.readAt()).toBe(readAt + HOUR)
  })

  it('D12 forgets two reads without the record when the third shows it', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.reads({ kind: 'missing' })
    reader.reads({ kind: 'missing' })
    expect(reader.reads(found_('purchased', 1)).moved).toBeUndefined()
    reader.pass(HOUR)
    expect(reader.reads({ kind: 'missing' }).moved).toBeUndefined()
  })

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

  it('D17 revokes when the business has uninstalled and the platform refuses its token', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.uninstall()
    expect(reader.reads({ kind: 'token_refused' }).moved).toMatchObject({ from: 'purchased', to: null })
  })

  it('D17 does not revoke after a refused token alone, nor after an uninstall alone', () => {
    const refusedOnly = createReader()
    refusedOnly.reads(found_('purchased', 1))
    expect(refusedOnly.reads({ kind: 'token_refused' }).moved).toBeUndefined()
    const uninstalledOnly = createReader()
    uninstalledOnly.reads(found_('purchased', 1))
    uninstalledOnly.uninstall()
    expect(uninstalledOnly.reads(found_('purchased', 1)).moved).toBeUndefined()
  })

  it('forgets an uninstall when the platform serves the business an hour later', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.uninstall()
    expect(reader.reads(found_('purchased', 1)).clearUninstalled).toBe(false)
    reader.pass(HOUR)
    expect(reader.reads(found_('purchased', 1)).clearUninstalled).toBe(true)
  })

  it('D17 restores a revoked subscription when the platform shows the record again', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.uninstall()
    reader.reads({ kind: 'token_refused' })
    expect(reader.reads(found_('purchased', 1)).moved).toMatchObject({ from: null, to: 'purchased' })
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
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    let most = 0
    for (let reads = 0; reader.elapsed() < 30 * 24 * HOUR; reads++) {
      const { nextInMs, moved } = reader.reads(result)
      expect(moved).toBeUndefined()
      expect(nextInMs).not.toBeNull()
      reader.pass(nextInMs as number)
      most = Math.max(most, nextInMs as number)
      expect(reads).toBeLessThan(5_000)
    }
    // Finally as often as the reconcile, and soon again after a request.
    expect(most).toBe(24 * HOUR)
    reader.event()
    expect(reader.reads(result).nextInMs).toBe(5 * SECOND)
    expect(reader.reads(found_('suspended', 2)).moved).toMatchObject({ from: 'purchased', to: 'suspended' })
  })

  it('E21 does not give up a subscription that was never read while the platform refuses all reads', () => {
    const reader = createReader()
    let lastTry = 0
    for (let reads = 0; reads < 40; reads++) {
      lastTry = reader.start + reader.elapsed()
      const { nextInMs } = reader.reads(REFUSED, { hasServedSince: () => false })
      expect(nextInMs).toBeLessThanOrEqual(24 * HOUR)
      reader.pass(nextInMs as number)
    }
    expect(reader.elapsed()).toBeGreaterThan(72 * HOUR)
    const asked: number[] = []
    expect(reader.reads(REFUSED, { hasServedSince: (time) => asked.push(time) > 0 }).nextInMs).toBeNull()
    // Served since the last try: an earlier answer proves nothing about the present.
    expect(asked).toEqual([lastTry])
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

  it('D21 accepts an older record after an hour although its unknown fields and its date change', () => {
    const reader = createReader()
    reader.reads(found_('suspended', 9))
    let moved: Move | undefined
    for (let reads = 0; !moved && reads < 20; reads++) {
      const older = found_('purchased', 4 + Math.min(reads, 4))
      if (older.kind === 'found') older.record.display_name = `name ${reads}`
      const conclusion = reader.reads(older)
      moved = conclusion.moved
      if (!moved) reader.pass(conclusion.nextInMs as number)
    }
    expect(moved).toMatchObject({ from: 'suspended', to: 'purchased' })
    expect(reader.elapsed()).toBeLessThan(2 * HOUR)
  })

  it('D22 takes a record of another business as the end of one access and the start of another', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    const there: ReadResult = { kind: 'found', record: { ...record('purchased', 2), business_uid: 'other' } }
    expect(reader.reads(there).moves).toMatchObject([
      { businessUid: 'b', from: 'purchased', to: null },
      { businessUid: 'other', from: null, to: 'purchased' },
    ])
  })

  it('D22 keeps the business that a record names as a candidate, and drops one that was tried without success', () => {
    const mismatch = {
      kind: 'refused',
      code: 'platform_record_mismatch',
      recordBusinessUid: 'other',
    } as const
    const moved = createReader()
    expect(moved.reads(mismatch).candidate).toBeUndefined()
    moved.reads(found_('purchased', 1))
    expect(moved.reads(mismatch).candidate).toBe('other')
    const reader = createReader()
    const dropped: unknown[] = []
    for (let reads = 0; reads < 5; reads++)
      dropped.push(reader.reads({ kind: 'missing' }, { ofCandidate: { kind: 'missing' } }).candidate)
    // It may lag as any other: the last verification ends it.
    expect(dropped).toEqual([undefined, undefined, undefined, undefined, null])
  })

  it('D23 reads a revoked or missing record again, more rarely the longer it is gone', () => {
    const reader = createReader()
    reader.reads(found_('purchased', 1))
    reader.uninstall()
    const pauses: number[] = []
    const until = [MINUTE, HOUR, 6 * HOUR, 24 * HOUR, 100 * HOUR]
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
    // An event is followed up at once.
    reader.event()
    expect(reader.reads({ kind: 'token_refused' }).nextInMs).toBe(5 * SECOND)
  })

  it('E6 waits as long as the platform asks when it limits the rate', () => {
    const reader = createReader()
    const { nextInMs, settled } = reader.reads({ kind: 'throttled', retryAfterMs: MINUTE })
    expect(settled).toBe(false)
    expect(nextInMs).toBeGreaterThanOrEqual(MINUTE * 0.8)
  })
})
