import { createMarketplace } from '../../dist/esm/index.js'
import { PURCHASABLE_UID, SECRET } from './deliveries.mjs'
import { answer, serve, settings } from './serve.mjs'

/**
 * This package as the README shows it. Settings: `store`, `platformUrl`, `front` (`express`, `plain`, or `none`),
 * `handlers` (`none`: only for changes; `at-once`; `failing-and-hung`), `options` for `createMarketplace`.
 */
const { store, platformUrl, front = 'express', handlers = 'none', options = {} } = settings
const beganAt = performance.now()
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID, codeName: 'bench' },
  platform: { baseUrl: platformUrl, authUrl: platformUrl },
  deliverySecrets: SECRET,
  store,
  closeGraceMs: 500,
  ...options,
})
let handled = 0
let onHandled = () => {}
marketplace.onPurchaseChange(() => {})
if (handlers !== 'none') {
  marketplace.on('purchasable_subscription/update', () => {
    handled++
    onHandled()
  })
}
if (handlers === 'failing-and-hung') {
  marketplace.on('application/installed', () => {
    throw new Error('this handler fails')
  })
  marketplace.on('application/uninstalled', () => new Promise(() => {}))
}

const answers = {
  handled: () => handled,
  health: () => marketplace.health(),
  isEntitled: (business) => marketplace.isEntitled(business),
  track: (subscription) => marketplace.track(subscription),
  reset() {
    handled = 0
  },
  /** ms from the reply to a delivery until its handler is called, each of `count` after the one before. */
  async untilHandled(port, bodies) {
    const times = []
    for (const body of bodies) {
      const called = new Promise((resolve) => {
        onHandled = () => resolve(performance.now())
      })
      const sentAt = performance.now()
      await fetch(`http://127.0.0.1:${port}/x/${SECRET}`, { method: 'POST', body })
      times.push((await called) - sentAt)
    }
    onHandled = () => {}
    return times
  },
}

await marketplace.start()
const ready = { startMs: performance.now() - beganAt }
if (front === 'none') answer(answers, marketplace.close, ready)
else serve(await listener(), answers, marketplace.close, ready)

async function listener() {
  if (front === 'plain') return marketplace.handler?.({ path: '/x' }) ?? adapted(marketplace.router)
  const { default: express } = await import('express')
  return express().use('/x', marketplace.router)
}

/** The router below a path without a framework, as Express mounts it. */
function adapted(router) {
  return (req, res) => {
    if (!req.url.startsWith('/x/')) return res.writeHead(404).end()
    req.url = req.url.slice(2)
    router(req, res)
  }
}
