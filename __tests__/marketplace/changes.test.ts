import { describe, expect, it } from '@jest/globals'
import type { PurchaseChange } from '../../lib/index.js'
import { createScene } from '../support/scene.js'
import { B1 } from '../support/settings.js'
import { until } from '../support/until.js'

describe('every change', () => {
  it('reaches every handler with its full description', async () => {
    const { platform, marketplace } = await createScene()
    const [first, second]: [PurchaseChange[], PurchaseChange[]] = [[], []]
    marketplace.onPurchaseChange((change) => void first.push(change))
    marketplace.onPurchaseChange((change, { attempt, marketplace: given, signal }) => {
      second.push(change)
      expect([attempt, given === marketplace, signal.aborted]).toEqual([1, true, false])
    })
    const record = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('both handlers get the change', () => first.length + second.length === 2)
    platform.cancel(record.uid)
    await until('both handlers get the second change', () => first.length + second.length === 4)

    expect(first).toEqual(second)
    expect(first[0]).toEqual({
      cause: 'event',
      gone: null,
      id: expect.any(String),
      business_uid: B1,
      subscription_uid: record.uid,
      from: null,
      to: 'purchased',
      entitled: true,
      record: expect.objectContaining({
        uid: record.uid,
        purchase_price: '9.99',
        purchase_state: 'purchased',
      }),
      observedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    })
    expect(first[1]).toMatchObject({ from: 'purchased', to: 'canceled', entitled: false })
    expect(first[1]?.id).not.toBe(first[0]?.id)
  })

  it('D1 is delivered once for many deliveries about it, and never if the state stays the same', async () => {
    const { platform, marketplace } = await createScene()
    const seen: PurchaseChange[] = []
    marketplace.onPurchaseChange((change) => void seen.push(change))
    platform.faults.add({ on: 'delivery', kind: 'duplicate', copies: 20 })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    platform.touch(uid)
    await marketplace.businesses.refresh(B1)
    platform.cancel(uid)
    await platform.settled()
    await until('the last change is handled', () => seen.some(({ to }) => to === 'canceled'))
    expect(seen.map(({ from, to }) => [from, to])).toEqual([
      [null, 'purchased'],
      ['purchased', 'canceled'],
    ])
  })
})
