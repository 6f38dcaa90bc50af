import { describe, expect, it } from '@jest/globals'
import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { Marketplace } from '../../../lib/index.js'
import { createOverdueWork } from '../../../lib/operations/health/overdue-work.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp } from '../../support/clean-up.js'
import { internals } from '../../support/internals.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { quietWarnings } from '../../support/output.js'
import { codesOf, createScene, newFile, openMarketplace } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

const INSTALLED = sampleDelivery('application/installed')

describe('K65 regular reads that nobody does', () => {
  it('degrade the health of a process without a worker, ten minutes after the first of them was due', async () => {
    const { reopened, jump } = await withCustomer()
    const marketplace = await reopened()
    expect(await codesOf(marketplace)).toEqual([])
    await until('the regular read is due', async () => {
      jump(5 * MINUTE)
      return (await marketplace.health()).counts?.oldestOverdueMs !== null
    })
    jump(4 * MINUTE)
    expect(await codesOf(marketplace)).toEqual([])
    jump(7 * MINUTE)
    expect(await marketplace.health()).toMatchObject({
      status: 'degraded',
      problems: [{ code: 'reads_overdue', message: expect.stringMatching(/for 1[1-6] min$/) }],
    })
    jump(3 * DAY)
    expect(await marketplace.explain('b1')).toMatchObject({ known: false, reason: 'stale' })
    expect(await codesOf(marketplace)).toEqual(['reads_overdue', 'answers_stale'])
  })
})

describe('K66 a process that was down for a day', () => {
  it('is not degraded right after its start by regular reads, and is ten minutes later if none was done', async () => {
    const { opened, codes, at } = overdueWork()
    opened()
    for (let minute = 0; minute < 10; minute++) {
      at(minute * MINUTE)
      expect(codes({ oldestOverdueMs: DAY + minute * MINUTE })).toEqual([])
    }
    at(10 * MINUTE)
    expect(codes({ oldestOverdueMs: DAY + 10 * MINUTE })).toEqual(['reads_overdue'])
  })

  it('is not degraded while many entries that became due together become fewer, and is when one of them is left', () => {
    const { opened, codes, at } = overdueWork()
    const look = (minute: number, pending: number) => {
      at(DAY + minute * MINUTE)
      return codes({ oldestPendingMs: minute * MINUTE, pending })
    }
    opened()
    for (let minute = 0; minute < 20; minute++) expect(look(minute, 200 - minute)).toEqual([])
    // One hangs; others come and go.
    for (let minute = 20; minute < 24; minute++) expect(look(minute, 190 + (minute % 3))).toEqual([])
    expect(look(24, 191)).toEqual(['entries_overdue'])
    expect(look(25, 3)).toEqual([])
    expect(look(30, 3)).toEqual(['entries_overdue'])
  })

  it('is not degraded if many entries that became due together are too late when it starts and become fewer, and is when one is left', () => {
    const { opened, codes, at } = overdueWork()
    const look = (minute: number, pending: number) => {
      at(minute * MINUTE)
      return codes({ oldestPendingMs: HOUR + minute * MINUTE, pending })
    }
    opened()
    for (let minute = 0; minute < 20; minute++) expect(look(minute, 2_000 - 100 * minute)).toEqual([])
    for (let minute = 20; minute < 24; minute++) expect(look(minute, 100)).toEqual([])
    expect(look(24, 100)).toEqual(['entries_overdue'])
  })

  it('is not degraded right after its start by an entry and a requested read, and is later if they are not done', async () => {
    const { clock, jump } = jumpingClock()
    const store = newFile()
    const { platform, marketplace, deliver } = await createScene({
      clock,
      store,
      closeTimeoutMs: 10,
      ...internals({ pollMs: 20 }),
    })
    const again = gate()
    let calls = 0
    const handle = () => {
      calls++
      return again.opened
    }
    marketplace.on('application/installed', handle)
    await deliver(INSTALLED)
    await until('it is handled', () => calls === 1)
    await marketplace.close()
    const receiving = openMarketplace(platform, { clock, store, worker: false })
    platform.purchase({ business_uid: 'b1', subscription_uid: 's1', payment: 'succeeded' })
    await receiving.subscriptions.track({ subscriptionUid: 's1', businessUid: 'b1' })
    jump(12 * HOUR)
    // No worker begins with this process.
    expect(await codesOf(receiving)).toEqual(['entries_overdue', 'requests_overdue', 'reads_overdue'])
    await receiving.close()
    const another = openMarketplace(platform, { clock, store, worker: false })
    expect(await codesOf(another)).toEqual(['entries_overdue', 'requests_overdue', 'reads_overdue'])
    await another.close()

    const next = openMarketplace(platform, {
      ...{ clock, store, closeTimeoutMs: 10, ...internals({ pollMs: 20 }) },
      platform: { fetch: (...call) => again.opened.then(() => fetch(...call)) },
      ...internals({ callTimeoutMs: 10 * MINUTE }),
    })
    next.on('application/installed', handle)
    const overdue = async () => (await codesOf(next)).filter((code) => code.endsWith('_overdue'))
    expect(await overdue()).toEqual([])
    await until('it is handled again', () => calls === 2)
    expect(await overdue()).toEqual([])
    jump(MINUTE)
    expect(await overdue()).toEqual(['requests_overdue'])
    again.open()
    await until('both are done', async () => (await overdue()).length === 0)
  })

  it('is degraded while its handlers are too slow, although each is done in the end', () => {
    const { opened, codes, at } = overdueWork()
    opened()
    let overdueMs = 0
    for (let look = 0; look < 60; look++) {
      at((look + 1) * 10 * SECOND)
      // One is done each minute, and the next is due 20 s after it.
      overdueMs += look % 6 === 5 ? -10 * SECOND : 10 * SECOND
      expect([overdueMs, codes({ oldestPendingMs: overdueMs })]).toEqual([
        overdueMs,
        overdueMs < 5 * MINUTE ? [] : ['entries_overdue'],
      ])
    }
    expect(overdueMs).toBeGreaterThan(6 * MINUTE)
  })

  it('is not degraded while the oldest reads are done, however long that takes', () => {
    const { opened, codes, at } = overdueWork()
    opened()
    for (let minute = 1; minute <= 120; minute++) {
      at(minute * MINUTE)
      // It does an hour of due reads in five minutes.
      expect(codes({ oldestOverdueMs: DAY - minute * 11 * MINUTE })).toEqual([])
    }
    for (let minute = 0; minute < 10; minute++) {
      at((120 + minute) * MINUTE)
      expect(codes({ oldestOverdueMs: 2 * HOUR + minute * MINUTE })).toEqual([])
    }
    at(130 * MINUTE)
    expect(codes({ oldestOverdueMs: 2 * HOUR + 10 * MINUTE })).toEqual(['reads_overdue'])
    expect(codes({ oldestOverdueMs: 30 * SECOND })).toEqual([])
  })
})

