import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../../../__tests__/support/world/random.js'
import { createSimulator } from '../../../lib/testing/index.js'

const APP = { clientId: 'app', clientSecret: 'client-secret', purchasableUid: 'item' }
const DELIVERY_SECRET = 'Hd4vTq9mZs2xKb7wLp3n'

/**
 * A simulated platform whose businesses buy, miss payments, pay, cancel and buy again, and a post office, which passes its
 * deliveries on to the process of now, eight at once, and notes what was acknowledged. What is not acknowledged is sent
 * again.
 */
export async function openMarket(seed: number, random: Random) {
  const platform = createSimulator({
    ...{
      clientId: APP.clientId,
      clientSecret: APP.clientSecret,
      apps: [{ purchasableUid: APP.purchasableUid }],
    },
    ...{ seed, deliveryConcurrency: 8, retries: 1_000, retryDelayMs: 100 },
  })
  const addresses = await platform.start()
  const businesses = Array.from({ length: 8 }, (_, i) => `business-${i}`)
  const subscriptions = new Map<string, string>()
  const everAllowed = new Set<string>()
  const acknowledged = new Set<string>()
  const agent = new Agent({ keepAlive: true })
  let port = 0

  const office = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const { status, text } = await post(Buffer.concat(chunks)).catch(() => ({ status: 502, text: '' }))
    if (status === 200) {
      const { id, ids = [id] } = JSON.parse(text) as { id: string; ids?: string[] }
      for (const each of ids) acknowledged.add(each)
    }
    res.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => office.once('listening', resolve))
  await platform.registerAll(`http://127.0.0.1:${(office.address() as AddressInfo).port}/`)

  function post(body: Buffer): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length }
      const path = `/hooks/${DELIVERY_SECRET}`
      const sent = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (reply) => {
        let text = ''
        reply.setEncoding('utf8')
        reply.on('data', (part) => {
          text += part
        })
        reply.once('end', () => resolve({ status: Number(reply.statusCode), text }))
        // A reply that breaks off is none.
        reply.once('error', reject)
      })
      sent.once('error', reject).end(body)
    })
  }

  function act() {
    const business = random.pick(businesses)
    const uid = subscriptions.get(business)
    const state = uid && platform.subscription(uid)?.purchase_state
    if (!uid || state === 'canceled') {
      const payment = random.chance(0.7) ? 'succeeded' : 'failed'
      subscriptions.set(business, platform.purchase({ business_uid: business, payment }).uid)
    } else {
      const what = random.choose({ renews: 4, pays: 4, misses: 4, cancels: 1 })
      if (what === 'renews') platform.touch(uid)
      if (what === 'pays') platform.confirmPayment(uid)
      if (what === 'misses') platform.paymentIssue(uid)
      if (what === 'cancels') platform.cancel(uid)
    }
    if (isAllowed(business)) everAllowed.add(business)
  }

  const isAllowed = (business: string) =>
    platform.subscription(subscriptions.get(business) ?? '')?.purchase_state === 'purchased'

  return {
    businesses,
    acknowledged,
    /** What a process needs to use this platform. */
    settings: { app: APP, platform: addresses, deliverySecret: DELIVERY_SECRET },
    /** Passes deliveries on to this port from now on; with 0 to nobody. */
    deliverTo(given: number) {
      port = given
    },
    act,
    isAllowed,
    /** Whether the business was allowed to use the app at any time until now. */
    wasAllowed: (business: string) => everAllowed.has(business),
    states: () => new Map(platform.subscriptions().map(({ uid, purchase_state }) => [uid, purchase_state])),
    settled: () => platform.settled(),
    async close() {
      await platform.close()
      agent.destroy()
      office.closeAllConnections()
      await new Promise((resolve) => office.close(resolve))
    },
  }
}

export type Market = Awaited<ReturnType<typeof openMarket>>
