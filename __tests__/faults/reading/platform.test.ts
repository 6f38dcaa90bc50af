import { describe, expect, it } from '@jest/globals'
import { type Clock, HOUR, MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { internals } from '../../support/internals.js'
import { createScene, newFile, openMarketplace, startPlatform } from '../../support/scene.js'
import { B1, B2 } from '../../support/settings.js'
import { looks, until } from '../../support/until.js'

describe('a platform, or its token endpoint,', () => {
  it.each([
    ['E1 that refuses connections', 'down', 'platform_unreachable'],
    ['E1 that resets connections', 'reset', 'platform_unreachable'],
    ['E2 that accepts requests and never answers', 'hang', 'platform_timeout'],
    ['E4 that sends half of its reply', 'truncate', 'platform_unreachable'],
    ['E5 that replies with a page and 200', 'html', 'platform_reply_invalid'],
  ] as const)('%s changes no answer, is reported, and is called again later', async (_what, kind, code) => {
    const platform = await startPlatform()
    const options = { ...internals({ callTimeoutMs: 300 }), freshness: { waitMs: 0 } }
    const marketplace = openMarketplace(platform, options)
    const failureOf = async (business: string) =>
      (await marketplace.explain(business)).subscriptions[0]?.failure
    const known = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await marketplace.subscriptions.track({ subscriptionUid: known.uid, businessUid: B1 })
    await until('the purchase is seen', () => marketplace.isEntitled(B1))

    const outage = platform.faults.add({ on: 'platform', kind })
    // The known business has its token and fails at the read. The new one fails at its first token.
    platform.cancel(known.uid)
    const other = platform.purchase({ business_uid: B2, payment: 'succeeded' })
    const begun = Date.now()
    await marketplace.subscriptions.track({ subscriptionUid: known.uid, businessUid: B1 })
    await marketplace.subscriptions.track({ subscriptionUid: other.uid, businessUid: B2 })
    const failures = [
      await until('a read has failed', () => failureOf(B1)),
      await until('a token call has failed', () => failureOf(B2)),
    ]
    expect(failures).toEqual([code, code])
    expect(Date.now() - begun).toBeLessThan(8_000)
    expect(await marketplace.isEntitled(B1)).toBe(true)
    expect(await marketplace.isEntitled(B2)).toBe(false)
    expect(await marketplace.journal.list({ kind: 'change' })).toHaveLength(1)

    outage.remove()
    await until('the access of the known business has ended', async () => !(await marketplace.isEntitled(B1)))
    await until('the new business has access', () => marketplace.isEntitled(B2))
  })
})

describe('E6 a platform that limits the rate', () => {
  it.each([
    ['seconds', '120', 2 * MINUTE],
    ['a date', inTwoMinutes, 2 * MINUTE],
    ['rubbish', 'soon', SECOND],
    ['nothing', undefined, SECOND],
    ['a negative number', '-5', SECOND],
    ['ten days', '864000', HOUR],
  ])('by %s gets no call until then, for any business', async (_form, retryAfter, waitMs) => {
    const { clock, jump } = steppedClock()
    const { platform, marketplace, codes } = await createScene({ clock, freshness: { waitMs: 0 } })
    const header = typeof retryAfter === 'function' ? retryAfter(clock) : retryAfter
    const limit = { on: 'read', kind: 'status', status: 429, times: 1 } as const
    platform.faults.add(header === undefined ? limit : { ...limit, retryAfter: header })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the reads are paused', async () => (await marketplace.health()).problems.length > 0)
    const calls = platform.requests.length
    platform.purchase({ business_uid: B2, payment: 'succeeded' })
    await platform.settled()
    jump(waitMs - 2)
    await looks(3)
    expect(platform.requests).toHaveLength(calls)
    expect(await codes()).toContain('reads_throttled')
    jump(2)
    await until('the other business has access', () => marketplace.isEntitled(B2))
    expect(await codes()).not.toContain('reads_throttled')
    jump(HOUR)
    await until('the first business has access', () => marketplace.isEntitled(B1))
  })
})

describe('E8 a platform that refuses one business', () => {
  it.each([403, 404, 400])(
    'with %d gets fewer and fewer calls for it, and calls for others as before',
    async (status) => {
      const { platform, marketplace } = await createScene({ freshness: { waitMs: 0 } })
      platform.faults.add({ on: 'read', kind: 'status', status, business_uid: B1 })
      platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await until('the business is refused', async () => {
        const { subscriptions } = await marketplace.explain(B1)
        return subscriptions[0]?.failure === 'platform_refused'
      })
      for (let other = 0; other < 10; other++) {
        platform.purchase({ business_uid: `other-${other}`, payment: 'succeeded' })
        await until('the other business has access', () => marketplace.isEntitled(`other-${other}`))
      }
      expect(await marketplace.health()).toMatchObject({ status: 'ok' })
      const refused = platform.requests.filter((each) => each.endpoint === 'read' && each.business_uid === B1)
      expect(refused.length).toBeLessThanOrEqual(6)
    },
  )
})

describe('E23 a platform that refuses every business', () => {
  it('is reported by health with the next step, even after a restart, until it serves reads again', async () => {
    const store = newFile()
    const { platform, marketplace, clock, jump } = await createScene({ store })
    const businesses = ['b1', 'b2', 'b3', 'b4']
    for (const business_uid of businesses) {
      platform.purchase({ business_uid, payment: 'succeeded' })
      await until('the purchase is seen', () => marketplace.isEntitled(business_uid))
    }
    const refusal = platform.faults.add({ on: 'read', kind: 'status', status: 404 })
    for (const business of businesses) await marketplace.businesses.refresh(business)
    const health = await marketplace.health()
    expect(health).toMatchObject({ status: 'degraded', counts: { active: 4, refused: 4 } })
    expect(health.problems).toContainEqual({
      code: 'reads_refused',
      message: 'the platform refuses the reads of 4 of 4 businesses (404 platform_refused)',
      next: expect.stringContaining('platform.baseUrl'),
    })
    for (let days = 0; days < 6; days++) {
      const strikes = refusal.strikes
      jump(26 * HOUR)
      let polls = 0
      await until('the reads are tried again', () => {
        // A read that was under way at the jump counts its next try from after the jump.
        if (++polls % 100 === 0) jump(6 * MINUTE)
        return refusal.strikes >= strikes + businesses.length
      })
    }
    await marketplace.close()
    const again = openMarketplace(platform, { clock, store })
    await again.start()
    expect((await again.health()).problems.map(({ message }) => message).join()).toMatch(
      /4 of 4 (businesses|subscriptions)/,
    )
    refusal.remove()
    jump(30 * HOUR)
    for (const business of businesses) await until(business, () => again.isEntitled(business))
    await until('health is ok', async () => (await again.health()).status === 'ok')
  }, 60_000)
})

/** A clock that stands still between its steps, first on a whole second. Timers keep the system's pace. */
function steppedClock() {
  let now = Math.ceil(Date.now() / SECOND) * SECOND
  const clock: Clock = { ...systemClock, now: () => now, monotonic: () => now }
  return {
    clock,
    jump(ms: number) {
      now += ms
    },
  }
}

function inTwoMinutes(clock: Clock): string {
  return new Date(clock.now() + 2 * MINUTE).toUTCString()
}