describe('searches for subscriptions', () => {
  it('that nobody makes for a minute are a problem', () => {
    const { codes } = overdueWork()
    expect(codes({ oldestSearchMs: 59 * SECOND })).toEqual([])
    expect(codes({ oldestSearchMs: MINUTE })).toEqual(['searches_overdue'])
  })
})

describe('K67 an entry that is old', () => {
  it('is not overdue while it is tried again, nor are those behind it', async () => {
    quietWarnings()
    const { clock, jump } = jumpingClock()
    const { marketplace, deliver } = await createScene({
      clock,
      handlers: { retryDelaysMs: [5 * HOUR, 5 * HOUR] },
      ...internals({ pollMs: 20 }),
    })
    const again = gate()
    let calls = 0
    marketplace.on('application/installed', () => {
      calls++
      if (calls === 1) throw new Error('the mail server is down')
      return again.opened
    })
    await deliver(INSTALLED)
    await deliver(INSTALLED)
    await until('it has failed', async () => (await marketplace.health()).counts?.retrying === 1)
    jump(4 * HOUR)
    await hasLooked(marketplace)
    expect(await codesOf(marketplace)).toEqual(['entries_retrying'])
    jump(HOUR)
    await until('it is tried again', () => calls === 2)
    await hasLooked(marketplace)
    expect(await codesOf(marketplace)).toEqual(['entries_retrying'])
    again.open()
    await until('both are handled', async () => (await marketplace.health()).counts?.pending === 0)
    expect(await codesOf(marketplace)).toEqual([])
  })

  it.each([
    ['is handled', [5 * HOUR, 5 * HOUR]],
    ['dies', [5 * HOUR]],
  ])(
    'is due since the one before it ended, if that is tried again and %s',
    async (end, handlerRetryDelaysMs) => {
      quietWarnings()
      const { clock, jump } = jumpingClock()
      const { marketplace, deliver } = await createScene({
        clock,
        handlers: { retryDelaysMs: handlerRetryDelaysMs, timeoutMs: HOUR },
        ...internals({ pollMs: 20 }),
      })
      const again = gate()
      onCleanUp(() => again.open())
      let calls = 0
      marketplace.on('application/installed', () => {
        calls++
        if (calls === 1 || (calls === 2 && end === 'dies')) throw new Error('the mail server is down')
        return calls === 2 ? undefined : again.opened
      })
      for (let i = 0; i < 3; i++) await deliver(INSTALLED)
      await until('the first has failed', async () => (await marketplace.health()).counts?.retrying === 1)
      jump(5 * HOUR)
      await until('the second is being handled', () => calls === 3)
      await until(
        'the end of the first is written',
        async () => (await marketplace.health()).counts?.pending === 2,
      )
      await hasLooked(marketplace)
      expect(await codesOf(marketplace)).toEqual(end === 'dies' ? ['entries_dead'] : [])
    },
  )

  it('is due since its replay, and then overdue if nobody handles it', async () => {
    quietWarnings()
    const { clock, jump } = jumpingClock()
    const store = newFile()
    const { platform, marketplace, deliver } = await createScene({
      clock,
      store,
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 20 }),
    })
    marketplace.on('application/installed', () => {
      throw new Error('never')
    })
    const { id } = await deliver(INSTALLED)
    await until('it is dead', async () => (await marketplace.health()).counts?.dead === 1)
    jump(5 * DAY)
    await marketplace.close()
    const other = openMarketplace(platform, { clock, store, worker: false })
    await other.journal.replay(id)
    const { problems, counts } = await other.health()
    expect(problems.map(({ code }) => code)).not.toContain('entries_overdue')
    expect(counts).toMatchObject({ pending: 1 })
    expect(counts?.oldestPendingMs).toBeLessThan(MINUTE)
    jump(6 * MINUTE)
    expect((await other.health()).problems).toContainEqual({
      code: 'entries_overdue',
      message: 'the oldest due entry of the journal has been due for 6 min',
      next: expect.any(String),
    })
  })

  it('is due since there is a handler, if it had waited for one', async () => {
    const { platform, marketplace, jump } = await createScene({ freshness: { waitMs: 0 } })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('the change waits', async () => (await marketplace.health()).counts?.pending === 1)
    jump(20 * HOUR)
    const handled = gate()
    let calls = 0
    marketplace.onPurchaseChange(() => {
      calls++
      return handled.opened
    })
    await until('it is handled', () => calls === 1)
    await hasLooked(marketplace)
    expect(await codesOf(marketplace)).toEqual([])
    handled.open()
  })
})

