import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp } from '../../support/clean-up.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { createPlatform } from '../../support/platform/platform.js'
import { OUR_ITEM } from '../../support/settings.js'
import { createProcess, lent } from '../../support/world/process.js'

describe('a platform that allows 30 calls a second, and after one more none for five seconds,', () => {
  it('A235 delays a customer once while made-up purchases never end', async () => {
    const { buy, change, forge, clock, limits } = await createLimited()
    await buy(1)
    const waits: number[] = []
    for (let second = 0; second < MINUTE / SECOND; second++) {
      await forge(100)
      await clock.advance(SECOND / 2)
      if (second % 2 === 1) waits.push(await change(1))
      await clock.advance(SECOND / 2)
    }
    expect(limits).toHaveLength(1)
    expect(Math.max(...waits.filter((_, i) => i > 0))).toBeLessThan(SECOND)
  })

  it('E28 shows 300 first purchases that come at once within a minute', async () => {
    const { buy, clock, limits, purchased } = await createLimited()
    for (let i = 0; i < 300; i++) await buy(i, 0)
    await clock.advance(MINUTE)
    expect([purchased(), limits.length]).toEqual([300, 1])
  })

  it('E6 gets no further call of 100 customers whose tokens have ended and whose updates come at once', async () => {
    const { buy, update, clock, limits, refused } = await createLimited()
    for (let i = 0; i < 100; i++) await buy(i)
    await clock.advance(10 * MINUTE)
    const before = [limits.length, refused.length] as const
    await update(100)
    await clock.advance(4 * SECOND)
    expect(limits.length).toBe(before[0] + 1)
    // Four reads and four calls for tokens are under way at once.
    expect(refused.length).toBeLessThanOrEqual(before[1] + 8)
  })
})

/** An app on such a platform, in virtual time. */
async function createLimited() {
  const clock = createVirtualClock()
  const ofDatabase = clock.forProcess()
  const database = createSqlStore(createSqliteEngine({ path: ':memory:', clock: ofDatabase }), ofDatabase)
  await database.open()
  let calls: number[] = []
  /** When calls were refused. Several that were under way together are one limit. */
  const limits: number[] = []
  const refused: number[] = []
  const platform = createPlatform({
    clock,
    latencyMs: () => [10, 10],
    faultOf() {
      const at = clock.passed()
      calls = calls.filter((each) => each > at - SECOND)
      const isLimited = calls.length >= 30
      calls.push(at)
      if (!isLimited) return undefined
      refused.push(at)
      if (at - (limits.at(-1) ?? Number.NEGATIVE_INFINITY) >= SECOND) limits.push(at)
      return { status: 429, text: '{}', retryAfter: '5' }
    },
  })
  const app = createProcess({
    ...{ time: clock, store: lent(database), fetch: platform.fetch },
    settings: {
      app: { clientId: 'c', clientSecret: 's', purchasableUid: OUR_ITEM, codeName: 'ours' },
      closeTimeoutMs: SECOND,
    },
  })
  onCleanUp(async () => {
    app.kill()
    await database.close()
  })
  const states = new Map<string, string>()
  app.marketplace.onPurchaseChange(({ business_uid, to }) => void states.set(business_uid, String(to)))
  await clock.until(app.marketplace.start())

  let forged = 0
  const madeUp = () => [`made up ${++forged}`, `nobody ${forged}`] as const

  const noticeOf = (name: 'create' | 'update', uid: string, business_id: string) =>
    sampleDelivery(`purchasable_subscription/${name}`, {
      ...{ subscription_uid: uid, business_id, purchasable_uid: OUR_ITEM },
    })

  async function deliver(body: unknown) {
    const { status } = await clock.until(app.deliver([JSON.stringify(body)]))
    expect(status).toBe(200)
  }

  /** Writes the state, sends its event, and waits up to `forMs` for the change. Returns how long it waited. */
  async function become(i: number, state: string, forMs: number) {
    platform.set(`s${i}`, `b${i}`, state)
    const begun = clock.passed()
    await deliver(noticeOf(state === 'purchased' ? 'create' : 'update', `s${i}`, `b${i}`))
    while (clock.passed() - begun < forMs && states.get(`b${i}`) !== state) await clock.advance(10)
    return clock.passed() - begun
  }

  return {
    clock,
    limits,
    refused,
    purchased: () => [...states.values()].filter((state) => state === 'purchased').length,
    buy: (i: number, forMs = MINUTE) => become(i, 'purchased', forMs),
    change: (i: number) => become(i, states.get(`b${i}`) === 'purchased' ? 'canceled' : 'purchased', MINUTE),
    update: (count: number) =>
      deliver(Array.from({ length: count }, (_, i) => noticeOf('update', `s${i}`, `b${i}`))),
    forge: (count: number) => deliver(Array.from({ length: count }, () => noticeOf('create', ...madeUp()))),
  }
}
