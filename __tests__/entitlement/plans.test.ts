import { describe, expect, it } from '@jest/globals'
import { decide } from '../../lib/entitlement/decide.js'
import { decisionAbout, entitlesTo, type ItemOptions } from '../../lib/entitlement/items.js'
import type { GuardDecision } from '../../lib/express/require-entitlement.js'
import type { Marketplace } from '../../lib/index.js'
import type { Subscription } from '../../lib/store/port/store.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { openMarketplace, serve, startPlatform } from '../support/scene.js'
import { createAnswers } from '../support/scenes/answers.js'
import { record, ruled, subscriptionOf } from '../support/scenes/reader.js'

const PLANS = ['basic', 'pro', 'team']

describe.each(ENGINE_NAMES)('plans on %s', (engineName) => {
  const engine = useEngine(engineName)

  it('are distinguished by the items that each business has bought', async () => {
    const { marketplace } = await sold(await engine.freshAddress())
    const { isEntitled, explain } = marketplace
    for (const [asked, answer] of [
      ['pro', true],
      ['basic', false],
      [['basic', 'pro'], true],
      [['basic', 'team'], false],
    ] as const) {
      const options = { purchasableUid: asked }
      expect([asked, await isEntitled('b-pro', options)]).toEqual([asked, answer])
      expect([asked, (await explain('b-pro', options)).entitled]).toEqual([asked, answer])
    }
    expect(await isEntitled('b-pro', {})).toBe(true)
    expect(await explain('b-pro')).toMatchObject({ entitled: true, entitledItems: ['pro'] })
    expect(await explain('b-pro', { purchasableUid: 'pro' })).toMatchObject({ reason: 'purchased' })
    const other = await explain('b-pro', { purchasableUid: 'team' })
    expect(other).toMatchObject({ reason: 'other_item', known: true, entitledItems: [], subscriptions: [] })
    expect(other.otherItems).toEqual({ bought: ['pro'], accepted: ['team'] })
    expect(other.explanation).toMatch(/They have the item pro, and need the item team\.$/)
    const [suspended, none] = [
      await explain('b-late', { purchasableUid: 'team' }),
      await explain('nobody', { purchasableUid: 'team' }),
    ]
    expect([suspended.reason, none.reason]).toEqual(['not_purchased', 'unknown_business'])
  })
})

