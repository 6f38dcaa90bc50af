import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import type { Decision, PurchaseChange } from '../../lib/index.js'
import { storeFor } from '../../lib/store-option.js'
import { onCleanUp } from '../support/clean-up.js'
import { withStoreFaults } from '../support/engines/store-faults.js'
import { storeOption } from '../support/engines/store-option.js'
import { notice } from '../support/events.js'
import { internals } from '../support/internals.js'
import { createScene, OUR_ITEM } from '../support/scene.js'
import { until } from '../support/until.js'

describe('while the store cannot accept a delivery', () => {
  it('the reply is 503 with Retry-After, nothing is stored, and the next delivery after the failure is accepted', async () => {
    const { store, scene } = await faultyScene()
    const fault = store.faults.add({ on: 'accept', kind: 'unavailable' })
    const { status, headers, body } = await scene.deliver(notice('b1', 's1'))
    expect([status, body.code, body.received]).toEqual([503, 'delivery_not_accepted', undefined])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await scene.marketplace.journal.list()).toEqual([])
    fault.remove()
    const { status: next, id } = await scene.deliver(notice('b1', 's1'))
    expect(next).toBe(200)
    expect((await scene.marketplace.journal.list()).map((entry) => entry.id)).toEqual([id])
  })

  it('a delivery that it stored without acknowledging still causes a read, and its repetition does no harm', async () => {
    const { store, scene } = await faultyScene()
    const { uid } = purchased(scene)
    await scene.platform.settled()
    scene.platform.faults.add({ on: 'delivery', kind: 'drop' })
    store.faults.add({ on: 'accept', kind: 'unacknowledged', times: 1 })
    scene.platform.paymentIssue(uid)
    expect((await scene.deliver(notice('b1', uid))).status).toBe(503)
    await until('the handler gets the change', async () => !(await scene.marketplace.isEntitled('b1')))
    expect((await scene.deliver(notice('b1', uid))).status).toBe(200)
    await until('all requested reads are done', async () => settled(await scene.marketplace.explain('b1')))
    expect(await scene.marketplace.isEntitled('b1')).toBe(false)
  })

  it('the receiver waits for an unresponsive store until the deadline; a delivery that the store writes later counts', async () => {
    const { store, scene } = await faultyScene({ ...internals({ acceptTimeoutMs: 100 }) })
    scene.platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = purchased(scene)
    const hang = store.faults.add({ on: 'accept', kind: 'hang' })
    const replies = await Promise.all(Array.from({ length: 5 }, () => scene.deliver(notice('b1', uid))))
    expect(replies.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503])
    expect(store.faults.held).toBe(5)
    hang.remove()
    await until('the business has access', () => scene.marketplace.isEntitled('b1'))
  })
})

describe('J2 while the store cannot be read', () => {
  it('J2 the last answer stands until maxStaleMs, then every business is denied until the store can be read again', async () => {
    const { store, scene } = await faultyScene({ freshness: { maxStaleMs: 1_000, reconcileEveryMs: 1_000 } })
    purchased(scene)
    await until('the business has access', () => scene.marketplace.isEntitled('b1'))
    const fault = store.faults.add({ kind: 'unavailable' })
    expect(await scene.marketplace.isEntitled('b1')).toBe(true)
    expect(await scene.marketplace.isEntitled('b2')).toBe(false)
    await until('the answer is too old', async () => !(await scene.marketplace.isEntitled('b1')))
    expect(await scene.marketplace.explain('b1')).toMatchObject({ entitled: false })
    expect(await scene.marketplace.health()).toMatchObject({ status: 'failing', counts: null })
    fault.remove()
    await until('the business has access again', () => scene.marketplace.isEntitled('b1'))
    expect(await scene.marketplace.health()).toMatchObject({ status: 'ok' })
  })
})

