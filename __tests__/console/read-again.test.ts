import { describe, expect, it } from '@jest/globals'
import { readAgainInWords } from '../../lib/console/server/business/read-again.js'
import type { Decision } from '../../lib/index.js'
import { noticeOf } from '../support/events.js'
import { internals } from '../support/internals.js'
import { quietWarnings } from '../support/output.js'
import { createScene } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'
import { until } from '../support/until.js'

type Verdict = Decision['subscriptions'][number]

describe('the words after Read again', () => {
  it('say that nothing has changed, or from what to what', () => {
    expect(words([one({})], [one({})])).toBe('Read from the platform: nothing has changed.')
    expect(words([one({ purchase_state: 'suspended' })], [one({})])).toBe(
      'Read from the platform: changed from suspended to purchased.',
    )
    expect(words([one({})], [one({ purchase_state: null })])).toBe(
      'Read from the platform: changed from purchased to no longer shown.',
    )
    const never = one({ purchase_state: null, asOf: null, purchasable_uid: null })
    for (const before of [[never], []])
      expect(words(before, [one({})])).toBe('Read from the platform: changed from never read to purchased.')
    expect(words([one({ purchasable_uid: 'pro' })], [one({})])).toBe(
      'Read from the platform: changed from the item pro to p.',
    )
  })

  it('say why it could not be read, and whether the app tries again', () => {
    const failed = { failure: 'platform_unreachable', pending: true }
    expect(words([one({})], [one(failed)])).toBe(
      'Could not be read: the platform cannot be reached. The app tries again by itself.',
    )
    expect(words([], [one({ failure: 'token_refused' })])).toBe(
      'Could not be read: the platform gives the app no access to this business.',
    )
  })

  it('say that there is nothing to read, that the read has not come, and that the database is down', () => {
    expect(words([], [])).toMatch(/^There is nothing to read: /)
    expect(words([one({})], [one({ pending: true })])).toMatch(/^Not read yet: /)
    expect(words([one({})], [], 'store_unavailable')).toMatch(/^The outcome is not known: /)
  })

  it('say what is no longer of this business, and that what was tracked is not read yet', () => {
    const [a, b] = [one({ subscription_uid: 'a' }), one({ subscription_uid: 'b' })]
    const left = 'No longer of this business, because it belongs to another or was erased: b.'
    expect(readAgainInWords(of([b]), of([]), { left: ['b'] })).toBe(left)
    expect(readAgainInWords(of([a, b]), of([a]), { left: ['b'] })).toBe(
      `${left} Read from the platform: nothing has changed.`,
    )
    expect(readAgainInWords(of([]), of([]), { tracked: 'b' })).toBe(
      'b is not read for this business yet: the read is requested.',
    )
    expect(readAgainInWords(of([]), of([b]), { tracked: 'b' })).toMatch(
      /^Read from the platform: changed from never read/,
    )
  })

  it('say what a search for a subscription did', () => {
    const after = (pending: boolean, failure: string | null = null) =>
      readAgainInWords(of([]), { ...of([]), search: { answered: !pending, pending, failure } })
    expect(after(false)).toBe('Searched the platform: it shows no subscription of this business.')
    expect(after(true)).toMatch(/^The platform is not searched yet: /)
    expect(after(true, 'find_subscriptions_failed')).toBe(
      'The platform could not be searched: the code of the app that searches the platform has an error. The app tries again by itself.',
    )
    expect(after(false, 'token_refused')).toBe(
      'The platform could not be searched: the platform gives the app no access to this business.',
    )
  })

  it('say beside a subscription of another item that the search failed, or has not come', () => {
    const after = (pending: boolean, failure: string | null = null) =>
      readAgainInWords(of([one({})]), { ...of([one({})]), search: { answered: !pending, pending, failure } })
    const read = 'Read from the platform: nothing has changed.'
    expect(after(false)).toBe(read)
    expect(after(true)).toBe(`${read} The platform is not searched yet: the search is requested.`)
    expect(after(false, 'token_refused')).toBe(
      `${read} The platform could not be searched: the platform gives the app no access to this business.`,
    )
  })

  it('count several subscriptions, and name those that changed', () => {
    const before = ['a', 'b', 'c', 'd'].map((subscription_uid) => one({ subscription_uid }))
    const after = [
      one({ subscription_uid: 'a' }),
      one({ subscription_uid: 'b', purchase_state: 'canceled' }),
      one({ subscription_uid: 'c', failure: 'platform_timeout' }),
      one({ subscription_uid: 'd', pending: true }),
    ]
    expect(words(before, after)).toBe(
      'Read 2 subscriptions from the platform: b changed from purchased to canceled. ' +
        '1 subscription could not be read: the platform did not answer in time. ' +
        '1 subscription not read yet: the read is requested.',
    )
  })

  it('name at most five changes', () => {
    const uids = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    const after = uids.map((subscription_uid) => one({ subscription_uid }))
    expect(words([], after)).toMatch(/e changed from never read to purchased; and 2 more\.$/)
  })
})

