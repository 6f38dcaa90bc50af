import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, systemClock } from '../../../lib/base/clock.js'
import { messageOf } from '../../../lib/base/errors.js'
import type { HandlerFailure, Marketplace, PurchaseChange } from '../../../lib/index.js'
import { storeFor } from '../../../lib/store-option.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { withStoreFaults } from '../../support/engines/store-faults.js'
import { storeOption, wrapStore } from '../../support/engines/store-option.js'
import { internals } from '../../support/internals.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { quietWarnings } from '../../support/output.js'
import { createScene, newFile, OUR_ITEM, openMarketplace } from '../../support/scene.js'
import { consoleCaller, mountConsole } from '../../support/scenes/console.js'
import { buy } from '../../support/scenes/purchases.js'
import { B1 } from '../../support/settings.js'
import { gate, until } from '../../support/until.js'

const QUICK = { handlers: { retryDelaysMs: [50, 50, 50] }, ...internals({ pollMs: 50 }) }

describe.each(ENGINE_NAMES)('H70 a change says whether the business may use the app now, on %s', (name) => {
  const engine = useEngine(name)

  it('H70 at a retry, and in the change that came while the handler ran', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store, ...QUICK })
    const { handled, first, meanwhile } = failsOnce(marketplace)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await first.opened
    platform.paymentIssue(uid)
    await until('the business is denied', async () => !(await marketplace.isEntitled(B1)))
    meanwhile.open()
    await until('both changes are handled', () => handled.length === 3)
    expect(handled).toEqual([
      ['purchased', true],
      ['purchased', false],
      ['suspended', false],
    ])
  })

  it('H70 after a backlog, for a handler that was added late, and after a restart', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    const { uid } = await buy(platform, marketplace)
    platform.paymentIssue(uid)
    await until('the business is denied', async () => !(await marketplace.isEntitled(B1)))
    platform.confirmPayment(uid)
    await until('the business has access', () => marketplace.isEntitled(B1))
    await until('three changes wait', async () => (await waiting(marketplace)) === 3)
    await marketplace.close()
    const later = openMarketplace(platform, { store })
    const handled = handledBy(later)
    await until('all changes are handled', () => handled.length === 3)
    expect(handled).toEqual([
      ['purchased', true],
      ['suspended', true],
      ['purchased', true],
    ])
  })

  it('H70 at a replay, also if another subscription of the business still gives access', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    const handled = handledBy(marketplace)
    const { uid } = await buy(platform, marketplace)
    const second = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('both are handled', () => handled.length === 2)
    platform.paymentIssue(uid)
    await until('the change is handled', () => handled.length === 3)
    expect(handled.at(-1)).toEqual(['suspended', true])
    platform.paymentIssue(second.uid)
    await until('the change is handled', () => handled.length === 4)
    expect(handled.at(-1)).toEqual(['suspended', false])
    await until('none is being handled', async () => (await waiting(marketplace)) === 0)

    const changes = await marketplace.journal.list({ kind: 'change' })
    expect(changes.map(({ payload }) => Object.keys(payload as object))).not.toContainEqual(
      expect.arrayContaining(['entitled']),
    )
    handled.length = 0
    for (const { id } of changes) await marketplace.journal.replay(id)
    await until('all are handled again', () => handled.length === 4)
    expect(handled.map(([, entitled]) => entitled)).toEqual([false, false, false, false])
  })
})

