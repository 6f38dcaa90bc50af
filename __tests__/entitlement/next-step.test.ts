import { describe, expect, it } from '@jest/globals'
import { ERROR_CODES } from '../../lib/base/errors.js'
import { nextStepOf } from '../../lib/entitlement/next-step.js'
import { REASONS, type Reason, type ReasonRow } from '../../lib/entitlement/reasons.js'
import { nextStepFor } from '../../lib/entitlement/step-facts.js'
import { FAILURES, failureInWords, itemsInWords } from '../../lib/entitlement/words.js'

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

  it('asks nobody to pay while what was last read cannot be read again', () => {
    for (const state of ['suspended', 'canceled', 'on_hold']) {
      const judged: Judged = ['not_purchased', state, 'token_refused']
      expect(stepFor('not_purchased', [judged]).next).toContain('Does it have the app installed?')
      expect(stepFor('not_purchased', [judged]).customer).not.toMatch(/\b(pay|buy)\b/)
      expect(
        nextStepOf(
          { reason: 'not_purchased', subscriptions: subscriptionsOf([judged]) },
          new Map([['change_announced', '']]),
        ).next,
      ).toContain('Does it have the app installed?')
    }
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
      nextStepOf({ reason, subscriptions: [], search: { answered: !pending, pending, failure } })
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
  const stepWith = (...entries: Entry[]) => stepAmong('purchased', PAID, entries)

  it('is about the handler that failed, and names its entry', async () => {
    expect(await stepWith(dead('e1'))).toMatchObject({
      next: expect.stringMatching(/^The purchase is fine; setting it up failed, .*Send this to an operator/),
      action: 'replay',
      entryId: 'e1',
    })
    expect(await stepWith(retrying('e2'))).toMatchObject({
      next: expect.stringContaining('the app tries again by itself'),
      action: 'replay',
      entryId: 'e2',
    })
  })

  it('asks nobody to wait a few minutes for a try that comes later', async () => {
    expect(await stepWith(retrying('e1', { dueInMs: 10 * MINUTE }))).toMatchObject({
      next: expect.stringContaining('wait a few minutes'),
      customer: expect.stringContaining('try again in a few minutes'),
    })
    const later = await stepWith(retrying('e1', { dueInMs: 10 * MINUTE + 1 }))
    expect(later).toMatchObject({
      next: expect.stringContaining('not soon: the failed entry shows when. Send this to an operator'),
      action: 'replay',
      entryId: 'e1',
    })
    expect(later.customer).not.toContain('minutes')
  })

  it('prefers an entry that is dead, and the newest of those', async () => {
    const installed = { kind: 'event', name: 'application/installed' } as const
    const uninstalled = { kind: 'event', name: 'application/uninstalled' } as const
    expect((await stepWith(retrying('e3'), dead('e2', installed), dead('e1', uninstalled))).entryId).toBe(
      'e2',
    )
  })

  it('counts the newest try of each handler, until one is done, and no unrecognised delivery', async () => {
    const { next } = REASONS.purchased
    expect((await stepWith(done('e2'), dead('e1'))).next).toBe(next)
    expect((await stepWith(done('e1'), dead('e2'))).entryId).toBe('e2')
    expect((await stepWith(retrying('e2'), dead('e1'))).entryId).toBe('e2')
    expect((await stepWith(dead('e1', { kind: 'unrecognised' }))).next).toBe(next)
    const other = [done('e2', { kind: 'event', name: 'application/installed' }), dead('e1')]
    expect((await stepWith(...other)).entryId).toBe('e1')
  })

  it('is to wait for a handler that has not ended, and after ten minutes to call an operator', async () => {
    const waiting = (agoMs: number) => waitingSince(agoMs, 'entitlement')
    const soon = await stepWith(waiting(10 * MINUTE))
    expect(soon).toMatchObject({ next: expect.stringContaining('still setting it up'), action: 'none' })
    const overdue = await stepWith(waiting(10 * MINUTE + 1))
    expect(overdue).toMatchObject({ next: expect.stringContaining('for more than ten minutes') })
    expect(overdue).toMatchObject({ action: 'health', customer: expect.not.stringContaining('minutes') })
    expect((await stepWith(waiting(MINUTE), dead('e1'))).entryId).toBe('e1')
  })

  it('waits for the handler of a change only if the app handles changes, and nothing else set it up', async () => {
    const { next } = REASONS.purchased
    const change = waitingSince(MINUTE, 'change')
    expect((await stepWith(change)).next).toBe(next)
    const ofOther = (agoMs: number) => done('e0', { agoMs, businessUid: 'another' })
    expect((await stepWith(change, ofOther(60 * MINUTE))).next).toContain('still setting it up')
    expect((await stepWith(change, ofOther(8 * 24 * 60 * MINUTE))).next).toBe(next)
    const setUp = done('e9', { kind: 'entitlement', agoMs: MINUTE })
    expect((await stepWith(change, ofOther(60 * MINUTE), setUp)).next).toBe(next)
  })

  it('is not about a handler while there is another cause', async () => {
    expect((await stepAmong('stale', [['stale', 'purchased']], [dead('e1')])).action).toBe('refresh')
  })

  it('finds what only a read makes behind any number of events, and a failed event behind 9,999', async () => {
    const events = (count: number) =>
      Array.from({ length: count }, (_, i) => done(`e${i + 10_000}`, { kind: 'event', name: 'other' }))
    expect((await stepWith(...events(20_000), dead('e1'))).entryId).toBe('e1')
    const event = dead('e1', { kind: 'event', name: 'application/installed' })
    expect((await stepWith(...events(9_999), event)).entryId).toBe('e1')
    expect((await stepWith(...events(10_000), event)).next).toBe(REASONS.purchased.next)
  })

  it('ends its reading of the journal after two seconds, and knows what it has read', async () => {
    let pages = 0
    async function list({ kind }: { kind?: string }) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      pages++
      return Array.from({ length: 100 }, (_, i) => (kind === 'entitlement' ? dead('e1') : done(`e${i}`)))
    }
    const decision = { business_uid: 'b1', reason: 'purchased', subscriptions: [] } as const
    const health = async () => ({ problems: [] })
    expect((await nextStepFor(decision, { journal: { list }, health }, NOW)).entryId).toBe('e1')
    const atDeadline = pages
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(pages).toBeLessThanOrEqual(atDeadline + 1)
  }, 20_000)

  it.each([
    ['cannot be read', () => Promise.reject(new Error('no disk'))],
    ['does not answer within two seconds', () => new Promise<never>(() => {})],
  ])('is that of the reason if the journal %s', async (_why, list) => {
    const decision = { business_uid: 'b1', reason: 'purchased', subscriptions: [] } as const
    const health = async () => ({ problems: [] })
    const step = await nextStepFor(decision, { journal: { list }, health }, NOW)
    expect(step.next).toBe(REASONS.purchased.next)
  })
})

