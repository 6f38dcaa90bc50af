import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { ReadClaim } from '../../../lib/store/port/store.js'
import { concludeRead } from '../../../lib/work/reading/conclude-read.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { notice } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene, OUR_ITEM } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

describe('D24 while the clocks of the app and of PostgreSQL differ', () => {
  const engine = useEngine('PostgreSQL')

  it.each([10, -10])(
    'a question waits for the read as long as with one clock (%d s)',
    async (aheadSeconds) => {
      const { clock, leap } = jumpingClock()
      leap(aheadSeconds * SECOND)
      const store = await engine.freshAddress()
      const { marketplace, platform } = await createScene({ store, clock, freshness: { waitMs: 3_000 } })
      await marketplace.start()
      platform.faults.add({ on: 'read', kind: 'slow', ms: 700 })
      platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
      await platform.settled()
      expect(await marketplace.isEntitled('b1')).toBe(true)
      const { asOf } = await marketplace.explain('b1')
      expect(Math.abs(Date.parse(String(asOf)) - clock.now())).toBeLessThan(3_000)
    },
  )

  it.each([10, -10])('a question does not wait longer than waitMs (%d s)', async (aheadSeconds) => {
    const { clock, leap } = jumpingClock()
    leap(aheadSeconds * SECOND)
    const store = await engine.freshAddress()
    const { marketplace, platform } = await createScene({ store, clock, freshness: { waitMs: 500 } })
    await marketplace.start()
    platform.faults.add({ on: 'read', kind: 'hang' })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    const begun = performance.now()
    expect(await marketplace.explain('b1')).toMatchObject({ known: false, reason: 'not_read_yet' })
    expect(performance.now() - begun).toBeLessThan(1_500)
  })
})

describe.each(ENGINE_NAMES)('D81 after the wall clock was set, on %s', (engineName) => {
  const engine = useEngine(engineName)

  it.each([700, -700, 10_000, -10_000])(
    'all that one delivery wrote shows one moment (%d ms)',
    async (ms) => {
      const { clock, leap } = jumpingClock()
      const store = await engine.freshAddress()
      const { marketplace, deliver } = await createScene({ store, clock, worker: false })
      await marketplace.start()
      leap(ms)
      const { id } = await deliver(notice('b1', 's1'))
      const entry = await marketplace.journal.get(id)
      const subscription = await marketplace.subscriptions.get('s1')
      const [item] = await marketplace.businesses.history('b1', { limit: 1 })
      const times = [entry?.receivedAt, subscription?.requestedAt, subscription?.createdAt, item?.at].map(
        (time) => Date.parse(String(time)),
      )
      expect(Math.max(...times) - Math.min(...times)).toBeLessThan(100)
    },
  )
})

describe.each(ENGINE_NAMES)('H6 while the wall clock leaps by 70 s, on %s', (engineName) => {
  const engine = useEngine(engineName)

  it.each([70_000, -70_000])('the handlers of one subscription never run two at once (%d ms)', async (ms) => {
    const { clock, leap } = jumpingClock()
    const store = await engine.freshAddress()
    const { marketplace, deliver } = await createScene({ store, clock })
    const held = gate()
    const calls: string[] = []
    let active = 0
    let most = 0
    marketplace.on('purchasable_subscription/update', async ({ id }) => {
      calls.push(id)
      most = Math.max(most, ++active)
      if (calls.length === 1) await held.opened
      active--
    })
    await marketplace.start()
    const { id: first } = await deliver(notice('b1', 's1'))
    await until('the handler runs', () => active === 1)
    leap(ms)
    const { id: second } = await deliver(notice('b1', 's1'))
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(calls).toEqual([first])
    held.open()
    await until('the second change is handled', () => calls.length === 2)
    expect([calls, most]).toEqual([[first, second], 1])
    await until(
      'both handlers have ended',
      async () => (await marketplace.journal.list({ status: 'done' })).length === 2,
    )
  })
})

describe('D25 a wall clock that was ahead for a while', () => {
  const before = record('suspended', '2030-01-02T00:00:00.000Z')
  const subscription = {
    ...{
      subscriptionUid: 's1',
      businessUid: 'b1',
      purchasableUid: OUR_ITEM,
      record: before,
      state: 'suspended',
    },
    ...{ gone: null, readAt: null, requestedAt: null, owedSince: null },
    ...{ generation: 0, settledGeneration: 0 },
    ...{ pending: false, verifying: false, failure: null },
    refreshAt: null,
    quiet: false,
  }
  const claim: ReadClaim = {
    ...{
      id: 's1',
      leaseToken: 't',
      subscription,
      urgency: 4,
      cause: 'reconcile',
      generation: 0,
      settledGeneration: 0,
      lapses: 0,
    },
    ...{
      candidateBusinessUid: null,
      uninstalledAt: null,
      failingSince: null,
      updateAt: null,
      businessUpdateAt: null,
      endAt: null,
      createdAt: 0,
      claimedAt: 0,
      leaseTimeBehindMs: 0,
      progress: null,
    },
  }
  const conclude = (progress: string | null, result: ReadResult, now: number, belief?: 'believed') =>
    concludeRead({ ...claim, progress }, result, {
      ...{
        now,
        random: () => 0.5,
        reconcileEveryMs: 24 * HOUR,
        waitMs: 1_500,
        maxStaleMs: 72 * HOUR,
      },
      stateOf: ({ purchase_state }) => purchase_state,
      belief,
    })
  const right = Date.UTC(2030, 0, 3)
  const ahead = right + 365 * 24 * HOUR

  it('does not delay the acceptance of an older record that the platform keeps showing', () => {
    const older = { kind: 'found', record: record('purchased', '2030-01-01T00:00:00.000Z') } as const
    const first = conclude(null, older, ahead)
    const second = conclude(first.progress, older, right)
    expect(second.nextInMs).toBe(HOUR)
    expect(conclude(second.progress, older, right + HOUR).found).toMatchObject({ state: 'purchased' })
  })

  it('does not keep a record that has disappeared', () => {
    const missing = { kind: 'missing' } as const
    const first = conclude(null, missing, ahead)
    const second = conclude(first.progress, missing, right)
    expect(conclude(second.progress, missing, right + 2 * MINUTE, 'believed').found).toMatchObject({
      gone: 'missing',
    })
  })
})

function record(purchase_state: string, updated_at: string) {
  return { uid: 's1', business_uid: 'b1', purchasable_uid: OUR_ITEM, purchase_state, updated_at }
}
