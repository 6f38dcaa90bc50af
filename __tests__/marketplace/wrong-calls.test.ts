import { expect, it } from '@jest/globals'
import express from 'express'
import { z } from 'zod'
import { createMarketplace, defineEvent } from '../../lib/index.js'
import { createScene, DELIVERY_SECRET } from '../support/scene.js'
import { buy } from '../support/scenes/purchases.js'
import { B1 } from '../support/settings.js'

const NOWHERE = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' }
const OPTIONS = {
  app: { clientId: 'client', clientSecret: 'any', purchasableUid: 'item' },
  platform: NOWHERE,
  deliverySecrets: DELIVERY_SECRET,
  store: 'sqlite::memory:',
  worker: false,
}
const EMPTY_SECRET = 'a delivery secret must not be empty: make one with `npx marketplace-webhooks secret`'

it.each<[call: string, wrong: object, says: string]>([
  ['deliverySecrets: ""', { deliverySecrets: '' }, `deliverySecrets.0: ${EMPTY_SECRET}`],
  [
    'deliverySecrets: ["…", ""]',
    { deliverySecrets: [DELIVERY_SECRET, ''] },
    `deliverySecrets.1: ${EMPTY_SECRET}`,
  ],
  ['deliverySecrets: []', { deliverySecrets: [] }, 'deliverySecrets: expected at least one'],
  [
    'deliverySecrets: undefined',
    { deliverySecrets: undefined },
    'deliverySecrets: expected a text, or several in an array, and it is missing',
  ],
  [
    'clientSecret: ""',
    { app: { ...OPTIONS.app, clientSecret: '' } },
    'app.clientSecret: expected a text that is not empty',
  ],
  [
    'events: [x]',
    { events: [defineEvent({ entity_name: 'a', event_type: 'b', data: z.object({}), tokens: ['app'] })] },
    "events: expected definitions by name, such as { 'invoice/paid': defineEvent({ … }) }",
  ],
])('a wrong option says what to do: %s', (_call, wrong, says) => {
  expect(() => createMarketplace({ ...OPTIONS, ...wrong } as never)).toThrow(says)
})

it('a misspelt option of a gate, a route or a wait is refused, and of a question lets nobody in', async () => {
  const { marketplace, platform } = await createScene()
  await buy(platform, marketplace)
  const misspelt = { purchasableUids: 'pro' } as never
  const businessUid = () => B1
  const says = 'unknown option "purchasableUids", known are businessUid, purchasableUid'
  for (const made of [marketplace.requireEntitlement, marketplace.entitlementRoute])
    expect(() => made({ businessUid, ...(misspelt as object) })).toThrow(says)
  await expect(marketplace.waitForEntitlement(B1, misspelt)).rejects.toThrow(
    'unknown option "purchasableUids", known are purchasableUid, timeoutMs, signal',
  )
  expect(await marketplace.isEntitled(B1, misspelt)).toBe(false)
  expect(await marketplace.explain(B1, misspelt)).toMatchObject({ reason: 'item_unknown' })
  expect(await marketplace.explain(B1, { search: false })).toMatchObject({ entitled: true })
})

it('an address that has the delivery secret already says to pass it without', async () => {
  const { marketplace, target } = await createScene()
  expect(() => marketplace.webhooks.targetUrl(target)).toThrow(
    'already ends in the delivery secret, so give the address before it',
  )
})

it('app.use(router()) says to pass the router', async () => {
  const { marketplace } = await createScene()
  const router = marketplace.router as unknown as () => express.Router
  expect(() => express().use('/hooks', router())).toThrow(
    'pass marketplace.router to app.use, do not call it',
  )
})

it('a raw token says how to wrap it', async () => {
  const { marketplace, target: targetUrl } = await createScene()
  const raw = 'canary-raw-token'
  for (const [event, given, wrapped] of [
    ['application/installed', raw, 'pass appToken(value)'],
    ['app_subscription/installed', raw, 'pass businessToken(value) or directoryToken(value)'],
    ['application/installed', Promise.resolve(raw), 'not a promise of one: await it'],
  ] as const) {
    const token = given as never
    const error = await marketplace.webhooks.register({ event, targetUrl, token }).catch((reason) => reason)
    expect(error).toMatchObject({
      code: 'token_kind_not_accepted',
      message: expect.stringContaining(wrapped),
    })
    expect(error.message).not.toContain('canary')
  }
})
