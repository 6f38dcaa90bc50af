import './support/simulation/quick-construction.js'
import { describe, expect, it, jest } from '@jest/globals'
import { claimOne } from '../lib/adapter/lab.js'
import { DAY, SECOND } from '../lib/clock.js'
import type { SubscriptionRecord } from '../lib/record.js'
import type { ReadClaim } from '../lib/store/store.js'
import { concludeRead } from '../lib/work/conclude-read.js'
import { createLeaseLoop } from '../lib/work/lease-loop.js'
import { breaksOf } from './support/simulation/breaks.js'
import { createDatabase } from './support/simulation/database.js'
import { simulate } from './support/simulation/run.js'
import { STORES } from './support/simulation/stores.js'
import { createTables } from './support/simulation/tables.js'
import { until } from './support/until.js'
import { createVirtualClock } from './support/virtual-clock.js'

/**
 * The whole system with several instances, in worlds that depend only on a seed. The platform lags, lies and fails.
 * Deliveries are lost, doubled and late. Instances are killed, frozen and cut off. `npm run simulate` makes any number
 * of worlds, or repeats one.
 */
/**
 * Runs as many worlds as the time allows, within these bounds. On the package's SQL each takes several times longer.
 */
const LEAST = 8
const MOST = 200
const TIME_MS = 3_000
const FIRST = 1

/** The rarest sabotage shows in about one world of sixty. */
const MOST_SEEDS = 300

jest.setTimeout(180_000)

describe.each(Object.entries(STORES))('D19 a simulated world on %s', (store, open) => {
  it('keeps every promise, with any seed', async () => {
    const database = await open()
    const endAt = Date.now() + TIME_MS
    // Every run uses other seeds; a failure prints its seed.
    const first = 1 + Math.floor(Math.random() * 1_000_000)
    for (let made = 0; made < MOST && (made < LEAST || Date.now() < endAt); made++) {
      const { seed, failures } = await simulate(first + made, database)
      if (failures[0])
        throw new Error(`npm run simulate -- --seed ${seed} (${store}): ${failures[0].message}`)
    }
    await database.close()
  })

  it('is the same whenever its seed is run', async () => {
    const database = await open()
    const { trace } = await simulate(FIRST, database)
    expect(trace.length).toBeGreaterThan(20)
    // Another world runs in between, and must leave nothing behind.
    await simulate(FIRST + 1, database)
    expect((await simulate(FIRST, database)).trace).toEqual(trace)
    await database.close()
  })
})

describe('D19 a simulated world detects a sabotage:', () => {
  const tables = createTables()

  it.each(breaksOf(tables))('%s: %s', async (_what, promised, broken, tilt = {}) => {
    const kept = new Set<string>()
    for (let seed = 1; seed <= MOST_SEEDS; seed++) {
      const { failures } = await simulate(seed, tables, { broken, tilt, patienceMs: 30 * 60_000 })
      if (failures.some((each) => each.promised === promised)) return
      for (const each of failures) kept.add(each.promised)
    }
    throw new Error(`not detected in ${MOST_SEEDS} worlds; detected were: ${[...kept].join(', ')}`)
  })
})

