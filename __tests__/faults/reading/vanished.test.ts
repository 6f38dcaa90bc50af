import { describe, expect, it, jest } from '@jest/globals'
import { HOUR, MINUTE } from '../../../lib/base/clock.js'
import { onCleanUp } from '../../support/clean-up.js'
import { internals } from '../../support/internals.js'
import { createReceiverLives } from '../../support/receiving/receiver-lives.js'
import { DELIVERY_SECRET, OUR_ITEM } from '../../support/settings.js'

jest.setTimeout(60_000)

const WORDS = /no longer shows the subscriptions of \d of 5 businesses/

describe('D26 when the platform suddenly shows most businesses no subscription, with status 200,', () => {
  it('health is degraded, no business loses access, and all is as before once the platform shows them again', async () => {
    const { advance, answers, health, hide, changes, track } = await fiveBusinesses()
    hide(5)
    await track()
    await advance(3 * HOUR)
    expect(await answers()).toEqual([true, true, true, true, true])
    expect(await health()).toEqual(['degraded', expect.stringMatching(WORDS)])
    hide(0)
    await advance(HOUR)
    expect(await answers()).toEqual([true, true, true, true, true])
    expect(await health()).toEqual(['ok'])
    expect(changes).toHaveLength(5)
  })

  it('those that stay hidden lose access as soon as most are shown again', async () => {
    const { advance, answers, health, hide } = await fiveBusinesses()
    hide(5)
    await advance(3 * HOUR)
    hide(2)
    await advance(3 * HOUR)
    expect(await answers()).toEqual([false, false, true, true, true])
    expect(await health()).toEqual(['ok'])
  })

  it('a few that disappear are accepted as missing', async () => {
    const { advance, answers, health, hide, track } = await fiveBusinesses()
    hide(2)
    await track()
    await advance(5 * MINUTE)
    expect(await answers()).toEqual([false, false, true, true, true])
    expect(await health()).toEqual(['ok'])
  })

  it('access still ends when it has been unconfirmed for too long', async () => {
    const { advance, answers, health, hide } = await fiveBusinesses()
    hide(5)
    await advance(14 * HOUR)
    expect(await answers()).toEqual([false, false, false, false, false])
    const stale = expect.stringContaining('the answers of 5 businesses are stale')
    expect(await health()).toEqual(['degraded', expect.stringMatching(WORDS), stale])
  })
})

const NUMBERS = [1, 2, 3, 4, 5]

/**
 * Five businesses that have bought, in virtual time. `hide` stops the platform from showing any subscription to the
 * first of them.
 */
async function fiveBusinesses() {
  const changes: unknown[] = []
  const lives = await createReceiverLives({
    path: ':memory:',
    onPurchaseChange: (change) => void changes.push(change),
    marketplace: {
      app: { clientId: 'c', clientSecret: 's', purchasableUid: OUR_ITEM },
      deliverySecrets: DELIVERY_SECRET,
      freshness: { waitMs: 0, reconcileEveryMs: HOUR, maxStaleMs: 12 * HOUR },
      ...internals({ pollMs: MINUTE }),
      closeTimeoutMs: 1_000,
    },
  })
  onCleanUp(() => lives.end())
  const { clock, marketplace, platform } = lives
  const track = async () => {
    for (const i of NUMBERS)
      await marketplace().subscriptions.track({ subscriptionUid: `s${i}`, businessUid: `b${i}` })
  }
  for (const i of NUMBERS) platform.step(`s${i}`, `b${i}`, 'User purchases an app', 'Payment succeeded')
  await track()
  await clock.advance(MINUTE)
  const answers = () => Promise.all(NUMBERS.map((i) => marketplace().isEntitled(`b${i}`)))
  expect(await answers()).toEqual([true, true, true, true, true])
  return {
    answers,
    changes,
    track,
    advance: clock.advance,
    hide: (count: number) => platform.hide(NUMBERS.slice(0, count).map((i) => `s${i}`)),
    async health() {
      const { status, problems } = await marketplace().health()
      return [status, ...problems.map(({ message }) => message)]
    },
  }
}
