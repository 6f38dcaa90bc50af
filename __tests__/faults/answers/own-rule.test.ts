import { describe, expect, it } from '@jest/globals'
import type { Request } from 'express'
import { ConfigError, createMarketplace, type MarketplaceOptions } from '../../../lib/index.js'
import { quietWarnings } from '../../support/output.js'
import { createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { buy } from '../../support/scenes/purchases.js'
import { B1 } from '../../support/settings.js'
import { until } from '../../support/until.js'

const BROKEN: readonly [string, () => unknown, RegExp][] = [
  ['throws', () => JSON.parse('{'), /entitledWhen threw SyntaxError: /],
  [
    'throws a long text',
    () => {
      throw new TypeError(`x${'y'.repeat(5_000)}`)
    },
    /threw TypeError: xy{1,200}\./,
  ],
  ['returns a promise', () => Promise.resolve(true), /entitledWhen returned a promise/],
  ['returns a promise that rejects', () => Promise.reject(new Error('no')), /returned a promise/],
  [
    'returns a promise of a class whose catch throws',
    () =>
      Object.assign(Promise.reject(new Error('no')), { constructor: Object, catch: () => JSON.parse('{') }),
    /returned a promise/,
  ],
  ['returns a truthy value', () => 'yes', /entitledWhen returned a value of type string, not true or false/],
  ['returns nothing', () => undefined, /entitledWhen returned nothing, not true or false/],
  ['returns null', () => null, /entitledWhen returned null, not true or false/],
  ['returns a list', () => [true], /entitledWhen returned a value of type object, not true or false/],
  [
    'returns an end alone',
    () => ({ until: 1 }),
    /entitledWhen returned a value of type object, not true or false/,
  ],
  [
    'returns a truthy `entitled`',
    () => ({ entitled: 'yes' }),
    /entitledWhen returned an `entitled` that is neither true nor false/,
  ],
  [
    'returns an `until` that is no date',
    () => ({ entitled: true, until: 'soon' }),
    /entitledWhen returned an `until` that is no date/,
  ],
  [
    'returns an `until` in seconds',
    () => ({ entitled: true, until: Math.floor(Date.now() / 1_000) + 3_600 }),
    /entitledWhen returned an `until` in seconds, not in milliseconds/,
  ],
  [
    'returns an `until` of which no date can be made',
    () => ({ entitled: true, until: 1_893_456_000_000n }),
    /entitledWhen threw TypeError: /,
  ],
  [
    'returns an `until` that refuses to be a number, as Temporal does',
    () => ({
      entitled: true,
      until: {
        valueOf() {
          throw new TypeError('no number')
        },
      },
    }),
    /entitledWhen threw TypeError: no number/,
  ],
]

describe("J70 the app's own rule", () => {
  it.each(BROKEN)(
    'J70 that %s denies with a reason of its own, 503, and says what it did',
    async (_how, rule, words) => {
      const { marketplace, platform, app, url, isBroken } = await scene(rule)
      app.use(
        '/reports',
        marketplace.requireEntitlement({ businessUid: (req: Request) => req.header('x-business') }),
        (_req, res) => void res.send('the report'),
      )
      const status = async () => (await fetch(`${url}/reports`, { headers: { 'x-business': B1 } })).status
      await buy(platform, marketplace)
      expect(await status()).toBe(200)

      isBroken(true)
      await marketplace.businesses.refresh(B1)
      await until('the answer is denied', async () => !(await marketplace.isEntitled(B1)))
      const decision = await marketplace.explain(B1)
      expect(decision).toMatchObject({ entitled: false, known: false, reason: 'entitled_when_failed' })
      expect(decision.explanation).toMatch(words)
      expect(decision.explanation).not.toMatch(/another state than purchased/)
      expect(decision.explanation.length).toBeLessThan(600)
      expect(await status()).toBe(503)
      expect(await marketplace.businesses.history(B1)).toContainEqual(
        expect.objectContaining({ kind: 'change', entitledAfter: null }),
      )
    },
  )

  it('J70 degrades health while it fails, and emits one warning for each kind of failure', async () => {
    const emitted = quietWarnings()
    const mistake = { rule: () => JSON.parse('{') as unknown }
    const { marketplace, platform, isBroken } = await scene(() => mistake.rule())
    await buy(platform, marketplace)
    await buy(platform, marketplace, 'business-two')
    expect((await marketplace.health()).status).toBe('ok')
    isBroken(true)
    for (const rule of [mistake.rule, () => 1]) {
      mistake.rule = rule
      for (const business of [B1, 'business-two', B1]) await marketplace.businesses.refresh(business)
    }
    const { status, problems } = await marketplace.health()
    expect([status, problems]).toEqual([
      'degraded',
      [
        expect.objectContaining({
          code: 'entitled_when_failed',
          message: expect.stringMatching(
            /^entitledWhen fails for 2 subscriptions, so access is denied: it returned /,
          ),
        }),
      ],
    ])
    const codes = emitted.mock.calls.filter(
      ([, given]) => (given as { code?: string }).code === 'entitled_when_failed',
    )
    expect(codes).toHaveLength(2)
    isBroken(false)
    for (const business of [B1, 'business-two']) await marketplace.businesses.refresh(business)
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'purchased' })
  })

  it('J70 that fails holds back the changes of that business until it is corrected', async () => {
    const { marketplace, platform, isBroken } = await scene(() => null)
    isBroken(true)
    const changes: unknown[] = []
    marketplace.onPurchaseChange(({ to, entitled }) => void changes.push([to, entitled]))
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the change is put off', async () => {
      const [entry] = await marketplace.journal.list({ kind: 'change' })
      return entry?.error?.includes('own rule entitledWhen fails')
    })
    expect(changes).toEqual([])
    isBroken(false)
    await until('the change is handled', () => changes.length === 1)
    expect(changes).toEqual([['purchased', true]])
  })
})