describe.each(ENGINE_NAMES)(
  'H74 two subscriptions of a business change at about the same time, on %s',
  (name) => {
    const engine = useEngine(name)

    it('H74 the handler that ends last writes what is true, also with two instances', async () => {
      const store = await engine.freshAddress()
      const { platform, marketplace } = await createScene({ store, ...QUICK })
      const { uid } = await buy(platform, marketplace)
      const open = new Map<string, boolean>()
      const called: string[] = []
      const held = gate()
      const other = openMarketplace(platform, { store, ...QUICK })
      for (const each of [marketplace, other])
        each.onPurchaseChange(async ({ business_uid, to, entitled }) => {
          called.push(String(to))
          if (to === 'suspended') await held.opened
          open.set(business_uid, entitled)
        })
      platform.paymentIssue(uid)
      await until('the first change is being handled', () => called.includes('suspended'))
      platform.purchase({ business_uid: B1, payment: 'succeeded' })
      await until('the business has access again', () => marketplace.isEntitled(B1))
      await new Promise((resolve) => setTimeout(resolve, 300))
      held.open()
      await until('all changes are handled', async () => (await marketplace.health()).counts?.pending === 0)
      expect(called).toEqual(['purchased', 'suspended', 'purchased'])
      expect(open.get(B1)).toBe(true)
    })
  },
)

describe('H70 a change of a subscription that moved to another business', () => {
  it('H70 says for each business whether it may use the app now', async () => {
    const { platform, marketplace } = await createScene()
    const { uid } = await buy(platform, marketplace)
    platform.addBusiness('business-two')
    platform.set(uid, { business_uid: 'business-two' })
    await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: 'business-two' })
    await until('the other business has access', () => marketplace.isEntitled('business-two'))
    const changes: unknown[] = []
    marketplace.onPurchaseChange(({ business_uid, gone, entitled }) =>
      changes.push([business_uid, gone, entitled]),
    )
    await until('all changes are handled', () => changes.length === 3)
    expect(changes.sort()).toEqual([
      [B1, null, false],
      [B1, 'moved', false],
      ['business-two', null, true],
    ])
  })
})

describe('H70 a business that was erased', () => {
  it('H70 is not reported as one with access, and its waiting changes are gone', async () => {
    const { platform, marketplace } = await createScene({ ...QUICK })
    const { handled, first, meanwhile } = failsOnce(marketplace)
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await first.opened
    await marketplace.businesses.erase(B1, { actor: 'ada' })
    meanwhile.open()
    platform.purchase({ business_uid: 'business-two', payment: 'succeeded' })
    await until('the change of another business is handled', () => handled.length >= 2)
    expect(handled).toEqual([
      ['purchased', true],
      ['purchased', true],
    ])
    expect(await marketplace.isEntitled(B1)).toBe(false)
  })
})

