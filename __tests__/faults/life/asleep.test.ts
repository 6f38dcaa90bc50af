import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { decide } from '../../../lib/entitlement/decide.js'
import { createDecisionCache } from '../../../lib/entitlement/decision-cache.js'
import { createTokens } from '../../../lib/platform/tokens.js'
import { findSqlite } from '../../../lib/sqlite/drivers.js'
import { connect, readTime } from '../../../lib/sqlite/file/file.js'
import type { SqliteTime } from '../../../lib/sqlite/time.js'
import { sql } from '../../../lib/store/sql/sql.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import {
  claimed,
  claimedAll,
  eventOf,
  known,
  named,
  only,
  shows,
} from '../../support/conformance/reads/read-calls.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { itWhereShared } from '../../support/engines/sharing.js'
import { storeAt } from '../../support/engines/sqlite-drivers.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene, openMarketplace } from '../../support/scene.js'
import { createFileScene } from '../../support/scenes/file-scene.js'
import { buy, readsOf, track } from '../../support/scenes/purchases.js'
import { record, ruled, subscriptionOf } from '../../support/scenes/reader.js'
import { B1 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

// To a process, a sleep of its machine looks like a leap of the wall clock: the monotonic clock stands still meanwhile.

const SLEEP = 10 * DAY
const whereShared = itWhereShared('SQLite')

describe('C80 after a machine has slept for ten days', () => {
  it('everything is read within seconds, and the answers are right', async () => {
    const { clock, leap } = jumpingClock()
    const { platform, marketplace } = await bought({ clock })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(platform.subscriptions()[0]?.uid as string)
    leap(SLEEP)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    await until('the read has shown the end', async () => {
      const { reason, asOf } = await marketplace.explain(B1)
      return reason === 'not_purchased' && clock.now() - Date.parse(String(asOf)) < MINUTE
    })
  })

  it.each([
    ['the time since the start of the process', 0],
    ['the time since 1970', Date.now() - performance.now()],
  ])(
    'an answer is stale while the platform is down, and says how old it is (clock: %s)',
    async (_what, from) => {
      const { clock: wall, leap } = jumpingClock()
      const clock = { ...wall, monotonic: () => from + wall.monotonic() }
      const { platform, marketplace } = await bought({ clock })
      expect(await marketplace.isEntitled(B1)).toBe(true)
      platform.faults.add({ on: 'platform', kind: 'down' })
      leap(SLEEP)
      expect(await marketplace.isEntitled(B1)).toBe(false)
      const { reason, asOf, explanation } = await marketplace.explain(B1)
      expect(reason).toBe('stale')
      expect(Math.abs(clock.now() - SLEEP - Date.parse(String(asOf)))).toBeLessThan(MINUTE)
      expect(explanation).toContain('confirmed 240 h ago')
    },
  )

  it.each([
    ['an app that was stopped before', 'before'],
    ['an app that is started after', 'after'],
  ] as const)('%s the sleep reads everything again', async (_what, stops) => {
    const { clock, leap } = jumpingClock()
    const { platform, marketplace, store } = await bought({ clock })
    const { uid } = platform.subscriptions()[0] as { uid: string }
    if (stops === 'before') await marketplace.close()
    const before = readsOf(platform, uid)
    platform.faults.add({ on: 'platform', kind: 'down' })
    leap(SLEEP)
    if (stops === 'after') await marketplace.close()
    const next = openMarketplace(platform, { store, clock })
    await next.start()
    expect(await next.explain(B1)).toMatchObject({ reason: 'stale', entitled: false })
    platform.faults.clear()
    await until('it is read', async () => readsOf(platform, uid) > before && (await next.isEntitled(B1)))
  })

  whereShared(
    'a process that only answers agrees with the one that reads',
    async () => {
      const { clock, leap } = jumpingClock()
      const { platform, store } = await bought({ clock })
      const door = openMarketplace(platform, { store, clock, worker: false })
      await door.start()
      await until('the door answers', () => door.isEntitled(B1))
      leap(SLEEP)
      await until('it was read again', async () => {
        const { entitled, asOf } = await door.explain(B1)
        return entitled && Math.abs(clock.now() - Date.parse(String(asOf))) < MINUTE
      })
    },
    60_000,
  )

  it('no lease has ended, and a lease ends in its own time', async () => {
    const { clock, leap, jump } = jumpingClock()
    const { store } = storeAt(join(temporaryFolder(), 'm.db'), undefined, clock)
    await store.open()
    await store.requestRefresh(named('s1', 'b1'))
    await claimed(store)
    leap(SLEEP)
    expect(await claimedAll(store)).toEqual([])
    // An event and another sleep change nothing.
    await store.accept([eventOf('s1', { businessUid: 'b1' })])
    leap(SLEEP)
    expect(await claimedAll(store)).toEqual([])
    jump(11 * MINUTE)
    expect(await claimedAll(store)).toMatchObject([{ id: 's1' }])
  })

  it.each([
    ['slept', 'leap', MINUTE],
    ['was frozen', 'jump', 11 * MINUTE],
  ] as const)(
    'a record that was read before the process %s, and is written after it, is ten days old and read again',
    async (_what, how, most) => {
      const { clock, ...passes } = jumpingClock()
      const { store } = storeAt(join(temporaryFolder(), 'm.db'), undefined, clock)
      await store.open()
      await store.requestRefresh(named('s1', 'b1'))
      const claim = await claimed(store)
      const before = clock.now()
      passes[how](SLEEP)
      await store.finishRead(claim, { ...shows(claim, 'purchased'), nextInMs: DAY })
      // At the latest when its lease ended.
      expect(Number((await only(store, 'b1')).readAt) - before).toBeLessThan(most)
      expect(await claimedAll(store)).toMatchObject([{ id: 's1', lapses: 0 }])
    },
  )

  it('no event is set aside whose topic another process, which slept too, has not named again yet', async () => {
    const { clock, leap } = jumpingClock()
    const { store } = storeAt(join(temporaryFolder(), 'm.db'), undefined, clock)
    await store.open()
    await store.handleTopics({ topics: ['event:a'], rescueMs: 0, retireMs: HOUR })
    await store.accept([{ ...eventOf('s1'), name: 'a' }])
    leap(SLEEP)
    await store.handleTopics({ topics: ['event:b'], rescueMs: 0, retireMs: HOUR })
    expect(await store.listEntries({})).toMatchObject([{ status: 'pending' }])
  })

  it('it counts once, also in a process that follows another one before it looks at its own clock', async () => {
    const { leap, one, other, seeing, blind } = await twoTimes()
    const before = blind.now()
    const leapt = (time: SqliteTime) => Math.round((time.now() - before) / DAY)
    leap(SLEEP)
    seeing.note(one)
    blind.follow(other)
    expect([seeing, blind].map(leapt)).toEqual([10, 10])
    blind.note(other)
    seeing.note(one)
    expect([seeing, blind].map(leapt)).toEqual([10, 10])
  })
})

describe('C81 a wall clock that was set forward by ten days, and back', () => {
  it('leaves no subscription unread for ten days, and shows no time in the future', async () => {
    const { clock, leap, jump } = jumpingClock()
    const { platform, marketplace, store } = await bought({ clock })
    const { uid } = platform.subscriptions()[0] as { uid: string }
    const before = readsOf(platform, uid)
    leap(SLEEP)
    await until('it is read early', () => readsOf(platform, uid) > before)
    await until('it is answered', () => marketplace.isEntitled(B1))
    leap(-SLEEP)
    const { asOf } = await marketplace.explain(B1)
    expect(Date.parse(String(asOf))).toBeLessThanOrEqual(clock.now())
    // Another process, which has never seen the other time.
    await marketplace.close()
    const next = openMarketplace(platform, { store, clock })
    await next.start()
    expect(await next.isEntitled(B1)).toBe(true)
    const again = readsOf(platform, uid)
    jump(2 * DAY)
    await until('the reconcile reads it', () => readsOf(platform, uid) > again)
    platform.faults.add({ on: 'platform', kind: 'down' })
    jump(73 * HOUR)
    expect(await next.isEntitled(B1)).toBe(false)
    expect(await next.explain(B1)).toMatchObject({ reason: 'stale' })
  })

  it('is followed by a process that did not look meanwhile, and moves no lease', async () => {
    const { clock, leap, jump, one, other, seeing, blind } = await twoTimes()
    const before = [blind.now(), blind.ofLeases()]
    leap(SLEEP)
    seeing.now()
    seeing.note(one)
    leap(-SLEEP)
    expect(blind.now() - (before[0] as number)).toBeLessThan(MINUTE)
    blind.follow(other)
    for (const time of [seeing, blind]) {
      expect(Math.abs(time.now() - (before[0] as number) - SLEEP)).toBeLessThan(MINUTE)
      expect(time.ofLeases() - (before[1] as number)).toBeLessThan(MINUTE)
    }
    // A sleep that both see counts once, also when it is shorter than what the clock was set back by.
    leap(DAY)
    expect([seeing, blind].map((time) => Math.round((time.now() - (before[0] as number)) / DAY))).toEqual([
      11, 11,
    ])
    seeing.note(one)
    blind.note(other)
    expect([seeing, blind].map((time) => Math.round((time.now() - (before[0] as number)) / DAY))).toEqual([
      11, 11,
    ])
    const next = readTime(one, clock)
    expect(Math.round((next.now() - (before[0] as number)) / DAY)).toBe(11)
    jump(DAY)
    expect(Math.round((next.now() - (before[0] as number)) / DAY)).toBe(12)
    expect(Math.round((next.ofLeases() - (before[1] as number)) / DAY)).toBe(1)
  })
})

describe('C82 a machine starts with a wall clock that is behind', () => {
  it('ages nothing by the correction of the clock, except by what passed since the last noted time', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const first = jumpingClock()
    const { store, engine } = storeAt(path, undefined, first.clock)
    await store.open()
    await known(store, 's1', 'purchased', 'b1')
    await engine.write((trx) => sql`update marketplace_time set boot = 'before'`.execute(trx))
    await store.close()
    const { clock, leap } = jumpingClock()
    leap(-3_650 * DAY)
    const next = storeAt(path, undefined, clock).store
    await next.open()
    leap(3_650 * DAY + HOUR)
    const { readAt } = await only(next, 'b1')
    const ageMs = clock.now() - Number(readAt)
    expect([ageMs > HOUR - MINUTE, ageMs < HOUR + MINUTE]).toEqual([true, true])
  })
})

