import { createMarketplace } from '../../dist/lib/index.js'
import { businessOf, PURCHASABLE_UID, SECRET, subscriptionOf } from './deliveries.mjs'
import { answer, settings } from './serve.mjs'

/** Reads `count` subscriptions from the platform: with the package, and with a plain loop of the same two calls. */
const { platformUrl, count, concurrency } = settings

const answers = {
  /** Seconds from the first `track` until every subscription is read and no read is requested. */
  async package(store, first) {
    let reads = 0
    let onEnough = () => {}
    const enough = new Promise((resolve) => {
      onEnough = resolve
    })
    const marketplace = createMarketplace({
      app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID },
      platform: {
        baseUrl: platformUrl,
        authUrl: platformUrl,
        async fetch(...call) {
          const reply = await fetch(...call)
          // A token and a record for each subscription.
          if (++reads === 2 * count) onEnough()
          return reply
        },
      },
      reads: { concurrency },
      deliverySecrets: SECRET,
      store,
    })
    marketplace.onPurchaseChange(() => {})
    await marketplace.start()
    const start = performance.now()
    for (let i = 0; i < count; i += 500) {
      const numbers = Array.from({ length: Math.min(500, count - i) }, (_, k) => first + i + k)
      await Promise.all(
        numbers.map((number) =>
          marketplace.subscriptions.track({
            subscriptionUid: subscriptionOf(number),
            businessUid: businessOf(number),
          }),
        ),
      )
    }
    await enough
    while ((await marketplace.health()).counts?.requested !== 0)
      await new Promise((resolve) => setTimeout(resolve, 5))
    const seconds = (performance.now() - start) / 1_000
    // The CPU time contains the handlers of the last changes.
    await marketplace.settled()
    await marketplace.close()
    return seconds
  },

  async bare(first) {
    let next = first
    const start = performance.now()
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        while (next < first + count) {
          const number = next++
          const token = await call(
            `/oauth/token?client_id=bench&client_secret=bench&business_uid=${businessOf(number)}`,
            { method: 'POST' },
          )
          await call(`/subscriptions?filter%5Buid%5D=${subscriptionOf(number)}`, {
            headers: { Authorization: `Bearer ${token.access_token}` },
          })
        }
      }),
    )
    return (performance.now() - start) / 1_000
  },
}

async function call(path, init) {
  const reply = await fetch(`${platformUrl}${path}`, init)
  if (!reply.ok) throw new Error(`the platform answered ${reply.status}`)
  return JSON.parse(await reply.text())
}

answer(answers, () => {})
