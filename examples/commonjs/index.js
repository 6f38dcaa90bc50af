const express = require('express')
const { createMarketplace } = require('marketplace-webhooks')
const { createSimulator } = require('marketplace-webhooks/testing')

main()

async function main() {
  const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
  const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
  const marketplace = createMarketplace({
    app: { ...credentials, purchasableUid: 'my-item' },
    platform: await platform.start(),
    deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
    store: 'sqlite::memory:',
  })
  // Only for this example: anybody can send this header. A real app takes the business from its session.
  const paid = marketplace.requireEntitlement({ businessUid: (req) => req.get('x-business') })
  const server = express()
    .use('/webhooks/marketplace', marketplace.router)
    .get('/reports', paid, (_req, res) => void res.json({ visitors: 42 }))
    .listen(0)
  const url = `http://127.0.0.1:${server.address().port}`
  const visit = () => fetch(`${url}/reports`, { headers: { 'x-business': 'business-1' } })

  await platform.registerAll(marketplace.webhooks.targetUrl(`${url}/webhooks/marketplace`))
  console.log('before the purchase:', (await visit()).status)
  platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
  await platform.settled() // every webhook is delivered
  console.log('purchased:', (await visit()).status)

  server.close()
  server.closeAllConnections()
  await marketplace.close()
  await platform.close()
}
