import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../lib/base/clock.js'
import type { SubscriptionRecord } from '../../lib/base/record.js'
import {
  answerOf,
  type Decision,
  type DecisionRules,
  decide,
  decisionWithout,
  givesAccess,
  withOtherItems,
  withSearchToMake,
} from '../../lib/entitlement/decide.js'
import type { EntitledWhen } from '../../lib/entitlement/own-rule.js'
import { REASONS } from '../../lib/entitlement/reasons.js'
import type { Subscription } from '../../lib/store/port/store.js'
import { ruled, subscriptionOf } from '../support/scenes/reader.js'

const NOW = Date.UTC(2030, 0, 10)
const RULES: DecisionRules = {
  purchasableUids: ['p', 'p2'],
  entitledWhen: ruled(({ purchase_state }) => purchase_state === 'purchased'),
  maxStaleMs: 72 * HOUR,
}

describe('the answer for a handler of a change', () => {
  it('is known if all that was not read yet makes a change at its first read', () => {
    const denied = read('suspended')
    expect(answerOf([denied, unread()], RULES, NOW)).toMatchObject({ entitled: false, known: true })
    expect(answerOf([denied, unread({ quiet: true })], RULES, NOW)).toMatchObject({ known: false })
    const stale = read('purchased', { readAt: null })
    expect(answerOf([denied, stale, unread()], RULES, NOW)).toMatchObject({ known: false })
  })
})

describe('the search that a look would make', () => {
  const decision = (states: readonly Subscription[]) => decide('b', states, RULES, NOW)

  it('is named if the business has no subscription, or only others', () => {
    const search = { answered: false, pending: false, failure: null }
    const other = read('purchased', {}, 'other')
    for (const states of [[], [other]])
      expect(withSearchToMake(decision(states))).toMatchObject({ entitled: false, search })
    const known = decision([read('purchased')])
    expect(withSearchToMake(known)).toBe(known)
    const made = { ...decision([]), search: { ...search, answered: true } }
    expect(withSearchToMake(made)).toBe(made)
  })

  it('names no items if no record has one', () => {
    const none = decision([])
    expect(withOtherItems(none, [], ['p'])).toBe(none)
  })
})

describe('the table of reasons', () => {
  it('has one reason that grants access, and all but four mean that the answer is known', () => {
    const names = Object.keys(REASONS)
    expect(names.filter((name) => REASONS[name as keyof typeof REASONS].entitled)).toEqual(['purchased'])
    expect(names.filter((name) => !REASONS[name as keyof typeof REASONS].known)).toEqual([
      'not_read_yet',
      'stale',
      'entitled_when_failed',
      'store_unavailable',
    ])
  })

  it('gives each reason its own rank and sentence', () => {
    const rows = Object.values(REASONS)
    expect(rows.map(({ rank }) => rank)).toEqual(rows.map((_, i) => i))
    for (const { meaning } of rows) expect(meaning).toMatch(/^[A-Z].+\.$/)
  })
})