describe('a requested item', () => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty list', []],
    ['an item that is not the app’s', 'gold'],
    ['an invalid identifier', {}],
    ['a list of invalid identifiers', [null, '']],
  ])('gives no access when it is %s', async (_what, purchasableUid) => {
    const { marketplace } = await sold('sqlite::memory:')
    const options = { purchasableUid } as ItemOptions
    for (const _warmth of ['cold', 'warm']) {
      expect(await marketplace.isEntitled('b-pro', options)).toBe(false)
      expect(await marketplace.explain('b-pro', options)).toMatchObject({
        entitled: false,
        reason: 'item_unknown',
      })
    }
  })

  it('denies every business when the argument is not an options object', async () => {
    const { marketplace } = await sold('sqlite::memory:')
    for (const options of ['basic', null, 1] as never[]) {
      expect(await marketplace.isEntitled('b-pro', options)).toBe(false)
    }
  })

  it('is compared with the records when the app names no items of its own', async () => {
    const { marketplace } = await sold('sqlite::memory:', null)
    expect(await marketplace.isEntitled('b-pro', { purchasableUid: 'pro' })).toBe(true)
    expect(await marketplace.isEntitled('b-pro', { purchasableUid: 'anything' })).toBe(false)
  })

  it('is not known while a subscription of an unknown item has not been read', () => {
    const [bought, unread] = [
      subscription('basic', 0),
      { ...subscription(null, 0), record: null, readAt: null },
    ]
    const decision = decide('b', [bought, { ...unread, refreshAt: 0, pending: true }], RULES, 0)
    expect(decision).toMatchObject({ entitled: true, entitledItems: ['basic'] })
    expect(decisionAbout(decision, { purchasableUid: 'pro' }, RULES, 0)).toMatchObject({
      entitled: false,
      known: false,
      reason: 'not_read_yet',
    })
  })

  it('is not known either while only an event has named the item of a subscription', () => {
    const named = { ...subscription('basic', 0), record: null, readAt: null, refreshAt: 0, pending: true }
    const decision = decide('b', [named], RULES, 0)
    const about = decisionAbout(decision, { purchasableUid: 'pro' }, RULES, 0)
    expect(about).toMatchObject({ entitled: false, known: false, reason: 'not_read_yet' })
  })

  it('has the search on which the answer depends, and its failure', () => {
    const search = { isAnswered: false, pending: true, failure: 'find_subscriptions_failed' }
    const decision = decide('b', [subscription('basic', 0)], RULES, 0, search)
    for (const purchasableUid of ['basic', 'pro'])
      expect(decisionAbout(decision, { purchasableUid }, RULES, 0)).toMatchObject({
        reason: 'not_read_yet',
        search: { answered: false, pending: true, failure: 'find_subscriptions_failed' },
        explanation: expect.stringMatching(/ The last search for subscriptions failed: [^.]*\.$/),
      })
  })

  it('is frozen with all that it consists of, because others get the same one from memory', async () => {
    const { explain, fail, clock, have } = createAnswers({ rules: RULES })
    have([subscription('pro', clock.now())])
    const ofOtherApp = decide('b', [subscription('none of these', 0)], RULES, 0)
    expect(ofOtherApp.reason).toBe('other_app')
    const decisions = [ofOtherApp, await explain('b'), await explain('b', { purchasableUid: 'pro' })]
    fail()
    await clock.advance(10_000)
    decisions.push(await explain('b'), await explain('b', { purchasableUid: 'pro' }))
    expect(decisions.map(({ stale }) => stale)).toEqual([false, false, false, true, true])
    for (const decision of decisions)
      for (const part of [
        decision,
        decision.entitledItems,
        decision.subscriptions,
        ...decision.subscriptions,
      ])
        expect(Object.isFrozen(part)).toBe(true)
  })

  it('ends at its own age, however fresh another item is', async () => {
    const { isEntitled, clock, have } = createAnswers({ rules: { ...RULES, maxStaleMs: 10_000 } })
    have([subscription('basic', clock.now()), subscription('pro', clock.now() - 9_000)])
    expect(await isEntitled('b', { purchasableUid: 'pro' })).toBe(true)
    await clock.advance(1_500)
    expect(await isEntitled('b', { purchasableUid: 'pro' })).toBe(false)
    expect(await isEntitled('b', { purchasableUid: 'basic' })).toBe(true)
  })

  it('is answered from the loaded decision, without another load', async () => {
    const { isEntitled, looks, have } = createAnswers({ rules: RULES })
    have([subscription('pro', Date.now())])
    for (const purchasableUid of [...PLANS, PLANS]) await isEntitled('b', { purchasableUid })
    const [pro, basic] = [
      await isEntitled('b', { purchasableUid: 'pro' }),
      await isEntitled('b', { purchasableUid: 'basic' }),
    ]
    expect({ looks: looks(), pro, basic }).toEqual({ looks: 1, pro: true, basic: false })
    // Always the same promise: an answer from memory makes no new one.
    const asked = { purchasableUid: 'pro' }
    expect(isEntitled('b', asked)).toBe(isEntitled('b', asked))
  })

  it('agrees with its explanation, for any purchases and any item', () => {
    for (const items of [[], ['basic'], ['pro', 'pro'], ['basic', 'team']]) {
      const decision = decide(
        'b',
        items.map((item) => subscription(item, 0)),
        RULES,
        0,
      )
      for (const asked of [...PLANS, ['basic', 'pro'], PLANS]) {
        const options = { purchasableUid: asked }
        const { entitled } = decisionAbout(decision, options, RULES, 0)
        expect(entitlesTo(decision, options)).toBe(entitled)
        expect(entitled).toBe([asked].flat().some((item) => items.includes(item)))
      }
    }
  })
})

