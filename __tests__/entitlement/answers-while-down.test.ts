import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR } from '../../lib/base/clock.js'
import { jumpingClock } from '../support/machine/jumping-clock.js'
import { createScene } from '../support/scene.js'
import { buy, notice, readsOf } from '../support/scenes/purchases.js'
import { until } from '../support/until.js'

const B1 = 'business-one'

const B2 = 'business-two'

describe('while the platform is down', () => {
  it('the last answer stands up to maxStaleMs, then it is no, and yes again after a read', async () => {
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({ clock, freshness: { maxStaleMs: 72 * HOUR } })
    await buy(platform, marketplace)
    const outage = platform.faults.add({ on: 'platform', kind: 'down' })
    jump(71 * HOUR)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    jump(2 * HOUR)
    expect(await marketplace.isEntitled(B1)).toBe(false)
    expect(await marketplace.explain(B1)).toMatchObject({
      entitled: false,
      known: false,
      reason: 'stale',
      stale: true,
      subscriptions: [{ purchase_state: 'purchased' }],
    })
    outage.remove()
    // The first call may still use a kept-alive connection that the outage has cut.
    await until('a read succeeds', async () => (await marketplace.businesses.refresh(B1)).entitled)
    expect(await marketplace.explain(B1)).toMatchObject({ entitled: true, stale: false })
  })

  it('an answer whose maxStaleMs is shorter than the reconcile is confirmed in time', async () => {
    const freshness = { maxStaleMs: 1_000, reconcileEveryMs: 30 * DAY }
    const { platform, marketplace } = await createScene({ freshness })
    const { uid } = await buy(platform, marketplace)
    const answers = new Set<boolean>()
    await until('it is read again and again', async () => {
      answers.add(await marketplace.isEntitled(B1))
      return readsOf(platform, uid) > 4
    })
    expect(answers).toEqual(new Set([true]))
  })

  it('a cached answer ends at maxStaleMs', async () => {
    const { platform, marketplace } = await createScene({ freshness: { maxStaleMs: 1_000 } })
    await buy(platform, marketplace)
    platform.faults.add({ on: 'platform', kind: 'down' })
    expect(await marketplace.isEntitled(B1)).toBe(true)
    // This is less than the 5 s for which an answer is otherwise cached.
    await until('the answer is no', async () => !(await marketplace.isEntitled(B1)), 4_000)
  })

  it.each([
    ['refuses connections', { kind: 'down' }],
    ['answers 500', { kind: 'status', status: 500 }],
    ['answers 429', { kind: 'status', status: 429, retryAfter: 1 }],
    ['shows a page with 200', { kind: 'html' }],
    ['answers half', { kind: 'truncate' }],
    [
      'refuses the app\u2019s credentials',
      { kind: 'status', status: 401, body: { error: 'invalid_client' } },
    ],
  ] as const)('it changes no answer if it %s', async (_what, fault) => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: 100 } })
    const { uid } = await buy(platform, marketplace)
    platform.faults.add({ on: 'platform', ...fault })
    await deliver(notice({ subscription_uid: uid }))
    expect(await marketplace.isEntitled(B1)).toBe(true)
    await until('a read has failed', async () => (await marketplace.explain(B1)).subscriptions[0]?.failure)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.isEntitled(B2)).toBe(false)
  })
})
