import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, systemClock } from '../../lib/base/clock.js'
import { createOwnRule, type EntitledWhen } from '../../lib/entitlement/own-rule.js'
import { gracePeriod, paidThrough } from '../../lib/entitlement/rules.js'
import { TRANSITIONS } from '../../lib/testing/transitions.js'
import { EVAL_TYPESCRIPT } from '../support/processes/processes.js'
import { record } from '../support/scenes/reader.js'

const NOW = Date.UTC(2030, 5, 15, 12)
const at = (time: number) => new Date(time).toISOString()

function answer(rule: EntitledWhen, state: string, more = {}, now = NOW) {
  return createOwnRule({ entitledWhen: rule, clock: systemClock }).answer(
    { ...record(state, 1), ...more },
    now,
  )
}

const OPEN = { entitled: true, until: null }
const CLOSED = { entitled: false, until: null }

describe('the ready rules', () => {
  it('agree with each state that the transition table leads to', () => {
    const dates = { updated_at: at(NOW - HOUR), expiration_date: at(NOW + DAY) }
    const until = { paidThrough: NOW + DAY, gracePeriod: NOW - HOUR + DAY }
    for (const { next } of TRANSITIONS) {
      const paid = answer(paidThrough(), next, dates)
      const grace = answer(gracePeriod(DAY), next, dates)
      const ended = { entitled: true, until: until.paidThrough }
      expect([next, paid]).toEqual([next, { purchased: OPEN, suspended: CLOSED, canceled: ended }[next]])
      const inGrace = { entitled: true, until: until.gracePeriod }
      expect([next, grace]).toEqual([next, { purchased: OPEN, suspended: inGrace, canceled: CLOSED }[next]])
    }
  })

  it('end at their time exactly', () => {
    const end = { expiration_date: at(NOW), updated_at: at(NOW) }
    expect(answer(paidThrough(), 'canceled', end, NOW - 1)).toEqual({ entitled: true, until: NOW })
    expect(answer(paidThrough(), 'canceled', end, NOW)).toEqual(CLOSED)
    expect(answer(gracePeriod(DAY), 'suspended', end, NOW + DAY - 1)).toEqual({
      entitled: true,
      until: NOW + DAY,
    })
    expect(answer(gracePeriod(DAY), 'suspended', end, NOW + DAY)).toEqual(CLOSED)
  })

  it('know both spellings of canceled, and a date without a time', () => {
    const day = { expiration_date: '2030-06-15' }
    for (const state of ['canceled', 'cancelled'])
      expect(answer(paidThrough(), state, day)).toEqual({ entitled: true, until: Date.UTC(2030, 5, 16) })
    expect(answer(paidThrough(), 'canceled', day, Date.UTC(2030, 5, 16))).toEqual(CLOSED)
  })

  it('read a time without a zone as UTC, wherever the app runs', () => {
    const texts = ['', '.000', 'Z', ' UTC', '+00:00', '-0000'].map((end) => `2030-06-15T14:00:00${end}`)
    const more = ['2030-06-15 14:00', '2030-06-15T19:45:00+05:45', '2030-06-15 09:00:00-0500']
    const script = `const { paidThrough } = require(${JSON.stringify(join(__dirname, '../../lib/entitlement/rules.ts'))})
      const record = (expiration_date) => ({ purchase_state: 'canceled', expiration_date })
      const ends = ${JSON.stringify([...texts, ...more])}.map((text) => paidThrough()(record(text), { now: 0 }).until)
      console.log(JSON.stringify(ends))`
    for (const TZ of ['Asia/Kathmandu', 'America/New_York']) {
      const env = { ...process.env, TZ }
      const out = execFileSync(process.execPath, [...EVAL_TYPESCRIPT, script], { env, encoding: 'utf8' })
      expect(JSON.parse(out)).toEqual([...texts, ...more].map(() => Date.UTC(2030, 5, 15, 14)))
    }
  })

  it.each([
    ...[null, undefined, '', 'soon', 4_102_444_800_000, {}, ['2030-06-30']],
    // The same form is a day in one country and another day, or none, in another.
    ...['06/30/2030', '30.06.2030', 'June 30, 2030', '2030/06/30', '2030-9-5', '2030-07', '2031', '20300630'],
    ...[
      '2030-06-31',
      '2031-02-29T10:00:00Z',
      '2030-13-01',
      '2030-06-30T25:00:00Z',
      '2030-06-30T10:00:00 CEST',
    ],
  ])('deny without a date that can be read: %p', (date) => {
    const dates = { expiration_date: date, updated_at: date }
    expect(answer(paidThrough(), 'canceled', dates)).toEqual(CLOSED)
    expect(answer(gracePeriod(DAY), 'suspended', dates)).toEqual(CLOSED)
    expect(answer(paidThrough(), 'purchased', dates)).toEqual(OPEN)
  })

  it('can be joined', () => {
    const [paid, grace] = [paidThrough(), gracePeriod(DAY)]
    const both: EntitledWhen = (...asked) => paid(...asked) || grace(...asked)
    const dates = { updated_at: at(NOW), expiration_date: at(NOW + HOUR) }
    expect(answer(both, 'canceled', dates)).toEqual({ entitled: true, until: NOW + HOUR })
    expect(answer(both, 'suspended', dates)).toEqual({ entitled: true, until: NOW + DAY })
    expect(answer(both, 'other', dates)).toEqual(CLOSED)
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e20, '1000' as never])(
    'refuse a period of %p',
    (ms) => {
      expect(() => gracePeriod(ms)).toThrow(expect.objectContaining({ code: 'argument_invalid' }))
    },
  )
})
