import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../lib/base/clock.js'
import type { Subscription } from '../../lib/store/port/store.js'
import { createAnswers } from '../support/scenes/answers.js'
import { record, ruled, subscriptionOf } from '../support/scenes/reader.js'

const MAX_STALE_MS = 72 * HOUR

/** Answers by a rule that ends access at the `expiration_date` of a subscription. */
function answers(ends: Record<string, number | null>) {
  const rules = {
    maxStaleMs: MAX_STALE_MS,
    entitledWhen: ruled(({ expiration_date }) => ({ entitled: true, until: expiration_date ?? null })),
  }
  const lab = createAnswers({ rules })
  const now = lab.clock.now()
  lab.have(Object.entries(ends).map(([item, inMs]) => subscription(item, now, inMs)))
  const iso = (inMs: number) => new Date(now + inMs).toISOString()
  return { ...lab, iso }
}

function subscription(item: string, readAt: number, endsInMs: number | null): Subscription {
  const expiration_date = endsInMs === null ? null : new Date(readAt + endsInMs).toISOString()
  return subscriptionOf({
    subscriptionUid: `s-${item}`,
    record: { ...record('purchased', 1), uid: `s-${item}`, purchasable_uid: item, expiration_date },
    state: 'purchased',
    readAt,
    requestedAt: null,
    pending: false,
  })
}

describe('access with an end', () => {
  it('is told beforehand, and ends at its time, also between two looks into the store', async () => {
    const { isEntitled, explain, clock, iso, looks } = answers({ basic: 3_000 })
    const before = await explain('b')
    expect(before).toMatchObject({ entitled: true, accessUntil: iso(3_000), reason: 'purchased' })
    expect(before.explanation).toContain(`confirmed 0 s ago; access until ${iso(3_000)}.`)
    expect(before.subscriptions).toMatchObject([{ accessUntil: iso(3_000) }])
    await clock.advance(2_999)
    expect([await isEntitled('b'), looks()]).toEqual([true, 1])
    await clock.advance(1)
    expect(await isEntitled('b')).toBe(false)
    const after = await explain('b')
    expect(after).toMatchObject({ known: true, reason: 'denied_by_rule', accessUntil: null })
    expect(after.explanation).toMatch(`purchased, confirmed 3 s ago; access ended at ${iso(3_000)}.`)
    expect(after.subscriptions).toMatchObject([{ entitled: false, accessUntil: iso(3_000) }])
  })

  it('is not refused as one in seconds, however long ago it ended', async () => {
    const { explain, iso } = answers({ basic: -365 * 24 * HOUR })
    expect((await explain('b')).explanation).toContain(`access ended at ${iso(-365 * 24 * HOUR)}`)
  })

  it('ends with the last subscription that gives it, and with none if one has no end', async () => {
    const two = answers({ basic: 3_000, pro: 9_000 })
    expect(await two.explain('b')).toMatchObject({ accessUntil: two.iso(9_000) })
    expect(await two.explain('b', { purchasableUid: 'basic' })).toMatchObject({ accessUntil: two.iso(3_000) })
    await two.clock.advance(3_000)
    const asked = ['basic', 'pro'].map((purchasableUid) => two.isEntitled('b', { purchasableUid }))
    expect(await Promise.all(asked)).toEqual([false, true])
    const open = answers({ basic: 3_000, pro: null })
    expect(await open.explain('b')).toMatchObject({ entitled: true, accessUntil: null })
  })

  it('is not given by the last answer while the store is down, once its end has passed', async () => {
    const { explain, clock, fail } = answers({ basic: HOUR })
    expect((await explain('b')).entitled).toBe(true)
    fail()
    await clock.advance(HOUR - 1)
    expect(await explain('b')).toMatchObject({ entitled: true, stale: true })
    await clock.advance(2)
    expect(await explain('b')).toMatchObject({ entitled: false, known: false, reason: 'store_unavailable' })
  })

  it('of one item is not given either, although another item has a later end or none', async () => {
    for (const basic of [null, 2 * HOUR]) {
      const { isEntitled, explain, clock, fail } = answers({ basic, pro: HOUR })
      await explain('b')
      fail()
      await clock.advance(HOUR + 1)
      expect(await isEntitled('b', { purchasableUid: 'pro' })).toBe(false)
      expect(await isEntitled('b', { purchasableUid: 'basic' })).toBe(true)
      expect(await explain('b')).toMatchObject({ entitled: true, stale: true, entitledItems: ['basic'] })
    }
  })

  it('compares ends as times, also in the year 10000', async () => {
    const { explain, iso } = answers({ basic: HOUR, pro: Date.UTC(10_000, 0, 1) })
    expect((await explain('b')).accessUntil).toBe(iso(Date.UTC(10_000, 0, 1)))
  })

  it('is stale when its evidence is too old, although its end has not come', async () => {
    const { explain, clock } = answers({ basic: 2 * MAX_STALE_MS })
    await clock.advance(MAX_STALE_MS + 1)
    expect(await explain('b')).toMatchObject({ entitled: false, reason: 'stale', accessUntil: null })
  })
})
