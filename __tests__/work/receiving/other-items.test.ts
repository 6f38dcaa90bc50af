import { describe, expect, it } from '@jest/globals'
import { createClassifier } from '../../../lib/events/classify.js'
import { createRegistry } from '../../../lib/events/registry.js'
import type { Marketplace } from '../../../lib/index.js'
import { subscriptionPages } from '../../../lib/operations/journal/pages.js'
import { createIntake } from '../../../lib/work/receiving/intake.js'
import type { NamedItem } from '../../../lib/work/receiving/requested-reads.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene, newFile, openMarketplace, startPlatform } from '../../support/scene.js'
import { track } from '../../support/scenes/purchases.js'
import { until } from '../../support/until.js'

const WORKERS = [
  ['with a worker', true],
  ['without a worker', false],
] as const
const DAY = 24 * 60 * 60 * 1_000

describe('notices for other items', () => {
  it('J32 degrade the health, with a problem that names their item and app.purchasableUid, until a notice for the own item arrives', async () => {
    const { accept, intake, noted } = setUp(['mine', 'mine-too'])
    expect(messagesOf(intake)).toEqual([])
    await accept('create', 'theirs')
    expect(messagesOf(intake)).toEqual([
      'the last notice was for another item ("theirs") and none for app.purchasableUid ("mine", "mine-too"): businesses that bought another item are denied',
    ])
    await accept('update', 'another "one"')
    await accept('update', null)
    await accept('updated', 'mine')
    expect(messagesOf(intake)[0]).toMatch(
      /^the last 2 notices were for another item \("theirs", "another \\"one\\""\) /,
    )
    await accept('update', 'mine-too')
    expect(messagesOf(intake)).toEqual([])
    expect(noted).toEqual(['other', 'other', 'none', 'own'])
  })

  it('J32 do not degrade health beside notices for the own item, unless a day passes with ten of them and no own one', async () => {
    const { accept, intake, jump } = setUp(['mine'])
    await accept('create', 'mine')
    for (let i = 0; i < 9; i++) await accept('update', 'theirs')
    jump(DAY)
    expect(messagesOf(intake)).toEqual([])
    await accept('update', 'theirs')
    expect(messagesOf(intake)).toHaveLength(1)
    await accept('update', 'mine')
    for (let i = 0; i < 50; i++) await accept('update', 'theirs')
    jump(DAY - 60_000)
    expect(messagesOf(intake)).toEqual([])
    jump(60_000)
    expect(messagesOf(intake)).toHaveLength(1)
  })

  it('J32 count only once they are on disk, and only a few of them are listed', async () => {
    const { accept, intake, noted, fail } = setUp(['mine'])
    fail(new Error('disk full'))
    await expect(accept('update', 'theirs')).rejects.toThrow('disk full')
    expect([noted, messagesOf(intake)]).toEqual([[], []])
    fail(undefined)
    for (let i = 0; i < 1_000; i++) await accept('update', `theirs-${i}`)
    expect(messagesOf(intake)[0]).toMatch(/^the last 1000 notices were .*"theirs-0".*"theirs-4"\)/)
    expect(messagesOf(intake)[0]).not.toContain('theirs-5')
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
  it('J34 degrade the health as long as none is for the own item', async () => {
    const { accept, intake } = setUp(['mine', 'mine-too'])
    intake.otherItems.noteKnown([null])
    expect(messagesOf(intake)).toEqual([])
    intake.otherItems.noteKnown(['theirs', null, 'theirs'])
    intake.otherItems.noteKnown(['others'])
    expect(messagesOf(intake)).toEqual([
      'the known subscriptions are for another item ("theirs", "others") and none for app.purchasableUid ("mine", "mine-too"): businesses that bought another item are denied',
    ])
    for (let i = 0; i < 10; i++) intake.otherItems.noteKnown([`theirs-${i}`])
    expect(messagesOf(intake)[0]).toContain('("theirs", "others", "theirs-0", "theirs-1", "theirs-2")')
    intake.otherItems.noteKnown(['theirs', 'mine-too'])
    intake.otherItems.noteKnown(['theirs'])
    expect(messagesOf(intake)).toEqual([])
    // The same holds after a notice for the own item.
    await accept('update', 'theirs')
    expect(messagesOf(intake)).toEqual([])
  })

  it('J34 are no problem after a notice for the own item, and none without app.purchasableUid', async () => {
    const { accept, intake } = setUp(['mine'])
    intake.otherItems.noteKnown(['theirs'])
    await accept('create', 'mine')
    intake.otherItems.noteKnown(['theirs'])
    expect(messagesOf(intake)).toEqual([])
    const any = setUp([]).intake
    any.otherItems.noteKnown(['theirs'])
    expect(messagesOf(any)).toEqual([])
  })

  it('A230 J34 are not those of stored subscriptions that were never read: anybody can have made them up', async () => {
    const { intake } = setUp(['mine'])
    const lookAt = (record: object | null) =>
      intake.otherItems.lookAt(pagesOf([{ subscriptionUid: 's1', record, purchasableUid: 'theirs' }]))
    await lookAt(null)
    expect(messagesOf(intake)).toEqual([])
    await lookAt({})
    expect(messagesOf(intake)).toHaveLength(1)
  })

  it('J34 are no problem if one for the own item is stored behind many old ones', async () => {
    const { intake } = setUp(['mine'])
    const all = Array.from({ length: 1_000 }, (_, at) => ({
      subscriptionUid: String(10_000 + at),
      record: {},
      purchasableUid: at < 990 ? 'theirs' : 'mine',
    }))
    await intake.otherItems.lookAt(pagesOf(all))
    expect(messagesOf(intake)).toEqual([])
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

function setUp(purchasableUids: string[]) {
  const noted: NamedItem[] = []
  let failure: Error | undefined
  const { clock, jump } = jumpingClock()
  const intake = createIntake({
    classify: createClassifier(createRegistry()),
    store: {
      async accept() {
        if (failure) throw failure
        return []
      },
    },
    purchasableUids,
    codeNames: [],
    isAccess: () => undefined,
    clock,
    onAccepted: (_event, item) => item && noted.push(item),
  })

  async function accept(event: string, item: unknown) {
    const event_type = event.startsWith('create') ? 'created' : 'update'
    const data =
      event === 'updated' || event === 'create with a record'
        ? { uid: 's1', business_uid: 'b1', purchasable_uid: item }
        : { subscription_uid: 's1', business_id: 'b1', purchasable_uid: item }
    await intake.accept([
      { value: { entity_name: 'purchasable_subscription', event_type, data }, text: null },
    ])
  }

  return {
    accept,
    intake,
    noted,
    jump,
    fail(error: Error | undefined) {
      failure = error
    },
  }
}

function messagesOf(intake: Pick<ReturnType<typeof createIntake>, 'problems'>): string[] {
  return intake.problems().map(({ message }) => message)
}

/** Stored subscriptions, in pages. */
function pagesOf(all: readonly { subscriptionUid: string; record: object | null; purchasableUid: string }[]) {
  const listSubscriptions = async ({ after = '', limit }: { after?: string; limit: number }) =>
    all.filter(({ subscriptionUid }) => subscriptionUid > after).slice(0, limit)
  return subscriptionPages({ listSubscriptions } as never, {}, 100)
}
