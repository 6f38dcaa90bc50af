import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../lib/base/clock.js'
import { createScene } from '../support/scene.js'
import { buy, readsOf } from '../support/scenes/purchases.js'
import { B1 } from '../support/settings.js'
import { until } from '../support/until.js'

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

describe('D20 a purchase that reads show only later', () => {
  it.each([
    ['the read', 'read', { kind: 'status', status: 200, body: { data: { subscriptions: [] } } }],
    ['the token', 'token', { kind: 'status', status: 401, body: { error: 'access_denied' } }],
  ] as const)(
    'is granted within waitMs if %s lags, and is not known until then',
    async (_what, on, fault) => {
      const { platform, marketplace } = await createScene()
      const lag = platform.faults.add({ on, ...fault })
      platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await platform.settled()
      const answer = marketplace.isEntitled(B1)
      await until('the first read has ended', () => lag.strikes > 0)
      lag.remove()
      expect(await answer).toBe(true)
    },
  )

  it('is not known, rather than denied, if reads show it even later', async () => {
    const { platform, marketplace, jump } = await createScene({ freshness: { waitMs: 100 } })
    const body = { data: { subscriptions: [] } }
    const lag = platform.faults.add({ on: 'read', kind: 'status', status: 200, body })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    await until('a read has ended', () => lag.strikes > 0)
    expect(await marketplace.explain(B1)).toMatchObject({ known: false, reason: 'not_read_yet' })
    await until('the verifications have been made', async () => {
      jump(11 * 60_000)
      return (await marketplace.explain(B1)).reason === 'missing'
    })
    expect(await marketplace.explain(B1)).toMatchObject({ known: true, reason: 'missing' })
  })
})
