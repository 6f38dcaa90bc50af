import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../lib/base/clock.js'
import { answerNow, createEntitlementChanges, itemsOf } from '../../lib/entitlement/entitlement-change.js'
import type { Entry, StoredEntitlement, Subscription } from '../../lib/store/port/store.js'
import { record, ruled, subscriptionOf } from '../support/scenes/reader.js'

const NOW = Date.parse('2026-01-04T00:00:00Z')
const RULES = {
  purchasableUids: [],
  maxStaleMs: 72 * HOUR,
  entitledWhen: ruled(({ purchase_state }) => {
    if (purchase_state === 'odd') throw new Error('a mistake')
    return purchase_state === 'purchased'
  }),
}
const STALE = { readAt: NOW - 73 * HOUR }

describe('the items of a business', () => {
  it('are those of the subscriptions that entitled it when last read, each once, sorted', () => {
    const subscriptions = [read('pro'), read('basic'), read('pro'), read('team', { entitles: false })]
    expect(itemsOf(subscriptions, []).entitledItems).toEqual(['basic', 'pro'])
    expect(itemsOf([read('pro', { state: 'odd' })], []).entitledItems).toEqual(['pro'])
    expect(itemsOf([read('pro', STALE)], []).entitledItems).toEqual(['pro'])
    expect(itemsOf([subscriptionOf()], []).entitledItems).toEqual([])
  })

  it.each([
    ['a purchase', [], [read('pro')], [flip(null, 'pro')]],
    ['an end', ['pro'], [], [flip('pro', null)]],
    ['a change of the item', ['basic'], [read('pro')], [flip('basic', 'pro')]],
    ['a purchase, and another of the same item', [], [read('pro'), read('pro')], [flip(null, 'pro')]],
    [
      'two purchases of an item at once',
      [],
      [read('pro'), read('pro')],
      [flip(null, 'pro'), flip(null, 'pro')],
    ],
    ['an end and a beginning', ['pro'], [read('pro')], [flip('pro', null), flip(null, 'pro')]],
    ['a beginning and an end', [], [], [flip(null, 'pro'), flip('pro', null)]],
    ['a change of the item, and back', ['a'], [read('a')], [flip('a', 'b'), flip('b', 'a')]],
    ['a purchase beside an item of before', ['basic'], [read('basic'), read('pro')], [flip(null, 'pro')]],
    ['a purchase that has ended since', [], [], [flip(null, 'pro')]],
  ])('before its flips are known after %s', (_, before, now, flips) => {
    expect(itemsOf(now, flips).previousItems).toEqual(before)
  })
})

describe('the answer for a handler', () => {
  it('has the reason at the time of the call', () => {
    expect(answerNow('b', [read('pro')], RULES, NOW).reason).toBe('purchased')
    expect(answerNow('b', [read('pro', { state: 'suspended' })], RULES, NOW).reason).toBe('not_purchased')
    expect(answerNow('b', [read('pro', STALE)], RULES, NOW).reason).toBe('stale')
    expect(answerNow('b', [read('pro', { state: 'odd' })], RULES, NOW).reason).toBe('entitled_when_failed')
    expect(answerNow('b', [], RULES, NOW).reason).toBe('unknown_business')
  })

  it('has not that of a subscription that was only announced', () => {
    const ended = read('pro', { state: 'canceled' })
    expect(answerNow('b', [subscriptionOf(), ended], RULES, NOW).reason).toBe('not_purchased')
  })

  it('waits for the first read of a quiet import, which writes no entry', () => {
    expect(() => answerNow('b', [subscriptionOf({ quiet: true })], RULES, NOW)).toThrow(
      expect.objectContaining({ code: 'entitlement_unknown' }),
    )
    const givenUp = subscriptionOf({ quiet: true, refreshAt: null })
    expect(answerNow('b', [givenUp, read('pro')], RULES, NOW).reason).toBe('purchased')
  })
})

describe('the payload of several entries', () => {
  it('has what is true after all of them, with the id and the cause of the last one', async () => {
    const stored: StoredEntitlement[] = [
      { id: 'e1', business_uid: 'b', cause: 'event', before: 'basic', after: null },
      { id: 'e2', business_uid: 'b', cause: 'clock', before: null, after: 'pro' },
    ]
    const changeOf = createEntitlementChanges({
      store: { subscriptionsOf: async () => [read('pro')], entitlementsFrom: async () => stored },
      rules: RULES,
      now: () => NOW,
    })
    const entries = stored.map((payload) => ({ id: payload.id, payload: JSON.stringify(payload) }) as Entry)
    expect(await changeOf(entries)).toEqual({
      id: 'e2',
      business_uid: 'b',
      entitled: true,
      entitledItems: ['pro'],
      previousItems: ['basic'],
      reason: 'purchased',
      cause: 'clock',
      accessUntil: null,
    })
  })
})

function flip(before: string | null, after: string | null) {
  return { before, after }
}

/** A subscription that was read, and entitles unless `more` says otherwise. */
function read(
  item: string,
  { state = 'purchased', ...more }: Partial<Subscription> & { state?: string } = {},
) {
  return subscriptionOf({
    record: { ...record(state, 1), purchasable_uid: item },
    ...{ state, readAt: NOW, pending: false, entitles: true, ...more },
  })
}
