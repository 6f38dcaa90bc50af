import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../lib/base/clock.js'
import { entitlementNow } from '../../lib/entitlement/entitlement-change.js'
import type { Subscription } from '../../lib/store/port/store.js'
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

describe('what handlers are told of a business now', () => {
  it('are the items that entitle it, each once, sorted', () => {
    expect(now(read('pro'), read('basic'), read('pro'), read('team', { state: 'canceled' }))).toEqual([
      true,
      ['basic', 'pro'],
    ])
    expect(now(read('pro', { state: 'canceled' }))).toEqual([true, []])
    expect(now()).toEqual([true, []])
  })

  it('is not known while nothing but an uncertain subscription may entitle it', () => {
    expect(now(read('pro', { readAt: NOW - 73 * HOUR }))[0]).toBe(false)
    expect(now(read('pro', { state: 'odd' }), read('team', { state: 'canceled' }))[0]).toBe(false)
    expect(now(subscriptionOf({ quiet: true }))[0]).toBe(false)
  })

  it('does not wait for what was only announced', () => {
    expect(now(subscriptionOf(), read('pro', { state: 'canceled' }))).toEqual([true, []])
  })

  it('counts an uncertain item as when it was last read, if another one entitles the business', () => {
    const stale = { readAt: NOW - 73 * HOUR }
    expect(now(read('basic'), read('pro', { ...stale, entitles: true }))).toEqual([true, ['basic', 'pro']])
    expect(now(read('basic'), read('pro', { state: 'odd', entitles: true }))).toEqual([
      true,
      ['basic', 'pro'],
    ])
    expect(now(read('basic'), read('pro', { state: 'odd', entitles: false }))).toEqual([true, ['basic']])
  })
})

function now(...subscriptions: Subscription[]): [known: boolean, items: string[]] {
  const { decision, entitledItems } = entitlementNow('b', subscriptions, RULES, NOW)
  return [decision.known, entitledItems]
}

function read(
  item: string,
  { state = 'purchased', ...more }: Partial<Subscription> & { state?: string } = {},
) {
  return subscriptionOf({
    record: { ...record(state, 1), purchasable_uid: item },
    state,
    readAt: NOW,
    pending: false,
    ...more,
  })
}
