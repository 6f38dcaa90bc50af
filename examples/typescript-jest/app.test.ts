import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { createMarketplace, type Marketplace, type PurchaseChange } from 'marketplace-webhooks'
import { createSimulator, type Simulator } from 'marketplace-webhooks/testing'
import { createApp } from './app'

describe('GET /reports', () => {
  let platform: Simulator
  let marketplace: Marketplace
  let server: Server
  let url: string

  beforeEach(async () => {
    const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
    platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
    marketplace = createMarketplace({
      app: { ...credentials, purchasableUid: 'my-item' },
      platform: await platform.start(),
      deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
      store: 'sqlite::memory:',
    })
    // A header stands for the session, in this test only.
    server = createServer(createApp(marketplace, (req) => req.get('x-business')))
    await new Promise<void>((resolve) => server.listen(0, resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await platform.registerAll(marketplace.webhooks.targetUrl(`${url}/webhooks/marketplace`))
  })
  afterEach(async () => {
    server.close()
    server.closeAllConnections()
    await marketplace.close()
    await platform.close()
  })

  async function statusFor(business: string): Promise<number> {
    await platform.settled()
    return (await fetch(`${url}/reports`, { headers: { 'x-business': business } })).status
  }

  it('is open while the purchase is paid', async () => {
    expect(await statusFor('business-1')).toBe(402)
    const { uid } = platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    expect(await statusFor('business-1')).toBe(200)
    platform.paymentIssue(uid)
    expect(await statusFor('business-1')).toBe(402)
    platform.confirmPayment(uid)
    expect(await statusFor('business-1')).toBe(200)
  })

  it('handles the change', async () => {
    const change = new Promise<PurchaseChange>((resolve) => {
      marketplace.onPurchaseChange(resolve)
    })
    platform.purchase({ business_uid: 'business-2', payment: 'failed' })
    expect(await change).toMatchObject({ business_uid: 'business-2', to: 'suspended', entitled: false })
  })
})
