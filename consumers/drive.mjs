/**
 * The program around an app: a simulated platform in front of it, and real requests to it. Prints `passed` at its end.
 */
export const BEFORE = `
import { createMarketplace } from 'marketplace-webhooks'
import { createSimulator, sampleDelivery } from 'marketplace-webhooks/testing'

const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
const secret = 'q8Zr3mW5xK1vT7yB9nL2cD4f'
const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
const marketplace = createMarketplace({
  app: { ...credentials, purchasableUid: 'my-item' },
  platform: await platform.start(),
  deliverySecrets: secret,
  store: 'sqlite::memory:',
})
await marketplace.start()
`

export const AFTER = `
const mount = url + '/webhooks/marketplace'
async function statusOf(address, options) {
  const reply = await fetch(address, options)
  await reply.text()
  return reply.status
}
const visit = (business) => statusOf(url + '/reports', { headers: { 'x-business': business } })
const deliver = (key) =>
  statusOf(mount + '/' + key, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(sampleDelivery('application/installed')),
  })

await platform.registerAll(marketplace.targetUrl(mount))
platform.purchase({ business_uid: 'bakery', payment: 'succeeded' })
await platform.settled()
await marketplace.idle()
const seen = {
  delivery: await deliver(secret),
  'wrong secret': await deliver('x'.repeat(24)),
  'has bought': await visit('bakery'),
  'has not bought': await visit('salon'),
  'deliveries of the purchase': [...new Set(platform.deliveries.map(({ status }) => status))].join(),
}
console.log(JSON.stringify(seen))
process.exit(0)
`

/** The checks of every app. */
export const EXPECTED = {
  delivery: 200,
  'wrong secret': 404,
  'has bought': 200,
  'has not bought': 402,
  'deliveries of the purchase': '200',
}