describe.each(ENGINE_NAMES)('D80 the clocks of app, database and platform differ, on %s', (name) => {
  const engine = useEngine(name)

  it.each([
    ['the database is behind the app', HOUR, 0, 0],
    ['both take them with a clock that is behind', 0, -10 * SECOND, -10 * SECOND],
    ['the second is behind', 0, 0, -10 * SECOND],
    ['the first is behind', 0, -10 * SECOND, 0],
    ['the first is ahead', 0, HOUR, 0],
  ])('an older install does not cancel a later uninstall: %s', async (_which, ofApp, ofFirst, ofSecond) => {
    const { clock, leap, uninstall, install, isUninstalled } = await bought()
    leap(ofApp)
    const now = clock.now()
    leap(ofFirst)
    await uninstall(now)
    leap(ofSecond - ofFirst)
    await install(now - 5 * SECOND)
    expect(await isUninstalled()).toBe(true)
    await install(now + SECOND)
    expect(await isUninstalled()).toBe(false)
  })

  it('what has no date counts in the order of its arrival', async () => {
    const { clock, leap, uninstall, install, isUninstalled } = await bought()
    const now = clock.now()
    leap(-MINUTE)
    await uninstall(now)
    await install(null)
    expect(await isUninstalled()).toBe(false)
    await uninstall(now - 30 * SECOND)
    expect(await isUninstalled()).toBe(false)
    await uninstall(now + SECOND)
    expect(await isUninstalled()).toBe(true)
  })

  it('a forged date in the future, and one that was written with a clock ahead, hold up nothing', async () => {
    const { clock, leap, uninstall, install, isUninstalled } = await bought()
    await install(clock.now() + 2 * DAY)
    await uninstall(clock.now() + SECOND)
    expect(await isUninstalled()).toBe(true)
    for (const aheadMs of [HOUR, SLEEP]) {
      leap(aheadMs)
      await install(null)
      leap(-aheadMs)
      await uninstall(clock.now() + 2 * SECOND)
      expect(await isUninstalled()).toBe(true)
    }
  })

  /** A purchase in a store whose app has a clock that leaps. */
  async function bought() {
    const { clock, leap } = jumpingClock()
    const { store } = await openStoreWithSql(await engine.freshAddress(), { clock })
    await known(store, 's1', 'purchased', 'b1')
    const request = (installed: boolean) => (at: number | null) =>
      store.requestRefresh({ kind: 'business', businessUid: 'b1', install: { installed, at } })
    const isUninstalled = async () =>
      (await store.listSubscriptions({ businessUid: 'b1', limit: 1 }))[0]?.uninstalledAt !== null
    return { clock, leap, install: request(true), uninstall: request(false), isUninstalled }
  }
})

