import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { Move } from '../../../lib/work/reading/facts.js'
import { VERIFY_DELAYS_MS } from '../../../lib/work/reading/schedule.js'
import { EVAL_TYPESCRIPT } from '../../support/processes/processes.js'
import { createKnown, createReader, found_, record } from '../../support/scenes/reader.js'

describe('the conclusion from a read', () => {
  it('treats the first record of a subscription as a change from nothing', () => {
    const reader = createReader()
    const { moved, found, nextInMs } = reader.reads(found_('purchased', 1))
    expect(moved).toMatchObject({ from: null, to: 'purchased' })
    expect(found).toMatchObject({ state: 'purchased', gone: null })
    expect(nextInMs).toBe(24 * HOUR)
  })

  it('D7 verifies a first record that is older than the event: the read may lag, and the first event may be lost', () => {
    const reader = createReader()
    reader.pass(DAY)
    reader.claim.subscription.requestedAt = reader.start + DAY
    expect(reader.reads(found_('suspended', 1)).nextInMs).toBe(5 * SECOND)
    const second = reader.reads(found_('purchased', 2))
    expect(second.moved).toMatchObject({ from: 'suspended', to: 'purchased' })
    expect(second.nextInMs).toBe(24 * HOUR)
  })

  it('D7 does not verify an old first record that an import or a person asked for', () => {
    for (const cause of ['import', 'request', 'reconcile'] as const) {
      const reader = createReader()
      Object.assign(reader.claim, { cause })
      reader.claim.subscription.requestedAt = reader.start + DAY
      expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(24 * HOUR)
    }
  })

  it('D7 verifies a read that shows no change after an event, with growing pauses, and then reconciles', () => {
    const reader = createKnown()
    reader.event()
    const pauses = VERIFY_DELAYS_MS.map(() => reader.reads(found_('purchased', 1)).nextInMs)
    expect(pauses).toEqual([5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE])
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(24 * HOUR)
  })

  it('D7 stops verifying when the record changes, however late', () => {
    const reader = createKnown()
    reader.event()
    reader.reads(found_('purchased', 1))
    reader.reads(found_('purchased', 1))
    const late = reader.reads(found_('suspended', 2))
    expect(late.moved).toMatchObject({ from: 'purchased', to: 'suspended' })
    expect(late.nextInMs).toBe(24 * HOUR)
  })

  it('D7 does not treat changes of unrelated fields as the change of the event', () => {
    const reader = createKnown()
    reader.event()
    for (const name of ['one name', 'another']) {
      const read = found_('purchased', 1)
      if (read.kind === 'found') Object.assign(read.record, { display_name: name })
      expect(reader.reads(read).nextInMs).toBeLessThan(HOUR)
    }
  })

  it('does not verify a reconcile, which no event requested', () => {
    const reader = createKnown()
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(24 * HOUR)
  })

  it('D9 keeps the newer record if the platform shows an older one', () => {
    const reader = createKnown('suspended', 5)
    reader.event()
    const older = reader.reads(found_('purchased', 4))
    expect(older.moved).toBeUndefined()
    expect(reader.state()).toBe('suspended')
    expect(older.nextInMs).toBe(5 * SECOND)
  })

  it('D9 does not count a read of an older record as a confirmation', () => {
    const reader = createKnown('purchased', 5)
    const readAt = reader.readAt()
    reader.pass(HOUR)
    reader.reads(found_('purchased', 4))
    expect(reader.readAt()).toBe(readAt)
  })

  it("D9 accepts an older record that the platform has shown for an hour, because the platform's clock was set back", () => {
    const reader = createKnown('suspended', 5)
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

  it('D9 accepts it after the hour even if further events arrive', () => {
    const reader = createKnown('suspended', 5)
    let conclusion = reader.reads(found_('purchased', 4))
    for (let minutes = 0; minutes < 60; minutes++) {
      expect(conclusion.moved).toBeUndefined()
      reader.pass(MINUTE)
      reader.event()
      conclusion = reader.reads(found_('purchased', 4))
    }
    expect(conclusion.moved).toMatchObject({ from: 'suspended', to: 'purchased' })
  })

  it('D9 restarts the hour if the platform shows a different older record', () => {
    const reader = createKnown('suspended', 5)
    reader.reads(found_('purchased', 3))
    reader.pass(HOUR)
    expect(reader.reads(found_('canceled', 4)).moved).toBeUndefined()
  })

  it('D8 applies the later of two reads with the same updated_at', () => {
    const reader = createKnown('purchased', 5)
    expect(reader.reads(found_('suspended', 5)).moved).toMatchObject({ from: 'purchased', to: 'suspended' })
  })

  it.each([undefined, null, '', 'yesterday', 17])(
    'continues reading with an updated_at of %p',
    (updated_at) => {
      const reader = createKnown('purchased', 5)
      const odd: ReadResult = {
        kind: 'found',
        record: { ...record('suspended', 5), updated_at: updated_at as never },
      }
      expect(reader.reads(odd).moved).toMatchObject({ to: 'suspended' })
    },
  )

  it.each(['UTC', 'Asia/Kathmandu', 'America/New_York'])('D9 reads updated_at as UTC, even in %s', (TZ) => {
    const times = [
      '2026-01-02T03:04:05.678Z',
      '2026-01-02T03:04:05.678',
      '2026-01-02 03:04:05.678',
      '2026-01-02T05:04:05.678+02:00',
      '2026-01-01T22:04:05.678-05:00',
    ]
    const code = `const { updatedAtMs } = require(${JSON.stringify(join(__dirname, '../../../lib/base/record.ts'))})
      console.log(JSON.stringify(${JSON.stringify(times)}.map((updated_at) => updatedAtMs({ updated_at }))))`
    const env = { ...process.env, TZ }
    const out = execFileSync(process.execPath, [...EVAL_TYPESCRIPT, code], {
      env,
      encoding: 'utf8',
    })
    expect(JSON.parse(out)).toEqual(times.map(() => Date.UTC(2026, 0, 2, 3, 4, 5, 678)))
  })

  it('treats both spellings of canceled as one state', () => {
    const reader = createKnown('canceled', 1)
    expect(reader.reads(found_('cancelled', 2)).moved).toBeUndefined()
  })

  it('D21 accepts an older record after an hour even if its unknown fields and its date change', () => {
    const reader = createKnown('suspended', 9)
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

  it('D27 verifies a read without a date that differs in an unknown field only, as the lag of an event', () => {
    const reader = createReader()
    const shown = (state: string, fields: object): ReadResult => ({
      kind: 'found',
      record: { ...record(state, 1), updated_at: null, ...fields },
    })
    reader.reads(shown('purchased', { served_by: 1 }))
    reader.event()
    expect(reader.reads(shown('purchased', { served_by: 2 })).nextInMs).toBe(5 * SECOND)
    expect(
      reader.reads(shown('purchased', { served_by: 3, purchase_price: '9.00' })).nextInMs,
    ).toBeGreaterThan(HOUR)
  })
})
