import { describe, expect, it } from '@jest/globals'
import { ERROR_CODES } from '../../lib/base/errors.js'
import { nextStepOf } from '../../lib/entitlement/next-step.js'
import { REASONS, type Reason, type ReasonRow } from '../../lib/entitlement/reasons.js'
import { FAILURES, failureInWords, itemsInWords } from '../../lib/entitlement/words.js'
import type { HistoryItem } from '../../lib/index.js'

const NOW = Date.parse('2026-03-01T12:00:00Z')
const MINUTE = 60_000

describe('the next step', () => {
  const { next, action } = REASONS.not_purchased

  it('is whole sentences without a code word for every reason', () => {
    for (const { next, nextIf = {} } of Object.values<ReasonRow>(REASONS))
      for (const sentence of [next, ...Object.values(nextIf).map((step) => step.next)]) {
        expect(sentence).toMatch(/^[A-Z].{20,}[.]$/)
        expect(sentence).not.toMatch(/_|\bapp\.\w/)
      }
  })

  it('has a text for the customer, in whole sentences without a code word, that says nothing of an operator', () => {
    for (const { customer, nextIf = {} } of Object.values<ReasonRow>(REASONS))
      for (const text of [customer, ...Object.values(nextIf).map((step) => step.customer)]) {
        expect(text).toMatch(/^[A-Z].{20,}[.]$/)
        expect(text).not.toMatch(/_|\bapp\.\w|operator|developer|customer|track|database/)
      }
    expect(stepFor('not_purchased', [['not_purchased', 'suspended']]).customer).toContain(
      'pay on the marketplace',
    )
  })

  it('follows the state or the failure that all deciding subscriptions share', () => {
    const suspended: Judged = ['not_purchased', 'suspended']
    expect(stepFor('not_purchased', [suspended, suspended]).next).toContain('payment failed')
    expect(
      stepFor('not_purchased', [
        ['not_purchased', 'canceled'],
        ['missing', null],
      ]).next,
    ).toContain('was canceled')
    expect(stepFor('not_purchased', [['not_purchased', 'canceled'], suspended])).toMatchObject({
      next,
      action,
    })
    expect(stepFor('stale', [['stale', 'purchased', 'app_credentials_refused']]).action).toBe('health')
    expect(stepFor('unreadable', [['unreadable', null, 'platform_record_mismatch']]).action).toBe('none')
  })

  it('lets nobody who has bought again pay twice: another paid subscription is tracked first', () => {
    const steps = [
      stepFor('not_purchased'),
      stepFor('not_purchased', [['not_purchased', 'suspended']]),
      stepFor('not_purchased', [['not_purchased', 'canceled']]),
      stepFor('ended'),
    ]
    for (const { next, customer } of steps) {
      expect(next).toMatch(/another subscription that is paid, track it\. Else ask them/)
      expect(customer).toMatch(/another subscription that is paid, please send us its identifier/)
    }
    expect(stepFor('revoked').next).toMatch(/another subscription that is paid, track it\./)
  })

  it('names its action, by which the command line finds the command', () => {
    for (const row of Object.values<ReasonRow>(REASONS))
      for (const { next, action } of [row, ...Object.values(row.nextIf ?? {})]) {
        if (action === 'refresh') expect(next).toMatch(/\bread again\b/i)
        if (action === 'track') expect(next).toMatch(/\btrack\b/)
      }
  })

  it('asks whether the app is installed if the platform refuses a token for the one business', () => {
    for (const reason of ['unreadable', 'not_read_yet', 'stale'] as const)
      expect(stepFor(reason, [[reason, null, 'token_refused']])).toMatchObject({
        next: expect.stringContaining('Does it have the app installed?'),
        action: 'refresh',
      })
  })

  it('is that of the reason otherwise', () => {
    expect(stepFor('not_purchased', [['not_purchased', 'constructor']])).toMatchObject({ next, action })
    expect(stepFor('not_purchased')).toMatchObject({ next, action })
    expect(stepFor('unknown_business').action).toBe('track')
  })

  it('of a business without a subscription follows the search for one', () => {
    const searched = (reason: Reason, pending: boolean, failure: string | null = null) =>
      nextStepOf({ reason, subscriptions: [], search: { answered: !pending, pending, failure } }, [], NOW)
    expect(searched('unknown_business', false)).toMatchObject({
      next: expect.stringContaining('read again: the app searches again'),
      action: 'refresh',
    })
    const notMade = { answered: false, pending: false, failure: null }
    expect(nextStepOf({ reason: 'unknown_business', subscriptions: [], search: notMade })).toMatchObject({
      next: 'Read again: the app searches the platform for a purchase of this business.',
      action: 'refresh',
    })
    expect(searched('unknown_business', false, 'token_refused').next).toContain(
      'Does it have the app installed?',
    )
    for (const reason of ['not_read_yet', 'unknown_business'] as const) {
      const { next, action } = searched(reason, true, 'find_subscriptions_failed')
      expect([next, action]).toEqual([expect.stringContaining('its search has an error'), 'health'])
      expect(searched(reason, true, 'platform_timeout').action).toBe('health')
      expect(searched(reason, true).next).toBe(REASONS[reason].next)
    }
  })

  it('names the items that they have and need', () => {
    const otherItems = { bought: ['a', 'b'], accepted: ['p'] }
    expect(nextStepOf({ reason: 'other_app', otherItems, subscriptions: [] }).next).toBe(
      `They have the items a and b, and need the item p. ${REASONS.other_app.next}`,
    )
  })
})