describe('G80 the process of an app on PostgreSQL slept for ten days', () => {
  const engine = useEngine('PostgreSQL')

  it('answers by the age of what the database holds, not by its own memory', async () => {
    const address = await engine.freshAddress()
    const { platform, marketplace, leap } = await createScene({ store: address })
    await buy(platform, marketplace)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    platform.faults.add({ on: 'platform', kind: 'down' })
    // The server's clock cannot be set, so its rows grow older. The process notices nothing of that but its wall clock.
    leap(-SLEEP)
    await marketplace.explain(B1)
    const { sql: run } = await openStoreWithSql(address)
    await run(`update subscriptions set read_at = read_at - ${SLEEP}, refresh_at = refresh_at - ${SLEEP}`)
    leap(SLEEP)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'stale' })
  })
})

describe('G81 a process with handlers on PostgreSQL slept, and another one has taken over its work', () => {
  const engine = useEngine('PostgreSQL')

  it('calls no further handler under a lease that it lost meanwhile', async () => {
    const address = await engine.freshAddress()
    const { platform, marketplace, deliver, leap } = await createScene({ store: address })
    const calls: string[] = []
    const [asleep, taken] = [gate(), gate()]
    const installed = sampleDelivery('application/installed', { business_id: B1, app_code_name: 'ours' })
    const ids: string[] = []
    for (let i = 0; i < 3; i++) ids.push((await deliver(installed)).id)
    marketplace.on('application/installed', async ({ id }) => {
      calls.push(`first ${id}`)
      await asleep.opened
    })
    await until('the first handler was called', () => calls.length === 1)
    // The server's clock goes on, and that of the process that sleeps does not.
    const { sql: run } = await openStoreWithSql(address)
    await run(`update lanes set due_at = due_at - ${10 * MINUTE} where lease_token is not null`)
    const other = openMarketplace(platform, { store: address })
    other.on('application/installed', async ({ id }) => {
      calls.push(`other ${id}`)
      if (id !== ids[0]) await taken.opened
    })
    await other.start()
    await until('the other one has its second entry', () => calls.includes(`other ${ids[1]}`))
    leap(10 * MINUTE)
    asleep.open()
    await new Promise((resolve) => setTimeout(resolve, SECOND))
    expect(calls).toHaveLength(3)
    taken.open()
    await until('the last one was handled', () => calls.length === 4)
    expect(calls.map((call) => call.split(' ')[1])).toEqual([ids[0], ...ids])
  }, 60_000)
})

