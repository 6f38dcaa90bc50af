import { describe, expect, it } from '@jest/globals'
import { createScene } from '../support/scene.js'
import { explode } from '../support/scenes/changes.js'
import { buy } from '../support/scenes/purchases.js'
import { B1 } from '../support/settings.js'

it('J21 a number is accepted as its text wherever an identifier is expected', async () => {
  const { platform, marketplace } = await createScene()
  const { uid } = await buy(platform, marketplace, '72')
  expect(await marketplace.isEntitled(72)).toBe(true)
  expect(await marketplace.explain(72)).toMatchObject({ business_uid: '72', entitled: true })
  expect(await marketplace.businesses.refresh(72)).toMatchObject({ entitled: true })
  await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: 72 })
  for (const odd of [72.5, Number.NaN, 2 ** 60]) expect(await marketplace.isEntitled(odd)).toBe(false)
})

it('J8 the name of a wrong argument stands in its error', async () => {
  const { marketplace } = await createScene()
  const refused = { code: 'argument_invalid', message: expect.stringContaining('subscription_uid') }
  await expect(marketplace.subscriptions.get('')).rejects.toMatchObject(refused)
})

describe('J8 any argument', () => {
  const hostile = {
    toString: explode,
    valueOf: explode,
    [Symbol.toPrimitive]: explode,
    get length() {
      return explode()
    },
  }
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()
  const odd: [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['an empty text', ''],
    ['true', true],
    ['a number', 4712],
    ['NaN', Number.NaN],
    ['a bigint', 1n],
    ['a symbol', Symbol('s')],
    ['a function', () => B1],
    ['an array with a good one', [B1]],
    ['a String object', Object(B1)],
    ['an object that throws', hostile],
    ['a revoked proxy', revoked.proxy],
    ['a promise', Promise.resolve(B1)],
    ['a good one with a NUL behind it', `${B1}\u0000`],
    ['a good one with a NUL and more', `${B1}\u0000x`],
    ['a good one with a space', ` ${B1}`],
    ['a lone surrogate', `${B1}\ud800`],
    ['a percent sign', '%'],
    ['SQL', `' or 1=1 --`],
    ['300 characters', 'x'.repeat(300)],
    ['a million characters', 'x'.repeat(1_000_000)],
    ['__proto__', '__proto__'],
  ]

  it('gives false, and nothing is thrown', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace)
    for (const [what, argument] of odd) {
      expect([what, await marketplace.isEntitled(argument as string)]).toEqual([what, false])
      expect([what, (await marketplace.explain(argument as string)).entitled]).toEqual([what, false])
    }
  })
})

describe('J8 an argument that is not valid Unicode', () => {
  it('does not match the business whose name has U+FFFD in its place', async () => {
    const { platform, marketplace } = await createScene()
    await buy(platform, marketplace, 'business-\ufffd')
    expect(await marketplace.isEntitled('business-\ud800')).toBe(false)
  })
})