describe('H71 when the store cannot be read before a handler is called', () => {
  it('H71 the handler is not called with a guess: the change is put off, and is handled afterwards', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { platform, marketplace } = await createScene({
      store: storeOption(store),
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
    })
    const failures: HandlerFailure[] = []
    marketplace.onHandlerError((failure) => failures.push(failure))
    const handled = handledBy(marketplace)
    const fault = store.faults.add({ on: 'subscriptionsOf', kind: 'unavailable' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it was put off', async () => (await changeOf(marketplace))?.error)
    expect(await changeOf(marketplace)).toMatchObject({ status: 'pending', attempts: 0 })
    expect(handled).toEqual([])
    fault.remove()
    await until('the change is handled', () => handled.length > 0)
    expect(handled).toEqual([['purchased', true]])
    expect(failures).toEqual([])
  })

  it('H71 a store that hangs does not hold up the close', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { platform, marketplace } = await createScene({ store: storeOption(store) })
    const handled = handledBy(marketplace)
    store.faults.add({ on: 'subscriptionsOf', kind: 'hang' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the store is asked', () => store.faults.held > 0)
    await marketplace.close()
    expect(handled).toEqual([])
  })
})

describe.each(ENGINE_NAMES)('H73 when the answer is not known before a handler is called, on %s', (name) => {
  const engine = useEngine(name)

  it('H73 the change is put off without a try, and other businesses and health go on', async () => {
    const rule = { isBroken: true }
    const { platform, marketplace } = await createScene({
      store: await engine.freshAddress(),
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
      entitledWhen({ business_uid, purchase_state }) {
        if (rule.isBroken && business_uid === B1) throw new Error('a mistake')
        return purchase_state === 'purchased'
      },
    })
    quietWarnings()
    const failures: HandlerFailure[] = []
    marketplace.onHandlerError((failure) => failures.push(failure))
    const handled: [string, boolean][] = []
    marketplace.onPurchaseChange(({ business_uid, entitled }) => void handled.push([business_uid, entitled]))
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('it was put off', async () => (await changeOf(marketplace))?.error)
    platform.purchase({ business_uid: 'business-two', payment: 'succeeded' })
    await until('the change of the other business is done', async () => {
      return (await marketplace.journal.list({ kind: 'change', status: 'done' })).length === 1
    })
    const change = (await marketplace.journal.list({ kind: 'change' })).at(-1)
    expect(change).toMatchObject({ business_uid: B1, status: 'pending', attempts: 0 })
    expect(change?.error).toMatch(/^MarketplaceError: Cannot tell whether the business is entitled: /)
    const { problems, counts } = await marketplace.health()
    expect(problems.map(({ code }) => code)).toEqual(['entitled_when_failed'])
    expect(counts).toMatchObject({ pending: 1, retrying: 0, dead: 0 })
    rule.isBroken = false
    await until('the change is handled', () => handled.length === 2)
    expect(handled).toEqual([
      ['business-two', true],
      [B1, true],
    ])
    expect(failures).toEqual([])
    await until('it is done', async () => (await marketplace.health()).counts?.pending === 0)
    expect((await marketplace.journal.list({ kind: 'change' })).map(({ attempts }) => attempts)).toEqual([
      1, 1,
    ])
  })
})

describe('H73 a forged notice of a subscription', () => {
  it('H73 does not hold back the end of another one', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const handled = handledBy(marketplace)
    const { uid } = await buy(platform, marketplace)
    await until('the purchase is handled', () => handled.length === 1)
    const notice = { subscription_uid: 'forged', business_id: B1, purchasable_uid: OUR_ITEM }
    await deliver(sampleDelivery('purchasable_subscription/update', notice))
    platform.paymentIssue(uid)
    await until('the suspension is handled', () => handled.length === 2)
    expect(handled.at(-1)).toEqual(['suspended', false])
    expect(await marketplace.explain(B1)).toMatchObject({ reason: 'not_read_yet', known: false })
  })
})

describe('H73 after four days without a read', () => {
  it('H73 a change that waited for its retry says what the next read shows, not that the answer is old', async () => {
    const store = newFile()
    const { platform, marketplace, clock, jump } = await createScene({ store })
    const { first, meanwhile } = failsOnce(marketplace)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await first.opened
    meanwhile.open()
    await until('it is tried again', async () => (await marketplace.health()).counts?.retrying === 1)
    await marketplace.close()
    jump(4 * DAY)
    const read = gate()
    onCleanUp(() => read.open())
    const later = openMarketplace(platform, {
      store,
      clock,
      ...internals({ pollMs: 50 }),
      platform: {
        async fetch(address, init) {
          if (String(address).includes(uid)) await read.opened
          return fetch(address as string, init as RequestInit)
        },
      },
    })
    const handled = handledBy(later)
    await until('it was put off', async () => (await changeOf(later))?.error?.includes('for too long'))
    expect(handled).toEqual([])
    read.open()
    await until('it is handled', () => handled.length === 1)
    expect(handled).toEqual([['purchased', true]])
  })

  it('H73 a change whose answer is never known becomes dead when its retention ends, and is reported', async () => {
    quietWarnings()
    const { clock, jump } = jumpingClock()
    const { platform, marketplace } = await createScene({
      clock,
      ...internals({ pollMs: 50 }),
      retention: { changesMs: 3 * DAY },
      entitledWhen() {
        throw new Error('a mistake')
      },
    })
    const dead: unknown[] = []
    marketplace.onHandlerError(({ business_uid, attempt, error }) =>
      dead.push([business_uid, attempt, messageOf(error)]),
    )
    const handled = handledBy(marketplace)
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    const isPutOff = async () =>
      (await marketplace.businesses.history(B1)).some(
        ({ kind, at }) => kind === 'handled' && clock.now() - Date.parse(at) < HOUR,
      )
    await until('it was put off', isPutOff)
    jump(2 * DAY)
    await until('it was put off again', isPutOff)
    expect(dead).toEqual([])
    jump(DAY)
    await until('it is dead', () => dead.length === 1)
    expect(dead).toEqual([[B1, 0, expect.stringMatching(/entitledWhen fails/)]])
    expect(handled).toEqual([])
  })
})

describe('H70 a change that is committed while the answer is looked up', () => {
  it('H70 is part of the answer', async () => {
    const [looked, late] = [gate(), gate()]
    onCleanUp(() => late.open())
    let looks = 0
    const slow = wrapStore(storeFor('sqlite::memory:', systemClock), async (name, call) => {
      const result = await call()
      if (name !== 'subscriptionsOf' || ++looks > 1) return result
      looked.open()
      await late.opened
      return result
    })
    const { platform, marketplace } = await createScene({ store: storeOption(slow) })
    const handled = handledBy(marketplace)
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await looked.opened
    platform.paymentIssue(uid)
    await until(
      'it is suspended',
      async () => (await marketplace.subscriptions.get(uid))?.purchase_state === 'suspended',
    )
    late.open()
    await until('both changes are handled', () => handled.length === 2)
    expect(handled).toEqual([
      ['purchased', false],
      ['suspended', false],
    ])
  })
})

describe('H72 the preview of a replay', () => {
  it('H72 shows for a change the answer that its handler would get now', async () => {
    const { platform, marketplace, app, url } = await createScene()
    mountConsole(app, marketplace)
    const handled = handledBy(marketplace)
    const { uid } = await buy(platform, marketplace)
    await until('the change is handled', () => handled.length === 1)
    const [{ id } = { id: '' }] = await marketplace.journal.list({ kind: 'change' })
    const preview = async () => {
      const { body } = await consoleCaller(`${url}/ops`, 'operator').read('previewReplay', { entryId: id })
      return body.sample.map((row: { entitled: boolean | null }) => row.entitled)
    }
    expect(await preview()).toEqual([true])
    platform.paymentIssue(uid)
    await until('the business is denied', async () => !(await marketplace.isEntitled(B1)))
    expect(await preview()).toEqual([false])
    await until('both changes are handled', () => handled.length === 2)
    await until('none is being handled', async () => (await waiting(marketplace)) === 0)
    await marketplace.journal.replay(id)
    await until('it is handled again', () => handled.length === 3)
    expect(handled.at(-1)).toEqual(['purchased', false])
  })
})

/** `to` and `entitled` of each call of a handler. */
function handledBy(marketplace: Marketplace): [string | null, boolean][] {
  const handled: [string | null, boolean][] = []
  marketplace.onPurchaseChange(({ to, entitled }: PurchaseChange) => void handled.push([to, entitled]))
  return handled
}

/** A handler whose first call waits for `meanwhile`, and then fails. */
function failsOnce(marketplace: Marketplace) {
  const [first, meanwhile] = [gate(), gate()]
  onCleanUp(() => meanwhile.open())
  const handled: [string | null, boolean][] = []
  marketplace.onPurchaseChange(async ({ to, entitled }) => {
    handled.push([to, entitled])
    if (handled.length > 1) return
    first.open()
    await meanwhile.opened
    throw new Error('not yet')
  })
  return { handled, first, meanwhile }
}

/** The change, if there is one only. */
async function changeOf(marketplace: Marketplace) {
  const [change, ...others] = await marketplace.journal.list({ kind: 'change' })
  return others.length === 0 ? change : undefined
}

async function waiting(marketplace: Marketplace): Promise<number> {
  return (await marketplace.journal.list({ kind: 'change', status: 'pending' })).length
}
