import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createSimulator } from 'marketplace-webhooks/testing'
import { createApp, PLANS } from './app.js'

const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
const platform = createSimulator({
  ...credentials,
  apps: PLANS.map((uid) => ({ purchasableUid: uid, codeName: uid })),
})
let marketplace
let server
let url

before(async () => {
  const created = createApp(await platform.start(), credentials)
  marketplace = created.marketplace
  server = created.app.listen(0)
  url = `http://127.0.0.1:${server.address().port}`
  await platform.registerAll(marketplace.webhooks.targetUrl(`${url}/webhooks/marketplace`))
  platform.purchase({ business_uid: 'basic', purchasable_uid: 'plan-basic', payment: 'succeeded' })
  platform.purchase({ business_uid: 'pro', purchasable_uid: 'plan-pro', payment: 'succeeded' })
  await platform.settled()
})
after(async () => {
  server.close()
  server.closeAllConnections()
  await marketplace.close()
  await platform.close()
})

for (const [path, business, status, title] of [
  ['/reports', 'basic', 200, 'Reports'],
  ['/reports', 'pro', 200, 'Reports'],
  ['/forecast', 'pro', 200, 'Forecast'],
  ['/forecast', 'basic', 402, 'Part of Pro'],
  ['/reports', 'nobody', 402, 'Choose a plan'],
  ['/reports', '', 401, 'Please sign in'],
  ['/plans', 'nobody', 200, 'Plans'],
]) {
  test(`${path} for ${business || 'a visitor without a business'}: ${status} ${title}`, async () => {
    const response = await visit(path, business)
    assert.equal(response.status, status)
    assert.equal(response.headers.get('cache-control'), 'private, no-store')
    assert.match(await response.text(), new RegExp(`<h1>${title}</h1>`))
  })
}

test('/reports while the platform cannot be asked: 503, and the page loads again by itself', async () => {
  const outage = platform.faults.add({ on: 'platform', kind: 'down' })
  platform.purchase({ business_uid: 'new', purchasable_uid: 'plan-pro', payment: 'succeeded' })
  await platform.settled()
  const response = await visit('/reports', 'new')
  assert.equal(response.status, 503)
  assert.equal(response.headers.get('refresh'), '5;url=?')
  assert.match(await response.text(), /<h1>One moment<\/h1>/)
  outage.remove()
})

test('a buyer who comes back before the event waits, and is let in by it', async () => {
  assert.match(await (await visit('/bought', 'late')).text(), /<h1>Checking your purchase…<\/h1>/)
  const waiting = visit('/api/wait', 'late')
  platform.purchase({ business_uid: 'late', purchasable_uid: 'plan-basic', payment: 'succeeded' })
  assert.deepEqual(await (await waiting).json(), { entitled: true, known: true })
  assert.equal((await visit('/reports', 'late')).status, 200)
  assert.equal((await visit('/api/wait')).status, 401)
})

test('a business in the query or in a header gives no access', async () => {
  const headers = { 'x-business': 'pro' }
  assert.equal((await fetch(`${url}/reports?business=pro`, { headers })).status, 401)
})

/** Opens a page, after the sign-in for the business if there is one. */
async function visit(path, business) {
  if (!business) return fetch(`${url}${path}`)
  const { headers } = await fetch(`${url}/sign-in?business=${business}`, { redirect: 'manual' })
  const [cookie] = headers.get('set-cookie').split(';')
  return fetch(`${url}${path}`, { headers: { cookie } })
}