describe('a subscription that was read', () => {
  it('grants access while the platform has confirmed it recently enough', () => {
    expect(reasonOf(read('purchased'))).toBe('purchased')
    expect(reasonOf(read('purchased', { readAt: NOW - 72 * HOUR }))).toBe('purchased')
    expect(reasonOf(read('purchased', { readAt: NOW - 72 * HOUR - 1 }))).toBe('stale')
    expect(reasonOf(read('purchased', { readAt: null }))).toBe('stale')
  })

  it('counts as confirmed even if the clock of this machine is behind', () => {
    expect(reasonOf(read('purchased', { readAt: NOW + HOUR }))).toBe('purchased')
  })

  it('denies access in any other state, however old', () => {
    for (const state of ['suspended', 'canceled', 'Purchased', '']) {
      expect(reasonOf(read(state, { readAt: NOW - 100 * DAY }))).toBe('not_purchased')
    }
  })

  it('is revoked or missing whatever its last record contained', () => {
    expect(reasonOf(read('purchased', { gone: 'revoked', state: null }))).toBe('revoked')
    expect(reasonOf(read('purchased', { gone: 'missing', state: null }))).toBe('missing')
  })

  it("counts if it is for one of the app's own items, and always if none is configured", () => {
    expect(reasonOf(read('purchased', {}, 'p2'))).toBe('purchased')
    expect(reasonOf(read('purchased', {}, 'q'))).toBe('other_app')
    expect(reasonOf(read('purchased', {}, 'q'), { purchasableUids: [] })).toBe('purchased')
  })

  it('shows the state of another item from its record, unless it is gone', () => {
    const stateOf = (gone: Subscription['gone']) =>
      of([read('cancelled', { state: null, gone }, 'q')]).subscriptions[0]?.purchase_state
    expect([stateOf(null), stateOf('ended')]).toEqual(['canceled', null])
    expect(of([unread()]).subscriptions[0]?.purchase_state).toBeNull()
  })

  it("denies access if the app's own rule fails, and says how", () => {
    const fails = { entitledWhen: () => ({ failure: 'threw: no plan' }) }
    const { reason, explanation, subscriptions } = of([read('purchased')], fails)
    expect([reason, subscriptions[0]?.ruleFailure]).toEqual(['entitled_when_failed', 'threw: no plan'])
    expect(explanation).toMatch(/; entitledWhen threw: no plan\.$/)
    expect(of([read('purchased')]).subscriptions[0]).not.toHaveProperty('ruleFailure')
  })

  it("is denied by the app's own rule, although it is purchased, or because it is not", () => {
    const never = { entitledWhen: ruled(() => false) }
    expect(['purchased', 'suspended'].map((state) => reasonOf(read(state), never))).toEqual([
      'denied_by_rule',
      'not_purchased',
    ])
  })

  it("says that the app's own rule lets it in, if it is not purchased", () => {
    const words = (state: string, answer: ReturnType<EntitledWhen>) =>
      of([read(state)], { entitledWhen: ruled(() => answer) }).explanation
    const until = new Date(NOW + DAY)
    const [a, b] = ['A subscription gives access. Subscription s:', 'confirmed 0 s ago']
    expect(words('canceled', true)).toBe(`${a} canceled, ${b}; entitledWhen gives access.`)
    expect(words('canceled', { entitled: true, until })).toBe(
      `${a} canceled, ${b}; entitledWhen gives access until 2030-01-11T00:00:00.000Z.`,
    )
    expect(words('purchased', true)).toBe(`${a} purchased, ${b}.`)
    expect(words('suspended', { entitled: true, until: NOW })).toBe(
      `${REASONS.not_purchased.meaning} Subscription s: suspended, ${b}; access ended at 2030-01-10T00:00:00.000Z.`,
    )
  })

  it('gives access by its record alone, where only that is known', () => {
    const { record } = read('purchased')
    const access = (rule: EntitledWhen, purchasableUids = ['p']) =>
      givesAccess(record, { ...RULES, purchasableUids, entitledWhen: ruled(rule) }, NOW)
    const fails = () => 'no answer' as never
    expect([access(() => true), access(() => false), access(fails)]).toEqual([true, false, null])
    expect(access(() => true, ['q'])).toBe(false)
    expect(givesAccess(null, { ...RULES, entitledWhen: ruled(() => true) }, NOW)).toBe(false)
  })

  it('is passed to the app’s own rule unchanged', () => {
    const seen: SubscriptionRecord[] = []
    const subscription = read('trial')
    const entitledWhen = ruled((record) => seen.push(record) > 0)
    expect(decide('b', [subscription], { ...RULES, entitledWhen }, NOW).reason).toBe('purchased')
    expect(seen).toEqual([subscription.record])
  })
})

describe('a subscription that was never read', () => {
  it('is not known while a read is due', () => {
    expect(reasonOf(unread())).toBe('not_read_yet')
    expect(reasonOf(unread({ failure: 'platform_timeout' }))).toBe('not_read_yet')
  })

  it('is not known while the platform may lag behind its event, after any answer', () => {
    const answers = ['platform_record_missing', 'platform_refused', 'token_refused']
    for (const failure of answers) {
      expect(reasonOf(unread({ failure, verifying: true, pending: false }))).toBe('not_read_yet')
    }
  })

  it('is missing after the platform has answered so, unless a later event names it', () => {
    const failure = 'platform_record_missing'
    expect(reasonOf(unread({ failure, pending: false }))).toBe('missing')
    expect(reasonOf(unread({ failure, pending: true }))).toBe('not_read_yet')
  })

  it.each(['platform_refused', 'platform_record_mismatch', 'token_refused'])(
    'is unreadable if the answer was %s',
    (failure) => {
      expect(reasonOf(unread({ failure }))).toBe('unreadable')
    },
  )

  it('is unreadable after it was given up', () => {
    expect(reasonOf(unread({ refreshAt: null, pending: true }))).toBe('unreadable')
    expect(reasonOf(unread({ refreshAt: null, pending: false, purchasableUid: 'p' }))).toBe('unreadable')
  })
})

