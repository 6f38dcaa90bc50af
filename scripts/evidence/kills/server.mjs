/**
 * A receiver on the built package, which is killed at any moment. It loads the package, reports that, and waits for its
 * settings, so the next process loads while the previous one still works. All reports go to the parent over a pipe, which
 * keeps what was written when the process is killed.
 */
import { createServer } from 'node:http'
import { createMarketplace } from '../../../dist/lib/index.js'

process.once('message', begin)
process.once('disconnect', () => process.exit())
report({ is: 'loaded' })

function begin({ app, platform, deliverySecret, store, leaseMs, handlersTakeMs }) {
  const marketplace = createMarketplace({
    ...{ app, platform, store },
    deliverySecrets: deliverySecret,
    // Most processes do not live for as long as a question waits for a read.
    freshness: { waitMs: 20 },
    // Durations that are no options: the work of a killed process is taken over soon.
    [Symbol.for('marketplace-webhooks internals')]: { leaseMs, pollMs: 50 },
  })
  const takeTime = () => new Promise((resolve) => setTimeout(resolve, Math.random() * handlersTakeMs))
  marketplace.onAny(async ({ id }) => {
    report({ is: 'handled', id })
    await takeTime()
  })
  marketplace.onEntitlementChange(async ({ id }) => {
    report({ is: 'handled', id })
    await takeTime()
  })
  marketplace.onPurchaseChange(async ({ id, subscription_uid, to }) => {
    report({ is: 'handled', id, subscription_uid, to })
    await takeTime()
  })
  const server = createServer(marketplace.listener({ path: '/hooks' }))
  server.listen(0, '127.0.0.1', () => report({ is: 'listening', port: server.address().port }))

  process.on('message', async ({ question, business }) => {
    const answer =
      business === undefined ? await entriesOf(marketplace) : await entitled(marketplace, business)
    report({ is: 'answer', question, answer })
  })
}

/** The answer; null while the store does not open or its answer is not known. */
async function entitled(marketplace, business) {
  const { entitled, known } = await marketplace.explain(business)
  return known ? entitled : null
}

/** All entries of the journal, the oldest first. */
async function entriesOf({ journal }) {
  const entries = await journal.list({ limit: 1_000 })
  for (let page = entries; page.length === 1_000; ) {
    page = await journal.list({ limit: 1_000, before: page.at(-1).id })
    entries.push(...page)
  }
  return entries.reverse().map(({ id, kind, business_uid, status, error }) => {
    return { id, kind, business_uid, status, error }
  })
}

function report(message) {
  process.send?.(message)
}
