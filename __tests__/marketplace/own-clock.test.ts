import { describe, expect, it, jest } from '@jest/globals'
import { type Clock, MINUTE, systemClock } from '../../lib/base/clock.js'
import type { Marketplace } from '../../lib/index.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { onCleanUp } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { internals } from '../support/internals.js'
import { quietWarnings } from '../support/output.js'
import { startScraping } from '../support/processes/exposition.js'
import { createScene, openMarketplace, serve } from '../support/scene.js'
import { track } from '../support/scenes/purchases.js'
import { B1, B2 } from '../support/settings.js'
import { until } from '../support/until.js'

describe.each(ENGINE_NAMES)('the clock of an app on %s', (name) => {
  const engine = useEngine(name)

  it('measures everything: the clock of the system is never asked', async () => {
    quietWarnings()
    const { scrape } = await startScraping()
    const delays: number[] = []
    const clock: Clock = {
      now: () => Date.now(),
      monotonic: () => performance.now(),
      setTimeout(run, ms) {
        delays.push(ms)
        return setTimeout(run, Math.min(ms, 2 ** 31 - 1)).unref()
      },
      clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
    }
    const asked = new Set<string>()
    for (const method of ['now', 'monotonic', 'setTimeout'] as const) {
      const { [method]: own } = systemClock
      const spy = jest.spyOn(systemClock, method).mockImplementation(((...given: [never, never]) => {
        asked.add(`${method}${new Error().stack?.split('\n').slice(2, 5).join()}`)
        return own(...given)
      }) as never)
      onCleanUp(() => spy.mockRestore())
    }

    const { platform, marketplace, app, url, target, deliver } = await createScene(
      {
        ...{ store: await engine.freshAddress(), clock, logger: { warn() {}, error() {} } },
        ...{ freshness: { waitMs: 100 }, handlers: { retryDelaysMs: [10] }, ...internals({ pollMs: 20 }) },
        verifyDelivery: () => true,
        entitledWhen({ business_uid, purchase_state }) {
          if (business_uid === B2) throw new Error('no rule')
          return purchase_state === 'purchased'
        },
      },
      { clock },
    )
    let tries = 0
    marketplace.onPurchaseChange(() => {
      if (++tries === 1) throw new Error('not yet')
    })
    marketplace.onHealthChange(() => {})
    platform.faults.add({ on: 'read', kind: 'status', status: 429, retryAfter: 1, times: 1 })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    platform.purchase({ business_uid: B2, payment: 'succeeded' })
    await platform.settled()
    await until('the change is tried again', () => tries > 1)
    await until(
      'the rule fails',
      async () => (await marketplace.explain(B2)).reason === 'entitled_when_failed',
    )
    await deliver(sampleDelivery('application/uninstalled', { business_id: B1 }))
    await marketplace.settled({ timeoutMs: MINUTE })
    app.use('/paid', marketplace.requireEntitlement({ businessUid: (req) => req.query.of }))
    await fetch(`${url}/paid?of=nobody`)
    const other = await serve(
      marketplace.listener({ path: '/x', otherwise: () => Promise.reject(new Error('no app')) }) as never,
    )
    // Replies before the body has arrived wait for it.
    const [big, method] = ['x'.repeat(1_000_000), 'POST']
    for (const address of [`${target}x`, target, `${other}/y`, `${other}/x/y`, `${url}/paid?of=nobody`])
      await fetch(address, { method, body: big }).catch(() => {})
    await askEverything(marketplace)
    await marketplace.subscriptions.import([{ subscriptionUid: 's9', businessUid: B1 }])
    await scrape()

    const closed = openMarketplace(platform, { store: 'sqlite:/not/there/m.db', clock })
    const before = delays.length
    await closed.start().catch(() => {})
    await until('it opens again soon', () => delays.slice(before).some((ms) => ms > 1_000 && ms < 2_000))
    await track(platform, closed).catch(() => {})
    await askEverything(closed)
    await closed.close()
    await marketplace.close()
    expect([...asked]).toEqual([])
  }, 60_000)
})

/** Asks whatever a person and an app ask. */
async function askEverything({ businesses, webhooks, health, readiness, isEntitled, explain }: Marketplace) {
  const calls = [health, readiness, webhooks.check, () => isEntitled(B1), () => explain(B1)]
  const ofBusiness = [businesses.refresh, businesses.history, businesses.export, businesses.erase]
  for (const call of [...calls, ...ofBusiness.map((ask) => () => ask(B1))])
    await (call() as Promise<unknown>).catch(() => {})
}