describe('when the store fails the worker', () => {
  it.each(['unavailable', 'unacknowledged'] as const)(
    'a read whose finish is %s is finished later, and its change is delivered',
    async (kind) => {
      const { store, scene, changes } = await faultyScene()
      const fault = store.faults.add({ on: 'finishRead', kind, times: 2 })
      purchased(scene)
      await until('the change is handled', () => changes.length > 0)
      expect(await scene.marketplace.isEntitled('b1')).toBe(true)
      expect(changes).toMatchObject([{ from: null, to: 'purchased', entitled: true }])
      expect(fault.strikes).toBeGreaterThan(0)
    },
  )

  it('a handler whose finish could not be written has still ended, and this process does not call it again', async () => {
    const { store, scene, changes } = await faultyScene()
    const fault = store.faults.add({ on: 'finishLanes', kind: 'unavailable', times: 1 })
    purchased(scene)
    const ended = async () => (await scene.marketplace.journal.list({ kind: 'change' }))[0]
    const change = await until('the entry is done', async () => {
      const entry = await ended()
      return entry?.status === 'done' && entry
    })
    expect(change).toMatchObject({ attempts: 1 })
    expect([fault.strikes, changes.map(({ id }) => id)]).toEqual([1, [change.id]])
  })

  it.each([
    ['claimReads', 'reading'],
    ['claimLanes', 'handling'],
    ['handleTopics', 'handling'],
    ['dueSuspect', 'handling'],
    ['prune', 'sweeping'],
  ] as const)('a failed %s is given to the logger, in the area %s', async (on, area) => {
    const failures: unknown[] = []
    const logger = { warn() {}, error: (fields: object) => failures.push(fields) }
    const { store, scene } = await faultyScene({ logger })
    store.faults.add({ on, kind: 'unavailable' })
    purchased(scene)
    await until('the failure is logged', () => failures.length > 0)
    expect(failures).toEqual([{ area, code: 'store_unavailable' }])
  })

  it('claims whose answer is lost are taken over when their leases expire', async () => {
    const { store, scene, changes } = await faultyScene()
    const { marketplace } = scene
    const lostReads = store.faults.add({ on: 'claimReads', kind: 'unacknowledged' })
    const lostEntries = store.faults.add({ on: 'claimLanes', kind: 'unacknowledged' })
    purchased(scene)
    await until('the lease of a read is lost', async () => {
      const [subscription] = await store.subscriptionsOf('b1')
      return Number(subscription?.refreshAt) > Date.now()
    })
    lostReads.remove()
    await until('the lease of the change is lost', () => lostEntries.strikes > 0)
    expect(await marketplace.isEntitled('b1')).toBe(true)
    expect(changes).toEqual([])
    lostEntries.remove()
    await until('the change is handled', () => changes.length > 0)
  })

  it('closing ends in time although the store does not answer any more', async () => {
    const { store, scene } = await faultyScene({ closeTimeoutMs: 200 })
    await scene.marketplace.start()
    store.faults.add({ on: ['claimReads', 'claimLanes'], kind: 'hang' })
    await until('the worker waits for the store', () => store.faults.held >= 2)
    const closed = scene.marketplace.close().then(() => true)
    const late = new Promise((resolve) => setTimeout(resolve, 4_000, false).unref())
    const inTime = await Promise.race([closed, late])
    store.faults.clear()
    await closed
    expect(inTime).toBe(true)
  })
})

describe('a store that fails at random', () => {
  it.each([1, 2, 3])('keeps every promise eventually (seed %i)', async (seed) => {
    const { store, scene, changes } = await faultyScene({}, [], seed)
    const { platform, marketplace } = scene
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const businesses = Array.from({ length: 8 }, (_, i) => `business-${i}`)
    const uids = businesses.map(
      (business_uid) => platform.purchase({ business_uid, purchasable_uid: OUR_ITEM, payment: 'failed' }).uid,
    )
    store.faults.add({ kind: 'unacknowledged', probability: 0.1 })
    store.faults.add({ kind: 'unavailable', probability: 0.1 })
    const acknowledged: string[] = []
    let refused = 0

    /** Delivers like a sender that retries: the app knows only acknowledged deliveries. */
    async function deliverUntilAccepted(i: number) {
      for (;;) {
        const { status, id } = await scene.deliver(notice(businesses[i] as string, uids[i] as string))
        if (status === 200) return void acknowledged.push(id)
        expect(status).toBe(503)
        refused++
      }
    }

    await Promise.all(uids.map((_, i) => deliverUntilAccepted(i)))
    for (let round = 0; round < 6; round++) {
      await Promise.all(
        uids.map((uid, i) => {
          if ((i + round) % 3 === 0) platform.confirmPayment(uid)
          else platform.paymentIssue(uid)
          return deliverUntilAccepted(i)
        }),
      )
    }
    store.faults.clear()

    expect(refused).toBeGreaterThan(0)
    const kept = new Set((await marketplace.journal.list({ limit: 1_000 })).map(({ id }) => id))
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
    const right = uids.map((uid) => platform.subscription(uid)?.purchase_state === 'purchased')
    await until('every decision is correct and settled', async () => {
      const decisions = await Promise.all(businesses.map((each) => marketplace.explain(each)))
      return decisions.every((each, i) => settled(each) && each.entitled === right[i])
    })
    await until('every entry is done', async () => {
      return (await store.counts()).pending === 0
    })
    const listed = await marketplace.journal.list({ kind: 'change', limit: 1_000 })
    const handled = new Set(changes.map(({ id }) => id))
    expect(listed.filter(({ id, status }) => status !== 'done' || !handled.has(id))).toEqual([])
    const last = new Map(changes.map((change) => [change.subscription_uid, change]))
    expect(uids.map((uid) => last.get(uid)?.entitled)).toEqual(right)
  })
})

type Plan = NonNullable<Parameters<typeof withStoreFaults>[1]>['faults']

/** An app on a store with these faults, with a handler that collects its changes. */
async function faultyScene(
  options: Parameters<typeof createScene>[0] = {},
  faults: NonNullable<Plan> = [],
  seed = 1,
) {
  const store = withStoreFaults(storeFor('sqlite::memory:', systemClock), { seed, faults })
  // Released before the marketplace closes, because clean-ups run from the last to the first.
  const scene = await createScene({
    store: storeOption(store),
    ...internals({ pollMs: 20, leaseMs: 1_000 }),
    ...options,
  })
  onCleanUp(() => store.faults.clear())
  const changes: PurchaseChange[] = []
  scene.marketplace.onPurchaseChange((change) => void changes.push(change))
  return { store, scene, changes }
}

function purchased({ platform }: Awaited<ReturnType<typeof createScene>>) {
  return platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
}

function settled(decision: Decision): boolean {
  return decision.subscriptions.length > 0 && decision.subscriptions.every(({ pending }) => !pending)
}
