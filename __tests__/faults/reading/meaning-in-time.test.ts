import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { onCleanUp } from '../../support/clean-up.js'
import { noticeOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { createReceiverLives } from '../../support/receiving/receiver-lives.js'
import { serve } from '../../support/scene.js'
import { DELIVERY_SECRET, OUR_ITEM } from '../../support/settings.js'

describe('in virtual time', () => {
  it.each([1, 4])('D7 a read that lags %d times is repeated until it shows the change', async (times) => {
    const { platform, change, send, advance, state, seen, reads } = await virtual({ pollMs: SECOND })
    change()
    await send()
    // The first record after an update is verified, too.
    await advance(15 * MINUTE)
    const before = reads()
    platform.fail('older', times)
    change()
    await send()
    await advance(SECOND)
    expect(await state()).toBe('purchased')
    await advance(15 * MINUTE)
    expect(await state()).toBe('suspended')
    expect(reads() - before).toBe(times + 1)
    expect(seen).toEqual(['purchased', 'suspended'])
  })

  it('D7, D10 the reconcile finds a change that a read missed because it lagged too long, and a lost event', async () => {
    const { platform, change, send, advance, state, seen } = await virtual({ reconcileEveryMs: HOUR })
    change()
    await send()
    await advance(MINUTE)
    platform.fail('older', 5)
    change()
    await send()
    await advance(30 * MINUTE)
    expect(await state()).toBe('purchased')
    await advance(1.2 * HOUR)
    expect(await state()).toBe('suspended')
    change()
    await advance(MINUTE)
    expect(await state()).toBe('suspended')
    await advance(1.2 * HOUR)
    expect(await state()).toBe('purchased')
    expect(seen).toEqual(['purchased', 'suspended', 'purchased'])
  })

  it('D12 a record that disappears is denied after three reads over a minute, and not before', async () => {
    const { change, send, advance, hide, reads, seen, marketplace } = await virtual({ pollMs: SECOND })
    change()
    await send()
    await advance(MINUTE)
    const before = reads()
    hide(true)
    await send()
    await advance(59 * SECOND)
    expect(await marketplace().isEntitled('b1')).toBe(true)
    await advance(5 * SECOND)
    expect(reads() - before).toBe(3)
    expect(await marketplace().explain('b1')).toMatchObject({ entitled: false, reason: 'missing' })
    hide(false)
    await send()
    await advance(SECOND)
    expect(await marketplace().isEntitled('b1')).toBe(true)
    expect(seen).toEqual(['purchased', null, 'purchased'])
  })

  it('D12 a record that is hidden for two reads stays unchanged', async () => {
    const { change, send, advance, hide, seen, marketplace } = await virtual({ pollMs: SECOND })
    change()
    await send()
    await advance(MINUTE)
    hide(true)
    await send()
    await advance(40 * SECOND)
    hide(false)
    await advance(10 * MINUTE)
    expect(await marketplace().isEntitled('b1')).toBe(true)
    expect(seen).toEqual(['purchased'])
  })
})

/** One subscription on a platform in memory, and its receiver, in virtual time. */
async function virtual({ pollMs = MINUTE, reconcileEveryMs = DAY } = {}) {
  const seen: (string | null)[] = []
  const lives = await createReceiverLives({
    path: ':memory:',
    onPurchaseChange: ({ to }) => void seen.push(to),
    marketplace: {
      app: { clientId: 'c', clientSecret: 's', purchasableUid: OUR_ITEM },
      deliverySecrets: DELIVERY_SECRET,
      freshness: { waitMs: 0, reconcileEveryMs, maxStaleMs: 30 * DAY },
      ...internals({ pollMs }),
      closeTimeoutMs: 1_000,
    },
  })
  const { platform } = lives
  onCleanUp(() => lives.end())
  const url = await serve((req, res) => lives.marketplace().router(req, res))
  return {
    platform,
    advance: lives.clock.advance,
    marketplace: lives.marketplace,
    seen,
    reads: platform.reads,
    hide: (isHidden: boolean) => platform.hide(isHidden ? ['s1'] : []),
    /**
     * Makes the next change of the subscription: it is bought and paid, then has a payment issue and its end in turn.
     */
    change() {
      const state = platform.state('s1')
      if (state === undefined) platform.step('s1', 'b1', 'User purchases an app', 'Payment succeeded')
      else if (state === 'purchased') platform.step('s1', 'b1', 'Payment issue received')
      else platform.step('s1', 'b1', 'Payment confirmation received')
    },
    async send() {
      const body = JSON.stringify(noticeOf('s1', 'b1'))
      const { status } = await fetch(`${url}/${DELIVERY_SECRET}`, { method: 'POST', body })
      expect(status).toBe(200)
    },
    async state() {
      const [row] = await lives.rows('b1')
      return row?.state
    },
  }
}