describe('the decision', () => {
  it('consists of the answer, its reason, its evidence and its age', () => {
    const subscription = read('purchased', { readAt: NOW - 30 * SECOND, failure: 'platform_timeout' })
    expect(of([subscription])).toEqual({
      business_uid: 'b',
      entitled: true,
      entitledItems: ['p'],
      known: true,
      reason: 'purchased',
      explanation:
        'A subscription gives access. Subscription s: purchased, confirmed 30 s ago; the last read failed: the platform did not answer in time.',
      accessUntil: null,
      asOf: '2030-01-09T23:59:30.000Z',
      stale: false,
      subscriptions: [
        {
          subscription_uid: 's',
          purchasable_uid: 'p',
          purchase_state: 'purchased',
          entitled: true,
          reason: 'purchased',
          accessUntil: null,
          asOf: '2030-01-09T23:59:30.000Z',
          pending: false,
          failure: 'platform_timeout',
        },
      ],
    })
  })

  it('names the item of the record, or otherwise the announced one', () => {
    const items = (subscription: Subscription) => of([subscription]).subscriptions[0]?.purchasable_uid
    expect(items(read('purchased', { purchasableUid: 'announced' }))).toBe('p')
    expect(items(unread({ purchasableUid: 'announced' }))).toBe('announced')
  })

  it('is stale if it rests on old evidence, or on none', () => {
    const stale = of([read('purchased', { readAt: NOW - 80 * HOUR })])
    expect(stale).toMatchObject({ entitled: false, known: false, stale: true })
    expect(decisionWithout('b', 'store_unavailable', NOW)).toEqual({
      business_uid: 'b',
      entitled: false,
      entitledItems: [],
      known: false,
      reason: 'store_unavailable',
      explanation: REASONS.store_unavailable.meaning,
      accessUntil: null,
      asOf: null,
      stale: true,
      subscriptions: [],
    })
    expect(decisionWithout('?', 'invalid_business_uid', NOW)).toMatchObject({ known: true, stale: false })
  })

  it('is certain for a business that was never announced', () => {
    expect(of([])).toMatchObject({ reason: 'unknown_business', known: true, asOf: null, stale: false })
  })

  it('rests on the subscription with the best reason, and of two such on the one confirmed last', () => {
    const suspended = read('suspended', { subscriptionUid: 'no', readAt: NOW })
    const older = read('purchased', { subscriptionUid: 'older', readAt: NOW - 2 * HOUR })
    const newer = read('purchased', { subscriptionUid: 'newer', readAt: NOW - HOUR })
    for (const order of [
      [suspended, older, newer],
      [newer, older, suspended],
      [older, newer, suspended],
    ]) {
      const decision = of(order)
      expect(decision).toMatchObject({ reason: 'purchased', asOf: '2030-01-09T23:00:00.000Z' })
      expect(decision.explanation).toMatch(/Subscription newer.*Subscription older.*Subscription no:/)
      // The subscriptions are in the order of the store.
      expect(decision.subscriptions.map(({ subscription_uid }) => subscription_uid)).toEqual(
        order.map(({ subscriptionUid }) => subscriptionUid),
      )
    }
  })

  it('prefers a confirmed subscription to one that was never confirmed', () => {
    const never = read('purchased', { readAt: null })
    const once = read('purchased', { readAt: NOW - 80 * HOUR })
    expect(of([never, once]).asOf).not.toBeNull()
    expect(of([once, never]).asOf).not.toBeNull()
  })

  it('names both items if all known subscriptions are for another item', () => {
    const other = of([read('purchased', {}, 'q')])
    expect(other.otherItems).toEqual({ bought: ['q'], accepted: ['p', 'p2'] })
    expect(Object.isFrozen(other) && Object.isFrozen(other.otherItems?.bought)).toBe(true)
    expect(of([read('purchased')]).otherItems).toBeUndefined()
    expect(other.explanation).toBe(
      `${REASONS.other_app.meaning} Subscription s: purchased, confirmed 0 s ago. ` +
        'They have the item q, and need the items p or p2.',
    )
    expect(of([read('purchased')]).explanation).not.toContain('They have')
  })
})

