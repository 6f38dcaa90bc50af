import { describe, expect, it } from '@jest/globals'
import { HOUR, systemClock } from '../../lib/base/clock.js'
import type { EntitledWhen, EntitlementChange, Marketplace } from '../../lib/index.js'
import { storeFor } from '../../lib/store-option.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { onCleanUp } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { withStoreFaults } from '../support/engines/store-faults.js'
import { storeOption } from '../support/engines/store-option.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { internals } from '../support/internals.js'
import { quietWarnings } from '../support/output.js'
import { createScene, OTHER_ITEM, OUR_ITEM, openMarketplace, startPlatform } from '../support/scene.js'
import { buy } from '../support/scenes/purchases.js'
import { type Line, sell } from '../support/scenes/sold.js'
import { B1 } from '../support/settings.js'
import { gate, until } from '../support/until.js'

const QUICK = { handlers: { retryDelaysMs: [50, 50, 50] }, ...internals({ pollMs: 50 }) }
const BOTH_ITEMS = { app: { purchasableUid: [OUR_ITEM, OTHER_ITEM] } }

describe.each(ENGINE_NAMES)('H224 onEntitlementChange on %s', (name) => {
  const engine = useEngine(name)
  const scene = async (options: Parameters<typeof createScene>[0] = {}) => {
    const store = await engine.freshAddress()
    return { store, ...(await createScene({ store, ...QUICK, ...options })) }
  }

  it('says what entitles a business when that changes, and nothing when only a record does', async () => {
    const { platform, marketplace } = await scene()
    const calls = callsOf(marketplace)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is told', () => calls.length === 1)
    expect(calls[0]).toEqual({
      id: expect.any(String),
      business_uid: B1,
      entitled: true,
      entitledItems: [OUR_ITEM],
      previousItems: [],
      reason: 'purchased',
      cause: 'event',
      accessUntil: null,
    })
    platform.touch(uid)
    await marketplace.businesses.refresh(B1)
    platform.paymentIssue(uid)
    await until('the end is told', () => calls.length === 2)
    expect(calls[1]).toMatchObject({ entitled: false, entitledItems: [], previousItems: [OUR_ITEM] })
    expect(calls[1]).toMatchObject({ reason: 'not_purchased', cause: 'event' })
    platform.cancel(uid)
    await until('the cancellation is read', async () => (await stateOf(marketplace, uid)) === 'canceled')
    await marketplace.settled()
    expect(calls).toHaveLength(2)
  })

  it('says which items are left, and nothing when one of two subscriptions of an item begins or ends', async () => {
    const { platform, marketplace } = await scene(BOTH_ITEMS)
    const calls = callsOf(marketplace)
    const { uid } = await buy(platform, marketplace)
    await until('the purchase is told', () => calls.length === 1)
    const second = await buy(platform, marketplace)
    platform.purchase({ business_uid: B1, payment: 'succeeded', purchasable_uid: OTHER_ITEM })
    await until('both items are told', () => calls.length === 2)
    platform.cancel(uid)
    await until('the end is read', async () => (await stateOf(marketplace, uid)) === 'canceled')
    platform.cancel(second.uid)
    await until('the end of the item is told', () => calls.length === 3)
    const both = [OUR_ITEM, OTHER_ITEM].sort()
    expect(itemsOf(calls)).toEqual([
      [[], [OUR_ITEM]],
      [[OUR_ITEM], both],
      [both, [OTHER_ITEM]],
    ])
    expect(await entriesOf(marketplace)).toHaveLength(3)
    expect(calls.map(({ entitled }) => entitled)).toEqual(calls.map(() => true))
  })

  it('says which items were there before its change, also when it is told after later changes', async () => {
    const { platform, marketplace } = await scene(BOTH_ITEMS)
    const calls = callsOf(marketplace)
    await buy(platform, marketplace)
    await until('the purchase is told', () => calls.length === 1)
    const [first] = await entriesOf(marketplace)
    platform.purchase({ business_uid: B1, purchasable_uid: OTHER_ITEM, payment: 'succeeded' })
    await until('the second purchase is told', () => calls.length === 2)
    await marketplace.journal.replay(first?.id as string)
    await until('the first one is told again', () => calls.length === 3)
    expect(itemsOf(calls).at(-1)).toEqual([[], [OUR_ITEM, OTHER_ITEM].sort()])
  })

  it('tells both businesses when a subscription moves', async () => {
    const { platform, marketplace } = await scene()
    const calls = callsOf(marketplace)
    const { uid } = await buy(platform, marketplace)
    await until('the purchase is told', () => calls.length === 1)
    platform.addBusiness('business-two')
    platform.set(uid, { business_uid: 'business-two' })
    await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: 'business-two' })
    await until('both are told', () => calls.length === 3)
    const told = calls.slice(1).map((call) => [call.business_uid, call.previousItems, call.entitledItems])
    expect(told.sort()).toEqual([
      [B1, [OUR_ITEM], []],
      ['business-two', [], [OUR_ITEM]],
    ])
  })

  it('tells the item that a subscription has now, if it is another one', async () => {
    const { platform, marketplace } = await scene(BOTH_ITEMS)
    const calls = callsOf(marketplace)
    const { uid } = await buy(platform, marketplace)
    await until('the purchase is told', () => calls.length === 1)
    platform.set(uid, { purchasable_uid: OTHER_ITEM })
    await marketplace.businesses.refresh(B1)
    await until('the other item is told', () => calls.length === 2)
    expect(itemsOf(calls).at(-1)).toEqual([[OUR_ITEM], [OTHER_ITEM]])
  })

  it('gets what is true after a backlog, in one call, also if the handler was added late', async () => {
    const { platform, marketplace, store } = await scene()
    const { uid } = await buy(platform, marketplace)
    platform.paymentIssue(uid)
    await until('the business is denied', async () => !(await marketplace.isEntitled(B1)))
    platform.confirmPayment(uid)
    await until('the business has access', () => marketplace.isEntitled(B1))
    expect((await marketplace.health()).counts).toMatchObject({ pending: 3 })
    await marketplace.close()
    const later = openMarketplace(platform, { store, ...QUICK })
    const calls = callsOf(later)
    await until('all flips are done', async () => (await doneOf(later)) === 3)
    expect(itemsOf(calls)).toEqual([[[], [OUR_ITEM]]])
    const [last] = await entriesOf(later)
    expect(calls[0]?.id).toBe(last?.id)
  })

  it('gets one call for flips that cancel out before it', async () => {
    const { platform, marketplace } = await scene()
    const { uid } = await buy(platform, marketplace)
    platform.paymentIssue(uid)
    await until('the business is denied', async () => !(await marketplace.isEntitled(B1)))
    const calls = callsOf(marketplace)
    await until('both flips are done', async () => (await doneOf(marketplace)) === 2)
    expect(itemsOf(calls)).toEqual([[[], []]])
  })

  it('hears of the end of a purchase that has no entry any more', async () => {
    const { platform, marketplace, store } = await scene()
    const { uid } = await buy(platform, marketplace)
    await marketplace.close()
    const { sql, store: opened } = await openStoreWithSql(store)
    await sql("delete from journal where kind = 'entitlement' returning id")
    await opened.close()
    const later = openMarketplace(platform, { store, ...QUICK })
    const calls = callsOf(later)
    platform.paymentIssue(uid)
    await later.businesses.refresh(B1)
    await until('the end is told', () => calls.length === 1)
    expect(itemsOf(calls)).toEqual([[[OUR_ITEM], []]])
  })

  it('gets one call for the flips that came while it ran', async () => {
    const { platform, marketplace } = await scene()
    const held = gate()
    onCleanUp(() => held.open())
    const calls = callsOf(marketplace, () => (calls.length === 1 ? held.opened : undefined))
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is told', () => calls.length === 1)
    for (const step of ['paymentIssue', 'confirmPayment', 'paymentIssue'] as const) {
      platform[step](uid)
      const expected = step === 'confirmPayment'
      await until('it is read', async () => (await marketplace.isEntitled(B1)) === expected)
    }
    held.open()
    await until('all flips are done', async () => (await doneOf(marketplace)) === 4)
    expect(itemsOf(calls)).toEqual([
      [[], [OUR_ITEM]],
      [[OUR_ITEM], []],
    ])
  })

  it('is tried again with the same id and the items of before, until it succeeds', async () => {
    const { platform, marketplace } = await scene()
    const attempts: number[] = []
    const calls = callsOf(marketplace, ({ attempt }) => {
      if (attempts.push(attempt) < 3) throw new Error('not yet')
    })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it has succeeded', async () => (await doneOf(marketplace)) === 1)
    expect(itemsOf(calls)).toEqual([1, 2, 3].map(() => [[], [OUR_ITEM]]))
    expect([attempts, new Set(calls.map(({ id }) => id)).size]).toEqual([[1, 2, 3], 1])
  })

  it('hears of a flip back after a try that failed, with every handler', async () => {
    const { platform, marketplace } = await scene()
    const [first, meanwhile] = [gate(), gate()]
    onCleanUp(() => meanwhile.open())
    const succeeds = callsOf(marketplace)
    const fails = callsOf(marketplace, async ({ attempt }) => {
      if (attempt > 1) return
      first.open()
      await meanwhile.opened
      throw new Error('not yet')
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await first.opened
    platform.paymentIssue(uid)
    await until('the business is denied', async () => !(await marketplace.isEntitled(B1)))
    meanwhile.open()
    await until('both flips are done', async () => (await doneOf(marketplace)) === 2)
    for (const calls of [succeeds, fails]) {
      expect(itemsOf(calls)).toEqual([
        [[], [OUR_ITEM]],
        [[], []],
      ])
      // A handler that keeps the ids of the calls that it has seen must not take the second for the first.
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
    }
  })

  it('is not called again if it succeeded while another handler failed, and nothing changed since', async () => {
    const { platform, marketplace } = await scene()
    const succeeds = callsOf(marketplace)
    const fails = callsOf(marketplace, ({ attempt }) => {
      if (attempt < 3) throw new Error('not yet')
    })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it has succeeded', async () => (await doneOf(marketplace)) === 1)
    expect([succeeds.length, fails.length]).toEqual([1, 3])
  })

  it('hears of a flip back after a try that failed for good', async () => {
    const { platform, marketplace } = await scene({ handlers: { retryDelaysMs: [] } })
    const calls = callsOf(marketplace, () => {
      if (calls.length === 1) throw new Error('a mistake')
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it is dead', async () => (await marketplace.journal.list({ status: 'dead' })).length === 1)
    platform.paymentIssue(uid)
    await until('the end is told', () => calls.length === 2)
    expect(itemsOf(calls)).toEqual([
      [[], [OUR_ITEM]],
      [[OUR_ITEM], []],
    ])
  })

  it('is called again if the marketplace closed while it ran, whatever is true then', async () => {
    const { platform, marketplace, store } = await scene({ closeTimeoutMs: 50 })
    const before = callsOf(
      marketplace,
      ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut off')))),
    )
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is told', () => before.length === 1)
    await marketplace.close()
    platform.paymentIssue(uid)
    const later = openMarketplace(platform, { store, ...QUICK })
    expect(await later.businesses.refresh(B1)).toMatchObject({ entitled: false })
    const calls = callsOf(later)
    await until('both flips are done', async () => (await doneOf(later)) === 2)
    expect(itemsOf(calls)).toEqual([[[], []]])
  })

  it('is called again by a replay', async () => {
    const { platform, marketplace } = await scene()
    const calls = callsOf(marketplace)
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it has succeeded', async () => (await doneOf(marketplace)) === 1)
    const [entry] = await entriesOf(marketplace)
    expect(entry).toMatchObject({ business_uid: B1, cause: 'event', name: '' })
    await marketplace.journal.replay(String(entry?.id))
    await until('it is told again', () => calls.length === 2)
    expect(itemsOf(calls).at(-1)).toEqual([[], [OUR_ITEM]])
  })

  it('is called again by a replay during the call, although that succeeds', async () => {
    const { platform, marketplace } = await scene(internals({ pollMs: 50, leaseMs: 1_000 }))
    const held = gate()
    onCleanUp(() => held.open())
    const calls = callsOf(marketplace, () => held.opened)
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is told', () => calls.length === 1)
    expect(await marketplace.journal.replay(String(calls[0]?.id))).toBe(true)
    held.open()
    await until('it is told again', () => calls.length === 2)
    await until('it is done', async () => (await doneOf(marketplace)) === 1)
    expect(itemsOf(calls)[1]).toEqual([[], [OUR_ITEM]])
  })

  it('is called again by a replay of an entry that is done, while it runs for another one', async () => {
    const { platform, marketplace } = await scene()
    const held = gate()
    onCleanUp(() => held.open())
    const calls = callsOf(marketplace, () => (calls.length === 2 ? held.opened : undefined))
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is told', async () => (await doneOf(marketplace)) === 1)
    platform.paymentIssue(uid)
    await until('the end is told', () => calls.length === 2)
    await marketplace.journal.replay(String(calls[0]?.id))
    held.open()
    await until('it is told again', () => calls.length === 3)
    await until('all is done', async () => (await doneOf(marketplace)) === 2)
    expect(itemsOf(calls)).toEqual([
      [[], [OUR_ITEM]],
      [[OUR_ITEM], []],
      [[], []],
    ])
  })

  it('is not called by a quiet import, and hears of its end', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress(), ...QUICK })
    const calls = callsOf(marketplace)
    const lines = sell(platform, 2)
    await marketplace.subscriptions.import(lines, { announce: false })
    for (const { businessUid } of lines) await until('it is read', () => marketplace.isEntitled(businessUid))
    platform.paymentIssue('subscription-0')
    await marketplace.businesses.refresh('business-0')
    await until('the end is told', () => calls.length === 1)
    expect(calls).toMatchObject([{ business_uid: 'business-0', entitled: false, previousItems: [OUR_ITEM] }])
    expect(await entriesOf(marketplace)).toHaveLength(1)
  })

  it.each(['before', 'after'])(
    'knows the item of a quiet import that is read %s another purchase',
    async (when) => {
      const platform = await startPlatform()
      const store = await engine.freshAddress()
      const marketplace = openMarketplace(platform, { store, ...QUICK, ...BOTH_ITEMS })
      const calls = callsOf(marketplace)
      const [{ subscriptionUid, businessUid }] = sell(platform, 1) as [Line]
      const down = { on: 'read', kind: 'status', status: 503, subscription_uid: subscriptionUid } as const
      const fault = when === 'after' ? platform.faults.add(down) : undefined
      await marketplace.subscriptions.track({ subscriptionUid, businessUid }, { announce: false })
      if (!fault) await until('it is read', () => marketplace.isEntitled(businessUid))
      const bought = { business_uid: businessUid, purchasable_uid: OTHER_ITEM }
      const { uid } = platform.purchase({ ...bought, payment: 'succeeded' })
      await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid })
      if (fault) {
        const isWaiting = async () => (await entriesOf(marketplace))[0]?.error != null
        await until('the purchase waits for the import', isWaiting)
        expect(calls).toEqual([])
        fault.remove()
        await marketplace.businesses.refresh(businessUid)
      }
      await until('the purchase is told', async () => (await doneOf(marketplace)) === 1)
      expect(itemsOf(calls)).toEqual([[[OUR_ITEM], [OUR_ITEM, OTHER_ITEM].sort()]])
    },
  )

  it('is called again after a process that ended between the call and its record, whatever is true then', async () => {
    const store = await engine.freshAddress()
    const faulty = withStoreFaults(storeFor(store, systemClock))
    const { platform, marketplace } = await createScene({
      store: storeOption(faulty),
      ...internals({ pollMs: 50, leaseMs: 1_000 }),
    })
    quietWarnings()
    faulty.faults.add({ on: 'finishLanes', kind: 'unavailable' })
    const before = callsOf(marketplace)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is told', () => before.length === 1)
    await marketplace.close()
    platform.paymentIssue(uid)
    const later = openMarketplace(platform, { store, ...internals({ pollMs: 50, leaseMs: 1_000 }) })
    expect(await later.businesses.refresh(B1)).toMatchObject({ entitled: false })
    const calls = callsOf(later)
    await until('both flips are done', async () => (await doneOf(later)) === 2)
    // The lane may have ended the process, so its first entry is handled alone.
    expect(itemsOf(calls)).toEqual([
      [[], []],
      [[OUR_ITEM], []],
    ])
  })

  it('knows nothing of a business that was erased, and nothing is left of it', async () => {
    const { platform, marketplace } = await scene()
    const calls = callsOf(marketplace)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it has succeeded', async () => (await doneOf(marketplace)) === 1)
    await marketplace.businesses.erase(B1, { actor: 'ada' })
    expect(await entriesOf(marketplace)).toEqual([])
    await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: B1 })
    await until('it is told as new', () => calls.length === 2)
    expect(itemsOf(calls).at(-1)).toEqual([[], [OUR_ITEM]])
  })

  it.each(['when its claim is written', 'while its payload is made'])(
    'is not called with data that was erased %s',
    async (when) => {
      const own = storeFor(await engine.freshAddress(), systemClock)
      let erase: (() => Promise<unknown>) | undefined
      async function eraseOnce() {
        const erasing = erase
        erase = undefined
        await erasing?.()
      }
      const { platform, marketplace } = await createScene({
        store: storeOption({
          ...own,
          async claimLanes(options) {
            const claims = await own.claimLanes(options)
            if (claims.length > 0 && when === 'when its claim is written') await eraseOnce()
            return claims
          },
          async subscriptionsOf(businessUid) {
            const subscriptions = await own.subscriptionsOf(businessUid)
            if (when === 'while its payload is made') await eraseOnce()
            return subscriptions
          },
        }),
        ...QUICK,
      })
      await buy(platform, marketplace)
      erase = () => marketplace.businesses.erase(B1, { actor: 'ada' })
      const calls = callsOf(marketplace)
      await until('it is erased', () => erase === undefined)
      await until('nothing is left', async () => (await entriesOf(marketplace)).length === 0)
      platform.purchase({ business_uid: 'business-two', payment: 'succeeded' })
      await until('another purchase is told', () => calls.length > 0)
      expect(calls.map(({ business_uid }) => business_uid)).toEqual(['business-two'])
    },
  )

  it('hears of new data after an erasure during its call, and of nothing that was erased', async () => {
    const { platform, marketplace } = await scene(internals({ pollMs: 50, leaseMs: 1_000 }))
    const held = gate()
    onCleanUp(() => held.open())
    const calls = callsOf(marketplace, () => (calls.length === 1 ? held.opened : undefined))
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is told', () => calls.length === 1)
    platform.paymentIssue(uid)
    await until('the business is denied', async () => !(await marketplace.isEntitled(B1)))
    await marketplace.businesses.erase(B1, { actor: 'ada' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the new purchase is read', () => marketplace.isEntitled(B1))
    held.open()
    await until('it is told', async () => (await doneOf(marketplace)) === 1)
    expect(itemsOf(calls)).toEqual([
      [[], [OUR_ITEM]],
      [[], [OUR_ITEM]],
    ])
  })

  it('says what was last read while the answer is not known', async () => {
    const rule = { isBroken: false }
    const { platform, marketplace } = await scene({
      entitledWhen({ purchase_state }) {
        if (rule.isBroken) throw new Error('a mistake')
        return purchase_state === 'purchased'
      },
    })
    quietWarnings()
    await buy(platform, marketplace)
    rule.isBroken = true
    const calls = callsOf(marketplace)
    await until('it is told', () => calls.length === 1)
    expect(calls).toMatchObject([
      { entitled: true, entitledItems: [OUR_ITEM], reason: 'entitled_when_failed', accessUntil: null },
    ])
  })

  it('hears of an end although somebody announces subscriptions that do not exist', async () => {
    const { platform, marketplace, deliver } = await scene()
    const calls = callsOf(marketplace)
    const { uid } = await buy(platform, marketplace)
    const forged = { subscription_uid: 'forged', business_id: B1, purchasable_uid: OUR_ITEM }
    await deliver(sampleDelivery('purchasable_subscription/update', forged))
    platform.paymentIssue(uid)
    await until('the end is told', () => calls.length === 2)
    expect(calls.at(-1)).toMatchObject({ entitled: false, entitledItems: [] })
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'not_read_yet', known: false })
  })

  it('is called in one of two processes, one call after the other for a business', async () => {
    const { platform, marketplace, store } = await scene()
    const calls: EntitlementChange[] = []
    let running = 0
    let most = 0
    const other = openMarketplace(platform, { store, ...QUICK })
    for (const each of [marketplace, other])
      each.onEntitlementChange(async (change) => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 30))
        running--
        calls.push(change)
      })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    for (let flips = 1; flips < 8; flips++) {
      await until('it is told', () => calls.length === flips)
      platform[flips % 2 === 1 ? 'paymentIssue' : 'confirmPayment'](uid)
    }
    await until('all flips are done', async () => (await doneOf(marketplace)) === 8)
    expect(most).toBe(1)
    expect(itemsOf(calls)).toEqual(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? [[], [OUR_ITEM]] : [[OUR_ITEM], []])),
    )
  })

  describe('when the answer of entitledWhen ends', () => {
    it.each(['answers', 'is down'])(
      'is called within seconds, while the platform %s',
      async (platformDoes) => {
        const end = { at: Number.POSITIVE_INFINITY }
        const { platform, marketplace } = await scene({
          entitledWhen: ({ purchase_state }) =>
            purchase_state === 'purchased' && {
              entitled: true,
              until: end.at < Number.POSITIVE_INFINITY ? end.at : null,
            },
        })
        const calls = callsOf(marketplace)
        end.at = Date.now() + 3_000
        const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
        await until('the purchase is told', () => calls.length === 1)
        expect(calls[0]).toMatchObject({ entitled: true, accessUntil: new Date(end.at).toISOString() })
        if (platformDoes === 'is down') platform.faults.add({ on: 'read', kind: 'status', status: 503 })
        await until('the end is told', () => calls.length === 2)
        expect(Date.now() - end.at).toBeLessThan(10_000)
        expect(calls[1]).toMatchObject({ entitled: false, entitledItems: [], previousItems: [OUR_ITEM] })
        expect(calls[1]).toMatchObject({ reason: 'denied_by_rule', accessUntil: null })
        expect(await stateOf(marketplace, uid)).toBe('purchased')
      },
    )

    it.each([
      ['the renewed one', 0, 40],
      ['the other one', 40, 0],
    ])(
      'says which item is left of two with the same end, when %s is read first',
      async (_, renewedAfter, otherAfter) => {
        const { platform, marketplace } = await scene({ ...BOTH_ITEMS, entitledWhen: untilExpiration })
        const calls = callsOf(marketplace)
        const purchase = (purchasable_uid: string) =>
          platform.purchase({ business_uid: B1, payment: 'succeeded', purchasable_uid })
        const [renewed, other] = [purchase(OUR_ITEM), purchase(OTHER_ITEM)]
        await until('both are read', async () => (await doneOf(marketplace)) === 2)
        const before = calls.length
        const end = Date.now() + 3_000
        platform.set(renewed.uid, { expiration_date: iso(end + renewedAfter) })
        platform.set(other.uid, { expiration_date: iso(end + otherAfter) })
        await marketplace.businesses.refresh(B1)
        await until('both ends are known', async () => (await marketplace.explain(B1)).accessUntil !== null)
        platform.set(renewed.uid, { expiration_date: iso(end + HOUR) })
        await until('the end is told', () => calls.length > before)
        await until('the renewal is read', () => marketplace.isEntitled(B1, { purchasableUid: OUR_ITEM }))
        await marketplace.settled()
        expect(itemsOf(calls.slice(before))).toEqual([[[OUR_ITEM, OTHER_ITEM].sort(), [OUR_ITEM]]])
        expect(calls.map(({ entitled }) => entitled)).toEqual(calls.map(() => true))
      },
    )

    it.each([
      ['a renewal', HOUR, [true, true]],
      ['no renewal', 0, [true, true, false]],
    ])(
      'says the last word after a call between the end and a read that shows %s',
      async (_, renewedBy, expected) => {
        const { platform, marketplace } = await scene({ entitledWhen: untilExpiration })
        const calls = callsOf(marketplace)
        const { uid } = await buy(platform, marketplace)
        await until('the purchase is told', async () => (await doneOf(marketplace)) === 1)
        const end = Date.now() + 2_000
        platform.set(uid, { expiration_date: iso(end) })
        await marketplace.businesses.refresh(B1)
        platform.set(uid, { expiration_date: iso(end + renewedBy) })
        const slow = platform.faults.add({ on: 'read', kind: 'slow', ms: 1_200, times: 1 })
        await until('it has ended by the clock', async () => !(await marketplace.isEntitled(B1)))
        await marketplace.journal.replay(String(calls[0]?.id))
        await until('it is told meanwhile', () => calls.length === 2)
        expect(await marketplace.isEntitled(B1)).toBe(false)
        expect(calls[1]).toMatchObject({ entitled: true, reason: 'denied_by_rule', accessUntil: null })
        await until('the end is read', () => slow.strikes === 1 && calls.length === expected.length)
        await until('the answer is that', async () => (await marketplace.isEntitled(B1)) === expected.at(-1))
        await marketplace.settled()
        expect(calls.map(({ entitled }) => entitled)).toEqual(expected)
      },
    )
  })
})

