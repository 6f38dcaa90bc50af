import { describe, expect, it } from '@jest/globals'
import type { Marketplace } from '../../../lib/index.js'
import { subscriptionPages } from '../../../lib/operations/journal/pages.js'
import { createOtherItems } from '../../../lib/work/reading/other-items.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene, newFile, openMarketplace, startPlatform } from '../../support/scene.js'
import { track } from '../../support/scenes/purchases.js'
import { until } from '../../support/until.js'

const WORKERS = [
  ['with a worker', true],
  ['without a worker', false],
] as const
const DAY = 24 * 60 * 60 * 1_000

describe('new subscriptions for other items', () => {
  it('J32 degrade health once a day passes with ten of them and none for an own item, with a problem that names both', () => {
    const { items, jump, messages } = setUp(['mine', 'mine-too'])
    items.noteRead('mine', true)
    for (let i = 0; i < 9; i++) items.noteRead('theirs', true)
    jump(DAY)
    // The regular reads go on.
    items.noteRead('mine', false)
    items.noteRead('theirs', false)
    items.noteRead(null, true)
    expect(messages()).toEqual([])
    items.noteRead('another "one"', true)
    expect(messages()).toEqual([
      'the last 10 new subscriptions are for another item ("theirs", "another \\"one\\"") and none for app.purchasableUid ("mine", "mine-too"): businesses that bought another item are denied',
    ])
    items.noteRead('mine-too', true)
    for (let i = 0; i < 50; i++) items.noteRead(`theirs-${i}`, true)
    jump(DAY - 60_000)
    expect(messages()).toEqual([])
    jump(60_000)
    expect(messages()[0]).toMatch(/^the last 50 new subscriptions are .*"theirs-0".*"theirs-4"\)/)
    expect(messages()[0]).not.toContain('theirs-5')
  })

  it('A230 J32 are not those that deliveries name: anybody with the delivery secret can have made them up', async () => {
    const { platform, marketplace, deliver, jump } = await createScene()
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    jump(25 * 60 * 60 * 1_000)
    for (let i = 0; i < 10; i++) {
      const data = { subscription_uid: `made-up-${i}`, business_id: 'b9', purchasable_uid: 'theirs' }
      const { status } = await deliver({
        entity_name: 'purchasable_subscription',
        event_type: 'created',
        data,
      })
      expect(status).toBe(200)
    }
    expect((await marketplace.health()).problems).toEqual([])
  })

  it('J32 a misspelt app.purchasableUid shows in health() after the first purchase', async () => {
    const { platform, marketplace } = await createScene({ app: { purchasableUid: 'misspelt' } })
    await marketplace.start()
    expect((await marketplace.health()).status).toBe('ok')
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled('b1')).toBe(false)
    const { status, problems } = await marketplace.health()
    expect(status).toBe('degraded')
    expect(problems).toMatchObject([
      { code: 'other_items_only', message: expect.stringMatching(/another item .*"misspelt"/) },
    ])
  })
})