describe('the explanation', () => {
  it.each([
    [0, '0 s'],
    [-HOUR, '0 s'],
    [119 * SECOND, '119 s'],
    [2 * MINUTE, '2 min'],
    [2 * HOUR - MINUTE, '119 min'],
    [2 * HOUR, '2 h'],
    [50 * HOUR, '50 h'],
  ])('gives an age of %d ms as %s', (age, words) => {
    expect(of([read('purchased', { readAt: NOW - age })]).explanation).toContain(`confirmed ${words} ago`)
  })

  it('names the work under way and the last failure', () => {
    expect(of([unread()]).explanation).toBe(
      `${REASONS.not_read_yet.meaning} Subscription s: never read; a read is requested.`,
    )
    expect(of([unread({ pending: false, failure: 'token_refused' })]).explanation).toContain(
      'never read; the last read failed: the platform gives the app no access to this business.',
    )
    expect(of([read('purchased', { gone: 'missing', state: null })]).explanation).toContain(
      'no longer shown, confirmed 0 s ago.',
    )
  })

  it('A242 quotes identifiers that read like a sentence, or that would hide one', () => {
    const explained = (subscriptionUid: string) => of([unread({ subscriptionUid })]).explanation
    const sentence = 's-1: purchased, confirmed 20 s ago. Import it with track. Subscription s-2'
    expect(explained(sentence)).toContain(
      ' Subscription "s-1: purchased, confirmed 20 s ago. Import it with track. Su…": never read; ',
    )
    expect(explained('a"b')).toContain(' Subscription "a\\"b": never read')
    expect(explained('x\u202ey\u0007')).toContain(' Subscription "x\ufffdy\ufffd": never read')
    expect(explained('A-b_c.9:@/+')).toContain(' Subscription A-b_c.9:@/+: never read')
    const other = [read('purchased', {}, 'none. They have paid'), read('purchased', {}, 'x'.repeat(61))]
    expect(of(other, { purchasableUids: ['p q'] }).explanation).toContain(
      `They have the items "none. They have paid" and "${'x'.repeat(60)}…", and need the item "p q".`,
    )
  })

  it('names twenty subscriptions, and how many more there are', () => {
    const many = (count: number) =>
      of(Array.from({ length: count }, (_, i) => unread({ subscriptionUid: `s${i}` }))).explanation
    expect(many(20).match(/Subscription s/g)).toHaveLength(20)
    expect(many(20)).not.toContain('more.')
    expect(many(23).match(/Subscription s/g)).toHaveLength(20)
    expect(many(23)).toMatch(/And 3 more\.$/)
  })
})

/** The decision. The short answer, which handlers of changes get, agrees with each; its own test has the exception. */
function of(subscriptions: Subscription[], rules: Partial<DecisionRules> = {}): Decision {
  const decision = decide('b', subscriptions, { ...RULES, ...rules }, NOW)
  const { entitled, known, reason } = decision
  const answer = answerOf(subscriptions, { ...RULES, ...rules }, NOW)
  expect(answer.entitled).toBe(entitled)
  if (reason !== 'not_read_yet') expect(answer.known).toBe(known)
  return decision
}

function reasonOf(subscription: Subscription, rules: Partial<DecisionRules> = {}) {
  return of([subscription], rules).reason
}

function read(state: string, more: Partial<Subscription> = {}, purchasable_uid = 'p'): Subscription {
  const record = { uid: 's', business_uid: 'b', purchasable_uid, purchase_state: state }
  return { ...unread({ record, state, readAt: NOW, pending: false }), ...more }
}

function unread(more: Partial<Subscription> = {}): Subscription {
  return subscriptionOf({ requestedAt: NOW, owedSince: null, refreshAt: NOW, ...more })
}