describe('requireEntitlement with purchasableUid', () => {
  it('admits a business with one of the items, given as a text, a list, or a function of the request', async () => {
    const { marketplace } = await sold('sqlite::memory:')
    const statusOf = await routes(marketplace, {
      '/pro': 'pro',
      '/paid': ['pro', 'team'],
      '/asked': (req: { headers: Record<string, string> }) => req.headers['x-plan'],
      '/later': async (req: { headers: Record<string, string> }) => [req.headers['x-plan']],
    })
    expect(await statusOf('/pro', 'b-pro')).toBe(200)
    expect(await statusOf('/paid', 'b-pro')).toBe(200)
    expect(await statusOf('/pro', 'b-basic')).toBe(402)
    expect(await statusOf('/paid', 'b-basic')).toBe(402)
    expect(await statusOf('/asked', 'b-basic', 'basic')).toBe(200)
    expect(await statusOf('/later', 'b-basic', 'basic')).toBe(200)
    expect(await statusOf('/asked', 'b-basic', 'pro')).toBe(402)
    // A function that returns no item denies every business.
    expect(await statusOf('/asked', 'b-basic')).toBe(402)
    expect(await statusOf('/later', 'b-basic')).toBe(402)
  })

  it.each([['gold'], [['pro', 'gold']], [[]], [undefined], [null], [{}]])(
    'throws argument_invalid for %j at once',
    async (purchasableUid) => {
      const { marketplace } = await sold('sqlite::memory:')
      const options = { businessUid: () => 'b', purchasableUid } as never
      expect(() => marketplace.requireEntitlement(options)).toThrow(
        expect.objectContaining({ code: 'argument_invalid' }),
      )
    },
  )

  it('passes the decision about the item to onDenied', async () => {
    const { marketplace } = await sold('sqlite::memory:')
    const denied: GuardDecision[] = []
    const guard = marketplace.requireEntitlement({
      businessUid: () => 'b-pro',
      purchasableUid: 'team',
      onDenied: (_req, res, _next, decision) => {
        denied.push(decision)
        res.end()
      },
    })
    const url = await serve((req, res) => void guard(req as never, res as never, () => res.end()))
    await fetch(url)
    expect(denied).toEqual([expect.objectContaining({ reason: 'other_item', known: true })])
  })
})

/** Businesses named after their purchases; the purchase of `b-late` is suspended. */
async function sold(store: string, own: string[] | null = PLANS) {
  const platform = await startPlatform({
    apps: PLANS.map((uid) => ({ purchasableUid: uid, codeName: uid })) as never,
  })
  const marketplace = openMarketplace(platform, { store, app: { purchasableUid: own ?? undefined } })
  const lines = (['basic', 'pro', 'late'] as const).map((name) => {
    const [subscription_uid, business_uid] = [`s-${name}`, `b-${name}`]
    const item = name === 'late' ? 'team' : name
    const payment = name === 'late' ? 'failed' : 'succeeded'
    platform.purchase({ subscription_uid, business_uid, purchasable_uid: item, payment } as never)
    return { subscriptionUid: subscription_uid, businessUid: business_uid }
  })
  expect(await marketplace.subscriptions.import(lines)).toMatchObject({ read: 3 })
  return { marketplace, platform }
}

async function routes(marketplace: Marketplace, plans: Record<string, unknown>) {
  const guards = Object.entries(plans).map(
    ([path, purchasableUid]) =>
      [
        path,
        marketplace.requireEntitlement({
          businessUid: (req: { headers: Record<string, string> }) => req.headers['x-business'],
          purchasableUid,
        } as never),
      ] as const,
  )
  const url = await serve((req, res) => {
    const guard = guards.find(([path]) => path === req.url)?.[1]
    void guard?.(req as never, res as never, () => res.end())
  })
  return async (path: string, business: string, plan?: string) => {
    const headers = { 'x-business': business, ...(plan ? { 'x-plan': plan } : {}) }
    return (await fetch(`${url}${path}`, { headers })).status
  }
}

const RULES = { purchasableUids: PLANS, entitledWhen: ruled(() => true), maxStaleMs: 1e12 }

function subscription(item: string | null, readAt: number): Subscription {
  const of = { ...record('purchased', 1), purchasable_uid: item as string }
  const read = { record: of, state: 'purchased', readAt, requestedAt: null, pending: false }
  return subscriptionOf({ ...read, purchasableUid: item })
}