describe('known subscriptions for other items', () => {
  it('J34 degrade the health as long as none is for the own item', () => {
    const { items, messages } = setUp(['mine', 'mine-too'])
    const noteKnown = (...known: (string | null)[]) => {
      for (const item of known) items.noteRead(item, false)
    }
    noteKnown(null)
    expect(messages()).toEqual([])
    noteKnown('theirs', null, 'theirs', 'others')
    expect(messages()).toEqual([
      'the known subscriptions are for another item ("theirs", "others") and none for app.purchasableUid ("mine", "mine-too"): businesses that bought another item are denied',
    ])
    for (let i = 0; i < 10; i++) noteKnown(`theirs-${i}`)
    expect(messages()[0]).toContain('("theirs", "others", "theirs-0", "theirs-1", "theirs-2")')
    noteKnown('theirs', 'mine-too', 'theirs')
    expect(messages()).toEqual([])
  })

  it('J34 are no problem without app.purchasableUid', () => {
    const { items, messages } = setUp([])
    items.noteRead('theirs', true)
    expect(messages()).toEqual([])
  })

  it('A230 J34 are not those of stored subscriptions that were never read: anybody can have made them up', async () => {
    const { items, messages, have } = setUp(['mine'])
    have([{ subscriptionUid: 's1', record: null, purchasableUid: 'theirs' }])
    await items.look()
    expect(messages()).toEqual([])
    have([{ subscriptionUid: 's1', record: {}, purchasableUid: 'theirs' }])
    await items.look()
    expect(messages()).toHaveLength(1)
  })

  it('J34 are no problem if one for the own item is stored behind many old ones', async () => {
    const { items, messages, have } = setUp(['mine'])
    const all = Array.from({ length: 1_000 }, (_, at) => ({
      subscriptionUid: String(10_000 + at),
      record: {},
      purchasableUid: at < 990 ? 'theirs' : 'mine',
    }))
    have(all)
    await items.look()
    expect(messages()).toEqual([])
  })

  it('J34 are looked at again every ten minutes, because another process may read them', async () => {
    const { items, messages, have, jump, looks } = setUp(['mine'])
    expect([messages(), looks()]).toEqual([[], 0])
    const theirs = { subscriptionUid: 's1', record: {}, purchasableUid: 'theirs' }
    await items.look()
    jump(10 * 60_000 - 1)
    have([theirs])
    messages()
    jump(1)
    messages()
    await until('it is seen', async () => messages().length === 1)
    have([theirs, { subscriptionUid: 's2', record: {}, purchasableUid: 'mine' }])
    jump(10 * 60_000)
    await until('the own one is seen', async () => messages().length === 0)
    jump(10 * 60_000)
    messages()
    expect(looks()).toBe(3)
  })

  it('J34 a misspelt app.purchasableUid shows in health() after an import', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { app: { purchasableUid: 'misspelt' } })
    await track(platform, marketplace, 'b1')
    await until(
      'the subscription is read',
      async () => (await marketplace.explain('b1')).reason === 'other_app',
    )
    await expectMisspelt(marketplace)
  })

  it('J32 handlers hear that a purchase is of another item once app.purchasableUid does not name its item, and of a purchase once it does again', async () => {
    const platform = await startPlatform()
    const store = newFile()
    const heard: unknown[] = []
    const open = (app: object) => {
      const marketplace = openMarketplace(platform, { store, app })
      marketplace.onPurchaseChange(({ from, to, gone, cause }) => void heard.push({ from, to, gone, cause }))
      return marketplace
    }
    const correct = open({})
    await track(platform, correct, 'b1')
    await correct.businesses.refresh('b1')
    await correct.settled()
    await correct.close()
    const misspelt = open({ purchasableUid: 'misspelt' })
    const { subscriptions } = await misspelt.businesses.refresh('b1')
    expect(subscriptions).toMatchObject([{ reason: 'other_app', purchase_state: 'purchased' }])
    await until('the change is handled', () => heard.length > 1)
    await misspelt.settled()
    await misspelt.close()
    const corrected = open({})
    expect(await corrected.isEntitled('b1')).toBe(true)
    await corrected.businesses.refresh('b1')
    await until('the change is handled', () => heard.length > 2)
    // The cause says that it is no sign of a lost event.
    expect(heard).toEqual([
      { from: null, to: 'purchased', gone: null, cause: 'request' },
      { from: 'purchased', to: null, gone: 'other_item', cause: 'import' },
      { from: null, to: 'purchased', gone: null, cause: 'import' },
    ])
  })

  it.each(WORKERS)(
    'J34 a misspelt app.purchasableUid shows in health() after a restart: %s',
    async (_, worker) => {
      const platform = await startPlatform()
      const store = newFile()
      const before = openMarketplace(platform, { store })
      await track(platform, before, 'b1')
      await until('the subscription is read', () => before.isEntitled('b1'))
      await before.close()
      const after = openMarketplace(platform, { store, worker, app: { purchasableUid: 'misspelt' } })
      await after.start()
      await expectMisspelt(after)
      await after.close()
      const corrected = openMarketplace(platform, { store, worker })
      await corrected.start()
      expect(await corrected.isEntitled('b1')).toBe(true)
      expect((await corrected.health()).problems).toEqual([])
    },
  )

  async function expectMisspelt(marketplace: Marketplace) {
    await until('health shows it', async () => (await marketplace.health()).status === 'degraded')
    const { problems } = await marketplace.health()
    expect(problems).toMatchObject([
      { message: expect.stringMatching(/known subscriptions .* another item .*"misspelt"/) },
    ])
    expect(await marketplace.isEntitled('b1')).toBe(false)
  }
})

describe('a purchase that is announced with a full record', () => {
  it.each(['created', 'update'])(
    'B22 is read although the record lacks optional fields: %s',
    async (event_type) => {
      for (const odd of [null, '', 7, {}, undefined]) {
        const { platform, marketplace, deliver } = await createScene()
        const drop = platform.faults.add({ on: 'delivery', kind: 'drop' })
        const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
        await platform.settled()
        drop.remove()
        const data = { uid, business_uid: 'b1', purchasable_uid: odd === 7 ? null : odd, purchase_state: odd }
        const { status, body } = await deliver({ entity_name: 'purchasable_subscription', event_type, data })
        expect([status, body.issues]).toEqual([200, undefined])
        expect(await marketplace.isEntitled('b1')).toBe(true)
      }
    },
  )
})

interface Stored {
  subscriptionUid: string
  record: object | null
  purchasableUid: string
}

function setUp(purchasableUids: string[]) {
  const { clock, jump } = jumpingClock()
  let stored: readonly Stored[] = []
  let looks = 0
  const listSubscriptions = async ({ after = '', limit }: { after?: string; limit: number }) =>
    stored.filter(({ subscriptionUid }) => subscriptionUid > after).slice(0, limit)
  const items = createOtherItems({
    purchasableUids,
    pages() {
      looks++
      return subscriptionPages({ listSubscriptions } as never, {}, 100)
    },
    onError(error) {
      throw error
    },
    clock,
  })
  return {
    items,
    jump,
    messages: () => items.problems().map(({ message }) => message),
    have(all: readonly Stored[]) {
      stored = all
    },
    looks: () => looks,
  }
}
