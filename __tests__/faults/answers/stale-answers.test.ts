import { describe, expect, it, jest } from '@jest/globals'
import { DAY, HOUR, SECOND } from '../../../lib/base/clock.js'
import type { Marketplace } from '../../../lib/index.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { codesOf, createScene, newFile, openMarketplace } from '../../support/scene.js'
import { createBusinesses } from '../../support/scenes/many-businesses.js'
import { gate, until } from '../../support/until.js'

jest.setTimeout(60_000)

describe.each(ENGINE_NAMES)('K71 the platform is down for longer than maxStaleMs, on %s', (name) => {
  const engine = useEngine(name)

  it('every instance is degraded from its start on, also without a worker, until most are confirmed again', async () => {
    const store = await engine.freshAddress()
    const freshness = { maxStaleMs: 3 * SECOND, reconcileEveryMs: SECOND, waitMs: 0 }
    const { platform, marketplace } = await createScene({ store, freshness })
    const businesses = ['b1', 'b2', 'b3', 'b4']
    for (const business_uid of businesses) platform.purchase({ business_uid, payment: 'succeeded' })
    const answers = (of: Marketplace) => Promise.all(businesses.map((each) => of.explain(each)))
    const are = async (of: Marketplace, reason: string) =>
      (await answers(of)).every((answer) => answer.reason === reason)
    await until('the purchases are seen', () => are(marketplace, 'purchased'))
    expect(await codesOf(marketplace)).toEqual([])

    const outage = platform.faults.add({ on: 'platform', kind: 'down' })
    await until('every answer is stale', () => are(marketplace, 'stale'))
    expect(await codesOf(marketplace)).toContain('answers_stale')
    await marketplace.close()

    const open: Marketplace[] = []
    for (const worker of [false, undefined] as const) {
      const instance = openMarketplace(platform, { store, freshness, worker })
      const { status, problems } = await instance.health()
      expect(await are(instance, 'stale')).toBe(true)
      expect(status).toBe('degraded')
      expect(problems).toContainEqual({
        code: 'answers_stale',
        message: 'the answers of 4 businesses are stale, and those of 0 are confirmed',
        next: expect.stringContaining('wait'),
      })
      // Not every SQLite library lets two share a file.
      if (worker === false && name === 'SQLite') await instance.close()
      else open.push(instance)
    }
    outage.remove()
    for (const business of businesses) await open.at(-1)?.businesses.refresh(business)
    for (const instance of open) {
      await until('payers have access again', () => are(instance, 'purchased'))
      await until('the problem has ended', async () => (await instance.health()).status === 'ok')
    }
  })
})

describe('K71 an app that was stopped', () => {
  it.each([
    ['for less than maxStaleMs is ok from its start on', 40 * HOUR, []],
    ['for longer is degraded until the reads come back', 4 * DAY, ['answers_stale']],
  ])('%s', async (_title, stoppedMs, codes) => {
    const store = newFile()
    const { platform, marketplace, clock, jump } = await createScene({ store })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('the purchase is seen', () => marketplace.isEntitled('b1'))
    await marketplace.close()
    jump(stoppedMs)
    const again = gate()
    const next = openMarketplace(platform, {
      ...{ clock, store },
      platform: { fetch: (...call) => again.opened.then(() => fetch(...call)) },
    })
    expect(await codesOf(next)).toEqual(codes)
    expect((await next.explain('b1')).reason).toBe(codes.length > 0 ? 'stale' : 'purchased')
    again.open()
    await until('it is ok', async () => (await next.health()).status === 'ok')
    expect(await next.isEntitled('b1')).toBe(true)
  })
})

describe('K71 of many businesses,', () => {
  it('one whose reads get no answer for days is stale, and no problem; most of them are one', async () => {
    const { serve, advance, explain, health, restart } = await createBusinesses(40, { freshness: TIMES })
    serve('down', [1])
    await advance(7 * HOUR)
    expect((await explain(1)).reason).toBe('stale')
    expect(await health()).toEqual(['ok'])
    serve('down', numbers(1, 20))
    await advance(7 * HOUR)
    await restart()
    expect(await health()).toEqual(['ok'])
    serve('down', numbers(1, 21))
    await advance(7 * HOUR)
    await restart()
    expect(await health()).toEqual(['degraded', expect.stringMatching(/of 21 businesses .* of 19 are/)])
  })

  it('those that are refused count with those that get no answer', async () => {
    const { serve, advance, out, health, refresh, restart } = await createBusinesses(10, { freshness: TIMES })
    // After the verifications the next reads follow two hours later. So all are stale before the refused ones have ended.
    for (const i of numbers(1, 10)) await refresh(i)
    await advance(HOUR)
    serve('down', numbers(1, 3))
    serve('forbidden', numbers(4, 7))
    await advance(6.5 * HOUR)
    await restart()
    expect(await out()).toEqual(numbers(1, 7))
    expect(await health()).toEqual(['degraded', expect.stringMatching(/of 7 businesses .* of 3 are/)])
  })

  it('those that have left are none', async () => {
    const { serve, advance, update, uninstall, move, out, health, restart } = await createBusinesses(10, {
      freshness: TIMES,
    })
    for (const i of numbers(1, 3)) {
      move(`b${i}`, 'canceled')
      await update(i)
    }
    for (const i of numbers(4, 6)) {
      serve('no token', [i])
      await uninstall(i)
      await advance(HOUR)
    }
    for (const i of numbers(7, 8)) {
      serve('empty', [i])
      await update(i)
      await advance(HOUR)
    }
    await advance(2 * HOUR)
    expect(await out()).toEqual(numbers(1, 8))
    for (let day = 0; day < 4; day++) {
      expect(await health()).toEqual(['ok'])
      await advance(DAY)
    }
    await restart()
    expect(await health()).toEqual(['ok'])
  })
})

const TIMES = { maxStaleMs: 6 * HOUR, reconcileEveryMs: 2.5 * HOUR }

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}
