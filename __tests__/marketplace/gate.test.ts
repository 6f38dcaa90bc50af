import { describe, expect, it } from '@jest/globals'
import { paidThrough } from '../../lib/index.js'
import { quietWarnings } from '../support/output.js'
import { createScene, OTHER_ITEM, OUR_ITEM } from '../support/scene.js'
import { buy } from '../support/scenes/purchases.js'
import { B1 } from '../support/settings.js'

describe('the gate of a marketplace', () => {
  it('gives the whole decision to the routes behind it: about the app, or about the item of the gate', async () => {
    const { marketplace, platform, app, url } = await createScene({
      app: { purchasableUid: [OUR_ITEM, OTHER_ITEM] },
    })
    await buy(platform, marketplace)
    const businessUid = () => B1
    for (const [path, options] of [
      ['/any', { businessUid }],
      ['/ours', { businessUid, purchasableUid: OUR_ITEM }],
    ] as const)
      app.get(path, marketplace.requireEntitlement(options), (_req, res) => {
        res.json(res.locals.entitlement)
      })
    app.get(
      '/other',
      marketplace.requireEntitlement({
        businessUid,
        purchasableUid: OTHER_ITEM,
        onDenied: (_req, _res, next) => next(),
      }),
      (_req, res) => void res.json(res.locals.entitlement),
    )
    const got = async (path: string) => (await fetch(`${url}${path}`)).json()
    const whole = { business_uid: B1, entitled: true, entitledItems: [OUR_ITEM], accessUntil: null }
    const { subscriptions } = await marketplace.explain(B1)
    for (const path of ['/any', '/ours'])
      expect(await got(path)).toMatchObject({ ...whole, known: true, reason: 'purchased', subscriptions })
    expect(await got('/other')).toMatchObject({ entitled: false, reason: 'other_item', subscriptions: [] })
  })

  it('warns once of a purchaseUrl that gives no address, and goes on to reply 402', async () => {
    const warned = quietWarnings()
    const { marketplace, app, url } = await createScene({ freshness: { waitMs: 0 } })
    const gate = marketplace.requireEntitlement({
      businessUid: () => B1,
      purchaseUrl: () => 'javascript:alert("canary")',
    })
    app.use('/paid', gate)
    for (const _time of [1, 2, 3]) expect((await fetch(`${url}/paid`)).status).toBe(402)
    const ours = warned.mock.calls.filter(
      ([, given]) => (given as { code?: string }).code === 'purchase_url_failed',
    )
    expect(ours).toHaveLength(1)
    expect(ours[0]?.[0]).toMatch(
      /^purchaseUrl returned a value of type string that no link may have\. The function purchaseUrl /,
    )
    expect(String(ours[0]?.[0])).not.toContain('canary')
  })
})

describe('the route for a front end of a marketplace', () => {
  it('answers from the decision, with its end', async () => {
    const { marketplace, platform, app, url } = await createScene({ entitledWhen: paidThrough() })
    const { uid } = await buy(platform, marketplace)
    app.get('/api/entitlement', marketplace.entitlementRoute({ businessUid: (req) => req.get('x-business') }))
    const asked = async (business: string) =>
      (await fetch(`${url}/api/entitlement`, { headers: { 'x-business': business } })).json()
    const allowed = { entitled: true, known: true, items: [OUR_ITEM] }
    expect(await asked(B1)).toEqual({ ...allowed, accessUntil: null })
    expect(await asked('nobody')).toEqual({ entitled: false, known: true, accessUntil: null, items: [] })
    platform.set(uid, { expiration_date: '2999-01-01' })
    platform.cancel(uid)
    await marketplace.businesses.refresh(B1)
    expect(await asked(B1)).toEqual({ ...allowed, accessUntil: '2999-01-02T00:00:00.000Z' })
  })

  it('answers that nothing is known after the end of the marketplace', async () => {
    const { marketplace, app, url } = await createScene()
    app.get('/api/entitlement', marketplace.entitlementRoute({ businessUid: () => B1 }))
    await marketplace.close()
    const reply = await fetch(`${url}/api/entitlement`)
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([200, '5'])
    expect(await reply.json()).toEqual({ entitled: false, known: false, accessUntil: null, items: [] })
  })
})