/** A rule by which access ends at the date that the platform shows. */
const untilExpiration: EntitledWhen = ({ purchase_state, expiration_date }) =>
  purchase_state === 'purchased' && { entitled: true, until: expiration_date as string | null }

const iso = (at: number) => new Date(at).toISOString()

type Context = { attempt: number; signal: AbortSignal }

/** The calls of a handler, which then does `more`. */
function callsOf(
  marketplace: Marketplace,
  more: (context: Context) => unknown = () => {},
): EntitlementChange[] {
  const calls: EntitlementChange[] = []
  marketplace.onEntitlementChange((change, context) => {
    calls.push(change)
    return more(context)
  })
  return calls
}

/** The items before and after of each call. */
function itemsOf(calls: readonly EntitlementChange[]) {
  return calls.map(({ previousItems, entitledItems }) => [previousItems, entitledItems])
}

/** The entries of entitlements, newest first. */
async function entriesOf(marketplace: Marketplace) {
  return marketplace.journal.list({ kind: 'entitlement' })
}

async function doneOf(marketplace: Marketplace): Promise<number> {
  return (await entriesOf(marketplace)).filter(({ status }) => status === 'done').length
}

async function stateOf(marketplace: Marketplace, uid: string) {
  return (await marketplace.subscriptions.get(uid))?.purchase_state
}