describe('the next step of a payer', () => {
  const PAID: Judged[] = [['purchased', 'purchased']]

  it('is about the handler that failed, and names its entry', () => {
    expect(stepFor('purchased', PAID, [handled('dead', 'e1')])).toMatchObject({
      next: expect.stringMatching(/^The purchase is fine; setting it up failed, .*Send this to an operator/),
      action: 'replay',
      entryId: 'e1',
    })
    expect(stepFor('purchased', PAID, [handled('retrying', 'e2')])).toMatchObject({
      next: expect.stringContaining('the app tries again by itself'),
      action: 'replay',
      entryId: 'e2',
    })
  })

  it('asks nobody to wait a few minutes for a try that comes later', () => {
    const due = (inMs: number) => ({
      ...handled('retrying', 'e1'),
      dueAt: new Date(NOW + inMs).toISOString(),
    })
    expect(stepFor('purchased', PAID, [due(10 * MINUTE) as HistoryItem])).toMatchObject({
      next: expect.stringContaining('wait a few minutes'),
      customer: expect.stringContaining('try again in a few minutes'),
    })
    const later = stepFor('purchased', PAID, [due(10 * MINUTE + 1) as HistoryItem])
    expect(later).toMatchObject({
      next: expect.stringContaining('not soon: the failed entry shows when. Send this to an operator'),
      action: 'replay',
      entryId: 'e1',
    })
    expect(later.customer).not.toContain('minutes')
  })

  it('is to wait for a handler that has not answered so far, and after ten minutes to call an operator', () => {
    const entitlement = (agoMs: number): HistoryItem => ({
      ...item(agoMs, 'n1'),
      ...{ kind: 'handled', of: 'entitlement', name: '', outcome: 'waiting' },
      ...{ attempts: 0, error: null, dueAt: null },
    })
    const waiting = (of: (agoMs: number) => HistoryItem) => (agoMs: number) =>
      ({ ...of(agoMs), waiting: true }) as HistoryItem
    for (const open of [waiting(change), waiting(delivery), entitlement]) {
      const young = stepFor('purchased', PAID, [open(10 * MINUTE)])
      expect(young).toMatchObject({ next: expect.stringContaining('still setting it up'), action: 'none' })
      const old = stepFor('purchased', PAID, [open(10 * MINUTE + 1)])
      expect(old).toMatchObject({ next: expect.stringContaining('setting it up waits'), action: 'health' })
      expect(old.entryId).toBeUndefined()
    }
    const { next } = REASONS.purchased
    expect(stepFor('purchased', PAID, [change(MINUTE), delivery(MINUTE)]).next).toBe(next)
    expect(stepFor('purchased', PAID, [waiting(change)(MINUTE), handled('dead', 'e1')]).entryId).toBe('e1')
  })

  it('prefers an entry that is dead, and the newest of those', () => {
    const history = [
      handled('retrying', 'e1'),
      handled('dead', 'e2', 'application/installed'),
      handled('dead', 'e3', 'application/uninstalled'),
    ]
    expect(stepFor('purchased', PAID, history).entryId).toBe('e2')
  })

  it('counts only the newest outcome of each handler, and no unrecognised delivery', () => {
    const { next } = REASONS.purchased
    expect(stepFor('purchased', PAID, [handled('done', 'e2'), handled('dead', 'e1')]).next).toBe(next)
    const unrecognised = { ...handled('dead', 'e1', ''), of: 'delivery' } as HistoryItem
    expect(stepFor('purchased', PAID, [unrecognised]).next).toBe(next)
    const other = [handled('done', 'e2', 'application/installed'), handled('dead', 'e1')]
    expect(stepFor('purchased', PAID, other).entryId).toBe('e1')
  })

  it('is not about a handler while there is another cause', () => {
    expect(stepFor('stale', [['stale', 'purchased']], [handled('dead', 'e1')]).action).toBe('refresh')
  })
})

