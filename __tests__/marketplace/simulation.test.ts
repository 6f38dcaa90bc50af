import '../support/simulation/quick-construction.js'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { DAY, SECOND } from '../../lib/base/clock.js'
import type { ReadClaim } from '../../lib/store/port/store.js'
import { createLeaseLoop } from '../../lib/work/leases/lease-loop.js'
import { claimOne } from '../support/conformance/lab.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { simulate } from '../support/simulation/run.js'
import { createDatabase, type Database } from '../support/world/database.js'
import { PROMISES } from '../support/world/promises.js'

/**
 * The whole system with several instances, in worlds that depend only on a seed. The platform lags, lies and fails.
 * Deliveries are lost, doubled and late. Instances are killed, frozen and cut off. `npm run simulate` makes any number
 * of worlds, or repeats one.
 */
/** Runs as many worlds as the time allows, within these bounds. */
const LEAST = 8
const MOST = 200
const TIME_MS = 6_000
const FIRST = 1

jest.setTimeout(180_000)

let database: Database
beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database.close())

describe('D19 a simulated world', () => {
  it('keeps every promise, with any seed', async () => {
    const endAt = Date.now() + TIME_MS
    // Every run uses other seeds; a failure prints its seed.
    const first = 1 + Math.floor(Math.random() * 1_000_000)
    for (let made = 0; made < MOST && (made < LEAST || Date.now() < endAt); made++) {
      const { command, broken } = await simulate(first + made, database)
      if (broken[0]) throw new Error(`${command}: ${PROMISES[broken[0].promised]}: ${broken[0].message}`)
    }
  })

  it('is the same whenever its seed is run', async () => {
    const { trace } = await simulate(FIRST, database)
    expect(trace.length).toBeGreaterThan(20)
    // Another world runs in between, and must leave nothing behind.
    await simulate(FIRST + 1, database)
    expect((await simulate(FIRST, database)).trace).toEqual(trace)
  })
})

describe('the defects that simulated worlds found stay fixed:', () => {
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

  it('a loop that was woken often returns to one look per poll', async () => {
    const clock = createVirtualClock({ isBusy: () => false })
    let looks = 0
    const loop = createLeaseLoop<object>({
      concurrency: 4,
      claim: async () => {
        looks++
        return { items: [], isAll: true }
      },
      run: async () => {},
      giveBack: async () => {},
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
