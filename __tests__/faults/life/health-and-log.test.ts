import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { type Clock, HOUR, MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { storeFor } from '../../../lib/store-option.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { useEngine } from '../../support/engines/engines.js'
import { storeOption, wrapStore } from '../../support/engines/store-option.js'
import { startProxy } from '../../support/engines/tcp-proxy.js'
import { noticeOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { captureDebug, quietWarnings } from '../../support/output.js'
import { codesOf, createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

describe('health', () => {
  it.each([
    ['claimReads', 'claimLanes'],
    ['claimLanes', 'claimReads'],
  ] as const)('K6 fails once %s is stuck, though %s is not', async (stuckCall, otherCall) => {
    const over = gate<unknown>()
    let isStuck = false
    const looks = { claimReads: 0, claimLanes: 0 }
    const { clock, jump } = jumpingClock()
    const store = wrapStore(memory(), (method, call) => {
      if (method === 'claimReads' || method === 'claimLanes') looks[method]++
      return method === stuckCall && isStuck ? over.opened : call()
    })
    const marketplace = openMarketplace(await startPlatform(), { store: storeOption(store), clock })
    marketplace.onPurchaseChange(() => {})
    await marketplace.start()
    const hasLooked = async (call: keyof typeof looks) => {
      const before = looks[call]
      await until(`${call} again`, () => looks[call] > before + 4)
    }
    jump(2 * MINUTE)
    await hasLooked('claimReads')
    await hasLooked('claimLanes')
    expect((await marketplace.health()).status).toBe('ok')

    isStuck = true
    const before = looks[stuckCall]
    await until('the call hangs', () => looks[stuckCall] > before)
    await hasLooked(otherCall)
    expect((await marketplace.health()).status).toBe('ok')
    jump(2 * MINUTE)
    await hasLooked(otherCall)
    const { status, problems } = await marketplace.health()
    expect({ status, problems }).toMatchObject({ status: 'failing', problems: [{ code: 'worker_stuck' }] })
    isStuck = false
    over.open([])
    await until('health is ok again', async () => (await marketplace.health()).status === 'ok')
  })

  it('K6 does not report a worker that waits until the database opens', async () => {
    const { clock, jump } = jumpingClock()
    const store = `sqlite:${join(temporaryFolder(), 'later', 'm.db')}`
    const marketplace = openMarketplace(await startPlatform(), { clock, store })
    await until('it is known', async () => (await codesOf(marketplace)).includes('store_not_open'))
    jump(2 * MINUTE)
    expect(await codesOf(marketplace)).toEqual(['store_not_open'])
    mkdirSync(dirname(store.replace('sqlite:', '')))
    await marketplace.start()
    expect(await codesOf(marketplace)).toEqual([])
  })

  it('K6 does not fail while every handler is slow', async () => {
    const { clock, jump } = jumpingClock()
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { clock, handlers: { concurrency: 2 }, closeTimeoutMs: 0 })
    let handling = 0
    marketplace.onPurchaseChange(() => {
      handling++
      return new Promise(() => {})
    })
    for (const business_uid of ['b1', 'b2', 'b3']) {
      const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
      await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: business_uid })
    }
    await until('all handlers are running', () => handling === 2)
    for (let i = 0; i < 3; i++) {
      jump(2 * MINUTE)
      await until(
        'the worker has looked for work',
        async () => (await marketplace.health()).status !== 'failing',
      )
    }
  })

  it('K6 fails if the worker has stopped because its timers are lost', async () => {
    const { clock, jump } = jumpingClock()
    const dead = { now: false }
    const setTimeout: Clock['setTimeout'] = (...args) => (dead.now ? {} : clock.setTimeout(...args))
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { clock: { ...clock, setTimeout } })
    await marketplace.start()
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
    dead.now = true
    await until('health is failing', async () => {
      jump(10 * SECOND)
      return (await marketplace.health()).status === 'failing'
    })
    dead.now = false
  })

  it('K6 does not fail between two polls that are a minute apart, which is allowed', async () => {
    const { clock, jump } = jumpingClock()
    const marketplace = openMarketplace(await startPlatform(), { clock, ...internals({ pollMs: MINUTE }) })
    await marketplace.start()
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
    jump(1.2 * MINUTE)
    expect(await marketplace.health()).toMatchObject({ status: 'ok', problems: [] })
    jump(3 * MINUTE)
    expect((await marketplace.health()).status).toBe('failing')
  })

  it.each(['a new', 'a known'])(
    'continues at once with %s subscription when the clock is set back',
    async (which) => {
      const { platform, marketplace, leap } = await createScene({ freshness: { waitMs: 0 } })
      const payment = which === 'a new' ? 'succeeded' : 'failed'
      const known = platform.purchase({ business_uid: 'b0', payment: 'failed' })
      await until(
        'the first read is done',
        async () => (await marketplace.explain('b0')).reason === 'not_purchased',
      )
      leap(-HOUR)
      if (payment === 'failed') platform.confirmPayment(known.uid)
      else platform.purchase({ business_uid: 'b1', payment })
      await until('the read is done', () => marketplace.isEntitled(payment === 'failed' ? 'b0' : 'b1'))
    },
  )

  it('K6 does not expect a worker if the option disables it', async () => {
    const { clock, jump } = jumpingClock()
    const marketplace = openMarketplace(await startPlatform(), { clock, worker: false })
    await marketplace.start()
    jump(10 * MINUTE)
    expect(await marketplace.health()).toMatchObject({ status: 'ok', problems: [] })
  })
})

