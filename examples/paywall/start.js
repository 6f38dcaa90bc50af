import { createSimulator } from 'marketplace-webhooks/testing'
import { createApp, PLANS } from './app.js'

// The platform on this machine, and three businesses: one with each plan, and one with none.
const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
const platform = createSimulator({
  ...credentials,
  apps: PLANS.map((uid) => ({ purchasableUid: uid, codeName: uid })),
})
const { app, marketplace } = createApp(await platform.start(), credentials)
const server = app.listen(Number(process.env.PORT ?? 3000), async () => {
  const url = `http://localhost:${server.address().port}`
  await platform.registerAll(marketplace.webhooks.targetUrl(`${url}/webhooks/marketplace`))
  platform.purchase({ business_uid: 'basic', purchasable_uid: 'plan-basic', payment: 'succeeded' })
  platform.purchase({ business_uid: 'pro', purchasable_uid: 'plan-pro', payment: 'succeeded' })
  for (const business of ['basic', 'pro', 'nobody']) console.log(`${url}/sign-in?business=${business}`)
  console.log(`then ${url}/reports and ${url}/forecast`)
})
