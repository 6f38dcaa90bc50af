import { expect, it } from '@jest/globals'
import express from 'express'
import { z } from 'zod'
import { createMarketplace, defineEvent } from '../../lib/index.js'
import { createScene, DELIVERY_SECRET } from '../support/scene.js'

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
    'deliverySecrets: expected a text, or several',
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

it('app.use(router()) says to pass the router', async () => {
  const { marketplace } = await createScene()
  const router = marketplace.router as unknown as () => express.Router
  expect(() => express().use('/hooks', router())).toThrow(
    'pass marketplace.router to app.use, do not call it',
  )
})

it('a raw token says how to wrap it', async () => {
  const { marketplace, target: targetUrl } = await createScene()
  for (const [event, wrapped] of [
    ['application/installed', 'pass appToken(value)'],
    ['app_subscription/installed', 'pass businessToken(value) or directoryToken(value)'],
  ] as const) {
    const token = 'canary-raw-token' as never
    const error = await marketplace.webhooks.register({ event, targetUrl, token }).catch((reason) => reason)
    expect(error).toMatchObject({
      code: 'token_kind_not_accepted',
      message: expect.stringContaining(wrapped),
    })
    expect(error.message).not.toContain('canary')
  }
})