describe('the defects that simulated worlds found stay fixed:', () => {
  it.each([
    ['with the state that it had before', (record: SubscriptionRecord) => record],
    [
      'newer than before, which may still not be the latest state',
      (record: SubscriptionRecord) => ({ ...record, updated_at: EARLIER }),
    ],
    ['and was never read before', () => null],
  ])('D7 a record that reappears, %s, is not the change that an event announced', (_how, before) => {
    const record = {
      uid: 's',
      business_uid: 'b',
      purchasable_uid: 'i',
      purchase_state: 'purchased',
      updated_at: AT,
    }
    const generation = 3
    const progress = JSON.stringify({ generation: generation - 1, owed: 0 })
    const subscription = {
      subscriptionUid: 's',
      businessUid: 'b',
      purchasableUid: 'i',
      record: before(record),
      state: null,
      gone: 'revoked' as const,
      readAt: Date.parse(AT),
      requestedAt: Date.parse(AT),
      owedSince: null,
      generation: 1,
      settledGeneration: 0,
      pending: true,
      verifying: false,
      failure: null,
      refreshAt: null,
      quiet: false,
    }
    const claim = {
      id: 's',
      leaseToken: 'lease',
      urgency: 0 as const,
      cause: 'event' as const,
      generation,
      settledGeneration: 2,
      candidateBusinessUid: null,
      lapses: 0,
      uninstalledAt: null,
      failingSince: null,
      updateAt: null,
      businessUpdateAt: null,
      endAt: null,
      createdAt: 0,
      claimedAt: 0,
      leaseTimeBehindMs: 0,
    }
    const env = {
      now: Date.parse(AT),
      random: () => 0.5,
      reconcileEveryMs: DAY,
      waitMs: 0,
      stateOf: () => 'purchased',
      maxStaleMs: 259_200_000,
    }
    const { nextInMs } = concludeRead({ ...claim, progress, subscription }, { kind: 'found', record }, env)
    expect(nextInMs).toBeLessThanOrEqual(5 * SECOND)
  })

  it('D6 a read whose process was frozen longer than its lease has no effect when the process resumes', async () => {
    const database = await createDatabase()
    let now = Date.parse(AT)
    await database.begin(() => now)
    const store = database.storeFor({ announce() {}, watch() {} })
    await store.open()
    await store.requestRefresh({
      kind: 'subscription',
      subscriptionUid: 's',
      businessUid: 'b',
      purchasableUid: null,
    })
    const claim = (await claimOne(store, {
      urgencies: [1, 2],
      except: [],
      leaseMs: 60 * SECOND,
    })) as ReadClaim
    const record = { uid: 's', business_uid: 'b', purchasable_uid: 'i', purchase_state: 'purchased' }
    now += DAY
    await store.finishRead(claim, {
      found: { record, state: 'purchased', gone: null },
      settled: true,
      failure: null,
      progress: null,
      nextInMs: DAY,
    })
    const [subscription] = await store.subscriptionsOf('b')
    expect(subscription?.readAt ?? 0).toBeLessThanOrEqual(Date.parse(AT) + 60 * SECOND)
    await database.close()
  })

  it.each([
    [40, false],
    [70, true],
  ])(
    'D6 a lease that is claimed for a minute, %d s after its start, has expired: %p',
    async (tookS, isOver) => {
      let now = Date.parse(AT)
      const items = [{}]
      const begun: boolean[] = []
      const loop = createLeaseLoop<object>({
        concurrency: 1,
        async claim() {
          now += tookS * SECOND
          return items.splice(0)
        },
        run: async (_item, signal) => void begun.push(signal.aborted),
        renew: async () => true,
        leaseMs: 60 * SECOND,
        renewEveryMs: 10 * SECOND,
        pollMs: SECOND,
        clock: { now: () => now, monotonic: () => now, setTimeout: () => ({}), clearTimeout() {} },
        onError() {},
      })
      loop.start()
      await until('the read has begun', () => begun.length > 0)
      expect(begun).toEqual([isOver])
    },
  )

  it('a loop that was woken often returns to one look per poll', async () => {
    const clock = createVirtualClock({ isBusy: () => false })
    let looks = 0
    const loop = createLeaseLoop<object>({
      concurrency: 4,
      claim: async () => {
        looks++
        return []
      },
      run: async () => {},
      renew: async () => true,
      leaseMs: 60 * SECOND,
      renewEveryMs: 10 * SECOND,
      pollMs: SECOND,
      clock: clock.forProcess(),
      onError() {},
    })
    loop.start()
    for (let wakes = 0; wakes < 200; wakes++) {
      loop.wake()
      await clock.advance(137)
    }
    looks = 0
    await clock.advance(60 * SECOND)
    expect(looks).toBeLessThan(80)
  })
})

const AT = '2030-01-01T00:00:00.000Z'
const EARLIER = '2029-12-31T23:59:59.000Z'