describe('Read again of the console', () => {
  it('says what it found at the platform', async () => {
    const { platform, marketplace, app, url } = await createScene()
    mountConsole(app, marketplace)
    const support = consoleCaller(`${url}/ops`, 'support')
    const outcome = async () => (await support.act('refresh', { business_uid: 'b1' })).body.outcome
    expect(await outcome()).toMatch(/^There is nothing to read/)

    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'failed' })
    await until('it is read', async () => (await marketplace.explain('b1')).reason === 'not_purchased')
    expect(await outcome()).toBe('Read from the platform: nothing has changed.')
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.confirmPayment(uid)
    expect(await outcome()).toBe('Read from the platform: changed from suspended to purchased.')
    const down = platform.faults.add({ on: 'read', kind: 'down' })
    expect(await outcome()).toBe(
      'Could not be read: the platform cannot be reached. The app tries again by itself.',
    )
    down.remove()
  })

  it('says of a subscription that moves to another business that it has left', async () => {
    const { platform, marketplace, app, url } = await createScene({ freshness: { waitMs: 0 } })
    mountConsole(app, marketplace)
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('it is read', () => marketplace.isEntitled('b1'))
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.addBusiness('b2')
    platform.set(uid, { business_uid: 'b2' })
    platform.faults.add({ on: 'read', kind: 'slow', ms: 500 })
    await marketplace.subscriptions.track({ businessUid: 'b2', subscriptionUid: uid })
    const { outcome } = (await consoleCaller(`${url}/ops`, 'support').act('refresh', { business_uid: 'b1' }))
      .body
    expect(outcome).toBe(`No longer of this business, because it belongs to another or was erased: ${uid}.`)
  })

  it('says of no subscription that it has left while newer ones, which may be made up, take its place in the list', async () => {
    const { platform, marketplace, app, url, deliver } = await createScene({
      freshness: { waitMs: 0 },
      ...internals({ callTimeoutMs: 300 }),
    })
    mountConsole(app, marketplace)
    platform.addBusiness('b1')
    for (let i = 0; i < 20; i++) await deliver(noticeOf(`made-up-${i}`, 'b1'))
    await marketplace.settled()
    platform.faults.add({ on: 'read', kind: 'slow', ms: 200 })
    const support = consoleCaller(`${url}/ops`, 'support')
    const asked = support.act('refresh', { business_uid: 'b1' })
    await until('it has begun', async () => (await marketplace.journal.list({ kind: 'action' })).length > 0)
    await deliver(noticeOf('made-up-20', 'b1'))
    const { outcome, decision } = (await asked).body
    expect(decision.subscriptions.map(({ subscription_uid }: Verdict) => subscription_uid)).not.toContain(
      'made-up-0',
    )
    expect(outcome).not.toContain('No longer of this business')
  })

  it('says what a search of the platform found, where the app searches', async () => {
    let found: string[] | undefined = []
    const { platform, marketplace, app, url } = await createScene({
      platform: {
        findSubscriptions: () => found ?? Promise.reject(new Error('no list')),
      },
      freshness: { waitMs: 0 },
    })
    quietWarnings()
    platform.addBusiness('b1')
    mountConsole(app, marketplace)
    const support = consoleCaller(`${url}/ops`, 'support')
    const readAgain = async () => (await support.act('refresh', { business_uid: 'b1' })).body
    await until(
      'it was searched',
      async () => (await marketplace.explain('b1')).reason === 'unknown_business',
    )
    expect(await readAgain()).toMatchObject({
      outcome: 'Searched the platform: it shows no subscription of this business.',
      step: { action: 'refresh', next: expect.stringContaining('the app searches again') },
    })
    found = undefined
    const failed = await readAgain()
    expect(failed).toMatchObject({
      outcome: expect.stringContaining('The platform could not be searched: '),
      step: { action: 'health', next: expect.stringContaining('its search has an error') },
    })
    expect(failed.decision.explanation).toContain(
      'the code of the app that searches the platform has an error',
    )
    expect(failed.decision.explanation).not.toContain('find_subscriptions_failed')
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    found = [platform.purchase({ business_uid: 'b1', payment: 'succeeded' }).uid]
    await until('it is found', async () => (await readAgain()).headline === 'May use the app')
  })
})

function words(before: Verdict[], after: Verdict[], reason: Decision['reason'] = 'purchased'): string {
  return readAgainInWords(of(before, reason), of(after, reason))
}

function of(subscriptions: Verdict[], reason: Decision['reason'] = 'purchased'): Decision {
  return { reason, subscriptions } as Decision
}

function one(verdict: Partial<Verdict>): Verdict {
  return {
    ...{ subscription_uid: 's', purchasable_uid: 'p', purchase_state: 'purchased', entitled: true },
    ...{
      accessUntil: null,
      reason: 'purchased',
      asOf: '2026-03-01T12:00:00.000Z',
      pending: false,
      failure: null,
    },
    ...verdict,
  }
}