describe('health on PostgreSQL', () => {
  const engine = useEngine('PostgreSQL')

  it('K6 fails within a limit when the database does not answer, and recovers without a restart', async () => {
    const address = await engine.freshAddress()
    const proxy = await startProxy({ to: Number(new URL(address).port) })
    const marketplace = openMarketplace(await startPlatform(), { store: proxy.through(address) })
    await marketplace.start()
    expect((await marketplace.health()).status).toBe('ok')
    proxy.blackHole()
    const begun = Date.now()
    expect((await marketplace.health()).status).toBe('failing')
    expect(Date.now() - begun).toBeLessThan(10_000)
    await proxy.heal()
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
  })
})

describe('the log', () => {
  it('K7 has at most one line of a class in ten seconds, after any failure', async () => {
    const lines = captureDebug()
    quietWarnings()
    const { clock, jump } = jumpingClock()
    const broken = { now: false }
    let failures = 0
    const store = wrapStore(memory(), (method, call) => {
      if (!broken.now || method === 'close') return call()
      failures++
      return Promise.reject(new Error(`the database is gone: ${method}`))
    })
    const { platform, marketplace, deliver } = await createScene({
      store: storeOption(store),
      clock,
      freshness: { waitMs: 0 },
      handlers: { retryDelaysMs: Array(100).fill(100) },
      ...internals({ pollMs: 10 }),
    })
    let thrown = 0
    marketplace.onPurchaseChange(() => {
      thrown++
      throw new Error('the app cannot')
    })
    // The platform is down, a handler fails at every try, and then the database fails too.
    for (let i = 0; i < 5; i++) platform.purchase({ business_uid: `b${i}`, payment: 'succeeded' })
    await until('handlers fail', () => thrown > 30)
    platform.faults.add({ on: 'platform', kind: 'down' })
    for (let i = 0; i < 20; i++) await deliver(noticeOf(`made-up-${i}`, `nobody-${i}`))
    await until('reads fail', () => lines.some((line) => line.includes('the read of a subscription failed')))

    async function outage() {
      broken.now = true
      const before = failures
      for (let i = 0; i < 20; i++) expect((await deliver(noticeOf(`s${i}`))).status).toBe(503)
      await until('loops fail', () => failures > before + 60)
      broken.now = false
    }
    await outage()
    const first = classesOf(lines)
    expect(lines.length).toBeGreaterThan(2)
    expect(first).toEqual([...new Set(first)])
    jump(5 * SECOND)
    await outage()
    // A class may be new, because a rare call may not have failed in the first outage.
    expect(classesOf(lines)).toEqual([...new Set(classesOf(lines))])

    // Then each class that continues has one more line, with the number of withheld lines.
    jump(6 * SECOND)
    const before = lines.length
    await outage()
    const again = lines.slice(before)
    expect(classesOf(again)).toEqual([...new Set(classesOf(again))])
    expect(again.length).toBeGreaterThan(2)
    for (const line of again)
      if (first.includes(classOf(line))) expect(line).toMatch(/\(\d+ more before this one\)/)
  })
})

const memory = () => storeFor('sqlite::memory:', systemClock)

/** The area and the first word of a line: the name of an error, or the kind of an entry. */
function classOf(line: string): string {
  return /marketplace-webhooks:\w+ \S+/.exec(line)?.[0] ?? line
}

function classesOf(lines: readonly string[]): string[] {
  return lines.map(classOf)
}
