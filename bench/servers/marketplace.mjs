import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../dist/lib/base/clock.js'
import { createMarketplace } from '../../dist/lib/index.js'
import { CREATE_STORE, storeFor } from '../../dist/lib/store-option.js'
import { medianOf } from '../harness/statistics.mjs'
import { businessOf, PURCHASABLE_UID, SECRET, subscriptionOf } from './deliveries.mjs'
import { lookMs } from './look.mjs'
import { answer, mountedAtX, serve, settings } from './serve.mjs'

/**
 * This package as the README shows it. Settings: `store`, `platformUrl`, `front` (`express`, `plain`, `watched`, or
 * `none`), `handlers`, `options` for `createMarketplace`, `internals`, `timesClaims`. Handlers are `none` (only for changes), `at-once`,
 * `failing-and-hung` (handlers of updates return at once, of installs fail, of uninstalls never return), `hung` or
 * `draining` (of uninstalls).
 */
const { platformUrl, front = 'express', handlers = 'none', options = {}, internals = {} } = settings
const beganAt = performance.now()
const store = storeFor(settings.store, systemClock)
const claims = settings.timesClaims ? timeOf(store, ['claimReads', 'claimLanes']) : undefined
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID, codeName: 'bench' },
  platform: { baseUrl: platformUrl, authUrl: platformUrl },
  deliverySecrets: SECRET,
  // The store that is also called directly.
  store: { [CREATE_STORE]: () => store },
  closeTimeoutMs: 500,
  ...options,
  [Symbol.for('marketplace-webhooks internals')]: internals,
})
let handled = 0
let firstAt = 0
let lastAt = 0
let onHandled = () => {}
const atOnce = () => {
  lastAt = performance.now()
  if (handled++ === 0) firstAt = lastAt
  onHandled()
}
/** After a look that found no work, a worker rests for 100 ms at most. */
const LONGER_THAN_A_REST_MS = 150
const never = () => new Promise(() => {})
const fails = () => {
  throw new Error('this handler fails')
}
const HANDLERS = {
  none: {},
  'at-once': { 'purchasable_subscription/update': atOnce },
  'failing-and-hung': {
    'purchasable_subscription/update': atOnce,
    'application/installed': fails,
    'application/uninstalled': never,
  },
  hung: { 'application/uninstalled': never },
  draining: { 'application/uninstalled': atOnce },
}
marketplace.onPurchaseChange(() => {})
for (const [event, handler] of Object.entries(HANDLERS[handlers])) marketplace.on(event, handler)

const answers = {
  handled: () => handled,
  health: () => marketplace.health(),
  isEntitled: (business) => marketplace.isEntitled(business),
  settled: async () => void (await marketplace.settled()),
  /** Subscriptions 1 to `count`. */
  async trackAll(count) {
    for (let first = 1; first <= count; first += 500) {
      const numbers = Array.from({ length: Math.min(500, count + 1 - first) }, (_, i) => first + i)
      await Promise.all(
        numbers.map((number) =>
          marketplace.subscriptions.track({
            subscriptionUid: subscriptionOf(number),
            businessUid: businessOf(number),
          }),
        ),
      )
    }
  },
  /** The median of the milliseconds of the claims since the last question, by kind. */
  claimTimes: () => claims(),
  look: (count) => lookMs(store, Object.keys(HANDLERS[handlers]), count),
  /** The number of entries handled so far, and the seconds from the first to the last. */
  drained: () => ({ handled, seconds: (lastAt - firstAt) / 1_000 }),
  /**
   * The milliseconds from a delivery until its handler is called, for one delivery after the other. Between them the worker
   * rests, so that its pause after a look counts for none.
   */
  async untilHandled(port, bodies) {
    const times = []
    for (const body of bodies) {
      await sleep(LONGER_THAN_A_REST_MS)
      const called = new Promise((resolve) => {
        onHandled = () => resolve(performance.now())
      })
      const sentAt = performance.now()
      const reply = await fetch(`http://127.0.0.1:${port}/x/${SECRET}`, { method: 'POST', body })
      if (!reply.ok) throw new Error(`a delivery got ${reply.status}, so no handler will be called`)
      times.push((await Promise.race([called, tooLate(60_000)])) - sentAt)
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
  if (front === 'watched') return watched(mountedAtX(marketplace.router))
  if (front === 'plain')
    return (marketplace.listener ?? marketplace.handler)?.({ path: '/x' }) ?? mountedAtX(marketplace.router)
  const { default: express } = await import('express')
  return express().use('/x', marketplace.router)
}

/** Rejects after `ms`. */
function tooLate(ms) {
  return new Promise((_resolve, reject) => {
    setTimeout(() => reject(new Error(`no handler was called for ${ms} ms`)), ms).unref()
  })
}

/** Measures calls of the store. Returns a function that returns the medians since its last call. */
function timeOf(of, names) {
  const times = {}
  for (const name of names) {
    const call = of[name]
    times[name] = []
    of[name] = async (...args) => {
      const calledAt = performance.now()
      try {
        return await call(...args)
      } finally {
        times[name].push(performance.now() - calledAt)
      }
    }
  }
  return () => Object.fromEntries(names.map((name) => [name, medianOf(times[name].splice(0))]))
}

/** Adds `GET /watch?business_uid=…&entitled=…`, which replies as soon as this instance gives that answer. */
function watched(next) {
  return async (req, res) => {
    if (!req.url.startsWith('/watch?')) return next(req, res)
    const { searchParams } = new URL(req.url, 'http://instance')
    const wanted = searchParams.get('entitled') === 'true'
    const deadline = Date.now() + 10_000
    while (
      (await marketplace.isEntitled(searchParams.get('business_uid'))) !== wanted &&
      Date.now() < deadline
    )
      await new Promise((resolve) => setTimeout(resolve, 5))
    res.end('seen')
  }
}