/** A customer that was read once by a worker, which then ended. */
async function withCustomer() {
  const store = newFile()
  const { platform, marketplace, clock, jump } = await createScene({ store })
  platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
  await until('the purchase is seen', () => marketplace.isEntitled('b1'))
  await until('it is verified', async () => {
    jump(MINUTE)
    const { counts } = await marketplace.health()
    return counts?.requested === 0 && counts.oldestOverdueMs === null
  })
  jump(HOUR)
  await until('nothing is due', async () => (await marketplace.health()).counts?.oldestOverdueMs === null)
  await marketplace.businesses.refresh('b1')
  await marketplace.close()
  return {
    jump,
    async reopened(options: Parameters<typeof openMarketplace>[1] = {}) {
      const next = openMarketplace(platform, { clock, store, worker: false, ...options })
      await next.start()
      return next
    },
  }
}

/** The part of health that finds overdue work. `at` sets the time since its start. */
function overdueWork() {
  let now = DAY
  const clock = { monotonic: () => now } as Clock
  const { opened, problems } = createOverdueWork({ hasWorker: true, clock })
  return {
    opened,
    codes: (counts: Parameters<typeof problems>[0]) => problems(counts).map(({ code }) => code),
    at(ms: number) {
      now = DAY + ms
    },
  }
}

/** The worker has looked for work since the clock jumped. */
async function hasLooked(marketplace: Marketplace) {
  await until('a look', async () => !(await codesOf(marketplace)).includes('worker_stuck'))
}
