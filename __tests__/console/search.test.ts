import { describe, expect, it } from '@jest/globals'
import { distance, folded, formsOf } from '../../lib/console/server/business/likeness.js'
import { notice } from '../support/events.js'
import { createScene } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'
import { until } from '../support/until.js'

describe('the search of the console', () => {
  it.each([
    ['another case', 'SHOP-MILANO', 'shop-milano', null],
    ['another case of a subscription', 'sub-a1B2', 'shop-milano', 'Sub-A1b2'],
    ['spaces inside', ' shop - milano ', 'shop-milano', null],
    ['no dash', 'shopmilano', 'shop-milano', null],
    ['only its beginning', 'shop-mil', 'shop-milano', null],
    ['only its beginning, in another case', 'SHOP MIL', 'shop-milano', null],
    ['characters that are often copied along', '(odd).', '(odd).', null],
    ['other characters', 'ü/%_#?&=*\\ä', 'ü/%_#?&=*\\ä', null],
  ])('opens what was typed with %s', async (_how, q, business_uid, subscription_uid) => {
    const { search } = await stage()
    expect(await search(q)).toMatchObject({ isKnown: true, business_uid, subscription_uid, near: [] })
  })

  it.each([
    ['a wrong character', 'shop-milamo', ['shop-milano']],
    ['a missing character', 'shop-mlano', ['shop-milano']],
    ['two swapped characters', 'shop-mialno', ['shop-milano']],
    ['a wrong first character', 'xhop-milano', ['shop-milano']],
    ['a beginning of several', 'shop-', ['shop-berlin', 'shop-milano']],
  ])('suggests what is stored for %s', async (_how, q, expected) => {
    const { search } = await stage()
    const { isKnown, business_uid, near } = await search(q)
    expect({ isKnown, business_uid }).toEqual({ isKnown: false, business_uid: q })
    expect(near.map((each: { business_uid: string }) => each.business_uid).sort()).toEqual(expected)
  })

  it('prefers what was typed exactly, and suggests nothing that differs in more', async () => {
    const { search } = await stage()
    expect(await search('shop-milano')).toMatchObject({ isKnown: true, business_uid: 'shop-milano' })
    for (const q of ['bakery', 'shop-madrid', 'sh', 'x'])
      expect({ q, ...(await search(q)) }).toMatchObject({ q, isKnown: false, business_uid: q })
    expect((await search('bakery')).near).toEqual([])
  })

  it('prefers what differs only in case, spaces and dashes to a slip, unless there are two', async () => {
    const { search, marketplace } = await stage()
    const track = (subscriptionUid: string, businessUid: string) =>
      marketplace.subscriptions.track({ subscriptionUid, businessUid })
    await track('other-6', 'shop-milana')
    expect(await search('SHOP MILANO')).toMatchObject({ isKnown: true, business_uid: 'shop-milano' })
    await track('other-7', 'Shop-Milano')
    const { isKnown, near } = await search('SHOP MILANO')
    expect({
      isKnown,
      first: near
        .slice(0, 2)
        .map((each: { business_uid: string }) => each.business_uid)
        .sort(),
    }).toEqual({
      isKnown: false,
      first: ['Shop-Milano', 'shop-milano'],
    })
  })

  it.each([
    ['that become longer in upper case', `ﬁ${'x'.repeat(253)}ﬁ`],
    ['of which the half would be cut within a character', `ab${'😀'.repeat(4)}`],
    ['with a control character inside', 'nobody\u0001here'],
  ])('finds nothing, and does not fail, for characters %s', async (_which, q) => {
    const { search } = await stage()
    expect(await search(q)).toMatchObject({ isKnown: false })
  })

  it('offers both a business and a subscription of another one that have the same uid, and opens neither', async () => {
    const { search, marketplace, platform } = await stage({ worker: true })
    for (const [subscription_uid, business_uid] of [
      ['s-72', '72'],
      ['72', '9'],
    ] as const)
      platform.purchase({ subscription_uid, business_uid, payment: 'succeeded' })
    await platform.settled()
    await until('both are read', async () =>
      (await Promise.all(['72', '9'].map((uid) => marketplace.isEntitled(uid)))).every(Boolean),
    )
    expect(await search('72')).toMatchObject({
      isKnown: true,
      near: [
        { business_uid: '72', subscription_uid: null },
        { business_uid: '9', subscription_uid: '72' },
      ],
    })
  })

  it('opens a known business, and no subscription of its name that a delivery made up', async () => {
    const { search, deliver } = await stage()
    await deliver(notice('evil', 'shop-milano'))
    expect(await search('shop-milano')).toMatchObject({
      ...{ isKnown: true, business_uid: 'shop-milano', subscription_uid: null, near: [] },
    })
    await deliver(notice('shop-1', 'sub-1'))
    expect(await search('sub-1')).toMatchObject({ business_uid: 'shop-1', subscription_uid: 'sub-1' })
  })

  it('suggests at most five', async () => {
    const { search, marketplace } = await stage()
    for (let n = 0; n < 9; n++)
      await marketplace.subscriptions.track({ subscriptionUid: `many-${n}`, businessUid: 'lots' })
    expect((await search('many-')).near).toHaveLength(5)
  })
})

describe('the likeness of identifiers', () => {
  it('ignores case, spaces and dashes', () => {
    expect(folded(' Shop – Milano.1 ')).toBe('shopmilano1')
    expect(distance('SHOP milano', 'shop-milano')).toBe(0)
    expect(distance('-', '.')).toBeUndefined()
  })

  it('puts a beginning before a slip, and one slip before two', () => {
    const [begun, once, twice] = ['shop', 'shop-milamo', 'shop-mlamo'].map((text) =>
      distance(text, 'shop-milano'),
    )
    expect(begun).toBeGreaterThan(0)
    expect(begun).toBeLessThan(1)
    expect([once, twice]).toEqual([2, 3])
    expect(distance('shop-mxyano', 'shop-milano')).toBe(3)
    expect(distance('shop-mxyzno', 'shop-milano')).toBeUndefined()
  })

  it('allows a slip for each four characters', () => {
    expect(distance('abc', 'abd')).toBeUndefined()
    expect(distance('abcd', 'abce')).toBe(2)
    expect(distance('abcd', 'abef')).toBeUndefined()
    expect(distance('s', 'shop')).toBeUndefined()
    expect(distance('sh', 'shop')).toBe(0.5)
  })

  it('tries a text as it is, without spaces, and in both cases', () => {
    expect(formsOf('A b')).toEqual(['A b', 'Ab', 'ab', 'AB'])
    expect(formsOf('a1')).toEqual(['a1', 'A1'])
  })
})

async function stage({ worker = false } = {}) {
  const { app, marketplace, url, platform, deliver } = await createScene({ worker })
  mountConsole(app, marketplace)
  const stored = {
    'Sub-A1b2': 'shop-milano',
    'other-3': 'shop-berlin',
    'other-4': '(odd).',
    'other-5': 'ü/%_#?&=*\\ä',
  }
  for (const [subscriptionUid, businessUid] of Object.entries(stored))
    await marketplace.subscriptions.track({ subscriptionUid, businessUid })
  const support = consoleCaller(`${url}/ops`, 'support')
  return {
    marketplace,
    platform,
    deliver,
    search: async (q: string) => (await support.read('search', { q })).body,
  }
}