describe('J83 what a process has in memory ages while its machine sleeps', () => {
  it('decisions, also while the database is down', () => {
    const { clock, leap } = jumpingClock()
    const cache = createDecisionCache({ maxStaleMs: 3 * DAY, clock })
    const subscription = subscriptionOf({
      ...{ record: record('purchased', 1), state: 'purchased', readAt: clock.now() },
    })
    const rules = { purchasableUids: [], entitledWhen: ruled(() => true), maxStaleMs: 3 * DAY }
    cache.set('b', decide('b', [subscription], rules, clock.now()), true)
    expect([cache.fresh('b')?.decision.entitled, cache.lastKnown('b').entitled]).toEqual([true, true])
    leap(SLEEP)
    expect([cache.fresh('b'), cache.lastKnown('b').entitled]).toEqual([undefined, false])
  })

  it('tokens', async () => {
    const { clock, leap } = jumpingClock()
    let fetched = 0
    const tokens = createTokens({
      clock,
      fetchToken: async () => ({ accessToken: `token ${++fetched}`, expiresIn: 3_600 }),
    })
    expect([await tokens.get('b'), await tokens.get('b')]).toEqual(['token 1', 'token 1'])
    leap(SLEEP)
    expect(await tokens.get('b')).toBe('token 2')
  })
})

/** The times of one store in two processes, each with a connection of its own. */
async function twoTimes() {
  const library = await findSqlite()
  const path = join(temporaryFolder(), 'm.db')
  const [one, other] = [connect(library, path), connect(library, path)]
  onCleanUp(() => [one, other].map((each) => each.close()))
  const clock = jumpingClock()
  return { ...clock, one, other, seeing: readTime(one, clock.clock), blind: readTime(other, clock.clock) }
}

/** A customer, on a marketplace with a file of its own. */
async function bought(options: Parameters<typeof openMarketplace>[1]) {
  const scene = await createFileScene(options)
  const { platform, marketplace } = scene
  await marketplace.start()
  await track(platform, marketplace)
  await until('the purchase is seen', () => marketplace.isEntitled(B1))
  return scene
}
