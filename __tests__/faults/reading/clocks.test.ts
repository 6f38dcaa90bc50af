import { describe, expect, it } from '@jest/globals'
import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { SubscriptionRecord } from '../../../lib/base/record.js'
import type { ReadResult } from '../../../lib/platform/read-result.js'
import type { ReadClaim, Store } from '../../../lib/store/port/store.js'
import { concludeRead } from '../../../lib/work/reading/conclude-read.js'
import { evidenceOfEnd } from '../../../lib/work/reading/end-evidence.js'
import { readFacts } from '../../../lib/work/reading/facts.js'
import { claimedAll, named } from '../../support/conformance/reads/read-calls.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { notice } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene } from '../../support/scene.js'
import { createKnown, found_ } from '../../support/scenes/reader.js'
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
      const store = await engine.freshAddress()
      const { marketplace, deliver, leap } = await createScene({ store, worker: false })
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
    const store = await engine.freshAddress()
    const { marketplace, deliver, leap } = await createScene({ store })
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
  const AHEAD_MS = 365 * 24 * HOUR

  it('does not delay the acceptance of an older record that the platform keeps showing', () => {
    const reader = createKnown('suspended', 2)
    reader.pass(AHEAD_MS)
    reader.reads(found_('purchased', 1))
    reader.pass(-AHEAD_MS)
    expect(reader.reads(found_('purchased', 1)).nextInMs).toBe(HOUR)
    reader.pass(HOUR)
    expect(reader.reads(found_('purchased', 1)).found).toMatchObject({ state: 'purchased' })
  })

  it('does not keep a record that has disappeared', () => {
    const reader = createKnown()
    reader.pass(AHEAD_MS)
    reader.reads({ kind: 'missing' })
    reader.pass(-AHEAD_MS)
    reader.reads({ kind: 'missing' })
    reader.pass(2 * MINUTE)
    expect(reader.reads({ kind: 'missing' }).found).toMatchObject({ gone: 'missing' })
  })
})

describe('D82 two processes on PostgreSQL read a subscription in turn, and the clock of one is an hour behind', () => {
  const engine = useEngine('PostgreSQL')

  it.each(['missing', 'older'] as const)(
    'what the platform shows counts as repeated only for the time that has passed (%s)',
    async (what) => {
      const address = await engine.freshAddress()
      const [behind, right] = [jumpingClock(), jumpingClock()]
      behind.leap(-HOUR)
      const open = async ({ clock }: typeof right) => ({
        clock,
        store: (await openStoreWithSql(address, { clock })).store,
      })
      const [first, second] = [await open(behind), await open(right)]
      await reads(first, found_('purchased', 2))
      const shown: ReadResult = what === 'missing' ? { kind: 'missing' } : found_('suspended', 1)
      await reads(first, shown)
      // Two more: a record is gone after three reads over a minute.
      for (const process of [second, second]) await reads(process, shown)
      expect(await second.store.subscriptionsOf('b')).toMatchObject([{ state: 'purchased', gone: null }])
    },
  )

  /** Lets a process read the subscription once, which the platform answers like this. */
  async function reads({ store, clock }: { store: Store; clock: Clock }, result: ReadResult) {
    await store.requestRefresh(named('s', 'b'))
    const [claim] = await until('the read is due', async () => {
      const claims = await claimedAll(store)
      return claims.length > 0 && claims
    })
    const env = {
      ...{ now: clock.now(), random: () => 0.5, waitMs: 0, reconcileEveryMs: DAY, maxStaleMs: 3 * DAY },
      stateOf: (record: SubscriptionRecord) => record.purchase_state,
    }
    const evidence = evidenceOfEnd(readFacts(claim as ReadClaim, result, env))
    const belief = evidence && 'believed'
    const { moves, ...finish } = concludeRead(claim as ReadClaim, result, { ...env, belief })
    expect(await store.finishRead(claim as ReadClaim, finish)).toBe(true)
  }
})