describe('the next step before the platform has answered', () => {
  it('says nothing of what it shows, and asks nobody to pay', () => {
    for (const judged of [[], [['not_read_yet', null]] as Judged[]]) {
      const { next, customer } = stepFor('not_read_yet', judged)
      expect(next).toMatch(/^The app has no answer of the platform so far/)
      expect(`${next} ${customer}`).not.toMatch(/\bpay\b|does not show/)
    }
  })
})

describe('the next step while the platform lags', () => {
  const SUSPENDED: Judged[] = [['not_purchased', 'suspended']]

  it('is to wait if they have paid, after a purchase event without a change', () => {
    const step = stepFor('not_purchased', SUSPENDED, [delivery(MINUTE), change(2 * MINUTE)])
    expect(step.next).toMatch(/If the customer has paid, wait .* Else ask them to pay/)
    expect(step).toMatchObject({ action: 'refresh' })
    expect(step.entryId).toBeUndefined()
    const missing: Judged = ['not_read_yet', null, 'platform_record_missing']
    expect(stepFor('not_read_yet', [missing]).next).toMatch(
      /If the customer has paid, wait .* Else ask them to pay/,
    )
  })

  it.each([
    ['the change followed', [change(MINUTE), delivery(2 * MINUTE)]],
    ['it is ten minutes ago', [delivery(10 * MINUTE)]],
    ['it was about an install', [delivery(MINUTE, 'application/installed')]],
    ['there was none', []],
  ])('is to pay if %s', (_why, history) => {
    expect(stepFor('not_purchased', SUSPENDED, history).next).toContain('The payment failed')
  })

  it('counts an event of a little less than ten minutes ago', () => {
    expect(stepFor('not_purchased', SUSPENDED, [delivery(10 * MINUTE - 1)]).next).toContain('just announced')
  })
})

describe('the words', () => {
  it('exist for every code of a failed read', () => {
    const codes = Object.keys(ERROR_CODES).filter((code) => code.startsWith('platform_'))
    expect(Object.keys(FAILURES)).toEqual(expect.arrayContaining(codes))
    for (const [code, words] of Object.entries(FAILURES)) {
      expect(words).toMatch(/^the [a-z ]+[a-z]$/)
      expect(failureInWords(code)).toBe(words)
    }
    for (const code of ['constructor', 'new_code', ''])
      expect(failureInWords(code)).toBe('an unexpected error')
  })

  it('list a few items', () => {
    expect(itemsInWords(['a'], 'or')).toBe('the item a')
    expect(itemsInWords(['a', 'b', 'c'], 'or')).toBe('the items a, b or c')
    expect(itemsInWords(['a', 'b', 'c', 'd', 'e'], 'and')).toBe('the items a, b, c, d and e')
    expect(itemsInWords(['a', 'b', 'c', 'd', 'e', 'f', 'g'], 'and')).toBe(
      'the items a, b, c, d, e and 2 more',
    )
  })
})

type Judged = [reason: Reason, purchase_state: string | null, failure?: string | null]

function stepFor(reason: Reason, judged: Judged[] = [], history: HistoryItem[] = []) {
  const subscriptions = judged.map(([each, purchase_state, failure = null]) => ({
    reason: each,
    purchase_state,
    failure,
  }))
  return nextStepOf({ reason, subscriptions }, history, NOW)
}

function item(agoMs: number, entryId: string) {
  return { id: entryId, at: new Date(NOW - agoMs).toISOString(), entryId, subscription_uid: null }
}

/** The outcome of a change, or of the event of this name. */
function handled(outcome: 'done' | 'retrying' | 'dead', entryId: string, name?: string): HistoryItem {
  return {
    ...item(0, entryId),
    ...{ kind: 'handled', of: name === undefined ? 'change' : 'delivery', name: name ?? '', outcome },
    ...{ attempts: 1, error: null, dueAt: null },
  }
}

function delivery(agoMs: number, name = 'purchasable_subscription/updated'): HistoryItem {
  return { ...item(agoMs, `d${agoMs}`), kind: 'delivery', name, waiting: false }
}

function change(agoMs: number): HistoryItem {
  const to = { from: 'purchased', to: 'suspended', gone: null, cause: 'event', entitledAfter: false } as const
  return { ...item(agoMs, `c${agoMs}`), kind: 'change', ...to, waiting: false }
}