describe('the next step before the platform has answered', () => {
  it('says nothing of what it shows, and asks nobody to pay', async () => {
    for (const judged of [[], [['not_read_yet', null]] as Judged[]]) {
      const { next, customer } = stepFor('not_read_yet', judged)
      expect(next).toMatch(/^The app has no answer of the platform so far/)
      expect(`${next} ${customer}`).not.toMatch(/\bpay\b|does not show/)
    }
  })

  it('says that the platform limits the rate of reads', async () => {
    for (const reason of ['not_read_yet', 'stale'] as const) {
      const judged: Judged[] = [[reason, null]]
      const step = await stepAmong(reason, judged, [], ['entries_dead', 'reads_throttled'])
      expect(step.next).toMatch(/^The platform limits how often .* Ask nobody to pay/)
      expect(step).toEqual(stepFor(reason, [[reason, null, 'platform_throttled']]))
    }
    const unknown = await stepAmong('unknown_business', [], [], ['reads_throttled'])
    expect(unknown.next).toBe(REASONS.unknown_business.next)
  })
})

describe('the next step while the platform lags', () => {
  const SUSPENDED: Judged[] = [['not_purchased', 'suspended']]
  const stepWith = (...entries: Entry[]) => stepAmong('not_purchased', SUSPENDED, entries)

  it('is to wait if they have paid, after a purchase event without a change', async () => {
    const step = await stepWith(delivery(MINUTE), change(2 * MINUTE))
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
  ])('is to pay if %s', async (_why, entries) => {
    expect((await stepWith(...entries)).next).toContain('The payment failed')
  })

  it('counts an event of a little less than ten minutes ago', async () => {
    expect((await stepWith(delivery(10 * MINUTE - 1))).next).toContain('just announced')
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

function stepFor(reason: Reason, judged: Judged[] = []) {
  return nextStepOf({ reason, subscriptions: subscriptionsOf(judged) })
}

/** The step with a journal of these entries, and these problems of health. */
function stepAmong(reason: Reason, judged: Judged[], entries: Entry[], codes: string[] = []) {
  type Filter = Parameters<Parameters<typeof nextStepFor>[1]['journal']['list']>[0]
  const newestFirst = [...entries].sort((a, b) => (a.id < b.id ? 1 : -1))
  async function list({ limit, since, before, ...equal }: Filter) {
    const fits = (entry: Entry) =>
      Object.entries(equal).every(([field, value]) => entry[field as keyof Entry] === value) &&
      (since === undefined || Date.parse(entry.receivedAt) >= since.getTime()) &&
      (before === undefined || entry.id < before)
    return newestFirst.filter(fits).slice(0, limit)
  }
  const health = async () => ({ problems: codes.map((code) => ({ code })) })
  const decision = { business_uid: 'b1', reason, subscriptions: subscriptionsOf(judged) }
  return nextStepFor(decision, { journal: { list }, health }, NOW)
}

function subscriptionsOf(judged: Judged[]) {
  return judged.map(([reason, purchase_state, failure = null]) => ({ reason, purchase_state, failure }))
}

type Entry = ReturnType<typeof entryOf>
interface Given {
  kind?: 'event' | 'change' | 'entitlement' | 'unrecognised'
  name?: string
  businessUid?: string
  agoMs?: number
  dueInMs?: number
}

function entryOf(id: string, status: string, attempts: number, given: Given = {}) {
  const { kind = 'change', name = '', businessUid = 'b1', agoMs = 0, dueInMs = -agoMs } = given
  const [receivedAt, dueAt] = [-agoMs, dueInMs].map((ms) => new Date(NOW + ms).toISOString()) as [
    string,
    string,
  ]
  return { id, kind, name, businessUid, status, attempts, receivedAt, dueAt }
}

function dead(id: string, given?: Given) {
  return entryOf(id, 'dead', 1, given)
}

function retrying(id: string, given?: Given) {
  return entryOf(id, 'pending', 1, given)
}

function done(id: string, given?: Given) {
  return entryOf(id, 'done', 1, given)
}

function waitingSince(agoMs: number, kind: 'change' | 'entitlement') {
  return entryOf(idAt(agoMs), 'pending', 0, { kind, agoMs })
}

function delivery(agoMs: number, name = 'purchasable_subscription/updated') {
  return entryOf(idAt(agoMs), 'unhandled', 0, { kind: 'event', name, agoMs })
}

function change(agoMs: number) {
  return waitingSince(agoMs, 'change')
}

/** Ids are in the order of time. */
function idAt(agoMs: number): string {
  return String(NOW - agoMs)
}