describe("J71 the app's own rule denies a purchased subscription", () => {
  it('J71 the explanation names the rule, and the reply is 402', async () => {
    const { platform, marketplace } = await createScene({ entitledWhen: () => false })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    await until('it is read', async () => (await marketplace.explain(B1)).asOf !== null)
    const { reason, known, explanation } = await marketplace.explain(B1)
    expect([reason, known]).toEqual(['denied_by_rule', true])
    expect(explanation).toMatch(/own rule entitledWhen denies it/)
    expect(explanation).not.toMatch(/another state than purchased/)
  })

  it('J71 one that it denies in another state is not purchased', async () => {
    const { platform, marketplace } = await createScene({ entitledWhen: () => false })
    platform.purchase({ business_uid: B1, payment: 'failed' })
    await platform.settled()
    await until('it is read', async () => (await marketplace.explain(B1)).asOf !== null)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'not_purchased', known: true })
  })
})

describe('J72 the option entitledWhen', () => {
  it.each([
    ['an async function', async () => true],
    ['a generator', function* () {}],
    ['an async generator', async function* () {}],
  ])('J72 is refused at construction if it is %s', async (_what, entitledWhen) => {
    const { baseUrl, authUrl } = await startPlatform()
    const options = {
      app: { clientId: 'c', clientSecret: 's' },
      platform: { baseUrl, authUrl },
      deliverySecrets: 'a-delivery-secret-that-is-long-enough-0123456789',
      store: 'sqlite::memory:',
      entitledWhen: entitledWhen as unknown as MarketplaceOptions['entitledWhen'],
    } satisfies MarketplaceOptions
    expect(() => createMarketplace(options)).toThrow(ConfigError)
    expect(() => createMarketplace(options)).toThrow(
      /entitledWhen: expected a function that returns true or false at once/,
    )
  })

  it('J72 is accepted if it is a plain, a bound or an arrow function', async () => {
    const platform = await startPlatform()
    const rule = () => true
    for (const entitledWhen of [
      rule,
      rule.bind(null),
      function plain() {
        return true
      },
    ])
      expect(() => openMarketplace(platform, { entitledWhen })).not.toThrow()
  })
})

/** A scene whose rule admits purchased records, and behaves like `broken` between `isBroken(true)` and `isBroken(false)`. */
async function scene(broken: () => unknown) {
  let is = false
  const made = await createScene({
    entitledWhen: ({ purchase_state }) => (is ? (broken() as boolean) : purchase_state === 'purchased'),
  })
  return {
    ...made,
    isBroken(now: boolean) {
      is = now
    },
  }
}
