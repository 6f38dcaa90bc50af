import { describe, expect, it } from '@jest/globals'
import { DAY, MINUTE } from '../../../lib/base/clock.js'
import type { EventName, HandlerFailure, Marketplace } from '../../../lib/index.js'
import { sampleDelivery } from '../../../lib/testing/index.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { codesOf, createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('handlers that come late, on %s', (name) => {
  const engine = useEngine(name)

  it('H60 a handler that is registered five minutes after the start gets every event since the start, once and in order', async () => {
    const address = await engine.freshAddress()
    const { clock, jump } = jumpingClock()
    const scene = await createScene({ store: address, clock })
    const before = await delivered(scene, 3)
    await until('the events are unhandled', async () => (await unhandled(scene.marketplace)).length === 3)
    jump(5 * MINUTE)
    if (name === 'PostgreSQL') await age(address, 5 * MINUTE)
    const seen: string[] = []
    scene.marketplace.on('application/installed', ({ id }) => void seen.push(id))
    const after = await delivered(scene, 2)
    await until('all are handled', () => seen.length === 5)
    expect(seen).toEqual([...before, ...after])
    const again: string[] = []
    scene.marketplace.on('application/installed', ({ id }) => void again.push(id))
    const [last] = await delivered(scene, 1)
    await until('the next event is handled', () => again.length > 0)
    expect(again).toEqual([last])
    expect(seen).toHaveLength(6)
  })

  it('H60 the first worker ends before its handlers are registered: those of the next one get its events', async () => {
    const address = await engine.freshAddress()
    const scene = await createScene({ store: address })
    const [waiting] = await delivered(scene, 1)
    await until('the event is unhandled', async () => (await unhandled(scene.marketplace)).length === 1)
    await scene.marketplace.close()
    await age(address, 2 * MINUTE)
    const next = openMarketplace(scene.platform, { store: address })
    await next.start()
    await next.settled()
    const seen: string[] = []
    next.on('application/installed', ({ id }) => void seen.push(id))
    await until('the event is handled', () => seen.length > 0)
    expect(seen).toEqual([waiting])
  })

  it('H61 a new handler does not get the history from before its process', async () => {
    const address = await engine.freshAddress()
    const { clock, jump } = jumpingClock()
    const scene = await createScene({ store: address, clock })
    const [old] = await delivered(scene, 1)
    await until('the event is unhandled', async () => (await unhandled(scene.marketplace)).length === 1)
    jump(MINUTE)
    scene.marketplace.on('application/uninstalled', () => {})
    await scene.marketplace.settled()
    await scene.marketplace.close()
    await age(address, 2 * MINUTE)
    const next = openMarketplace(scene.platform, { store: address })
    const seen: string[] = []
    next.on('application/installed', ({ id }) => void seen.push(id))
    await next.start()
    await next.settled()
    expect(await unhandled(next)).toEqual([old])
    await next.journal.replay(String(old))
    await until('the replay is handled', () => seen.length === 1)
  })

  it('H62 changes that nobody has ever handled are history: unhandled, not dead, and health is ok', async () => {
    const address = await engine.freshAddress()
    const platform = await startPlatform()
    const asking = openMarketplace(platform, { store: address })
    const old = await bought(asking, platform, 'b1')
    await asking.close()
    await age(address, 91 * DAY)
    const next = openMarketplace(platform, { store: address })
    const dead: HandlerFailure[] = []
    next.onHandlerError((failure) => void (failure.retryInMs === null && dead.push(failure)))
    await until('the change has ended', async () => (await changes(next, 'unhandled')).length === 1)
    const recent = await bought(next, platform, 'b2')
    expect(await next.health()).toMatchObject({
      status: 'ok',
      problems: [],
      counts: { dead: 0, pending: 1, oldestPendingMs: null },
    })
    expect(await next.businesses.history('b1')).toContainEqual(
      expect.objectContaining({ entryId: old, kind: 'handled', outcome: 'unhandled' }),
    )
    // The first handler gets what waits, and the rest by a replay.
    const seen: string[] = []
    next.onPurchaseChange(({ id }) => void seen.push(id))
    await until('the recent change is handled', () => seen.length === 1)
    expect(seen).toEqual([recent])
    await next.journal.replay(old)
    await until('the replay is handled', () => seen.length === 2)
    expect(dead).toEqual([])
  })

  it.each(['onPurchaseChange', 'on', 'onAny'] as const)(
    'H75 a deployment without the handler of %s is reported after ten minutes, for a week, until it is back',
    async (kind) => {
      const address = await engine.freshAddress()
      const first = await createScene({ store: address })
      const seen: string[] = []
      const handle = ({ id }: { id: string }) => void seen.push(id)
      const register = (marketplace: Marketplace) =>
        kind === 'onPurchaseChange'
          ? marketplace.onPurchaseChange(handle)
          : kind === 'on'
            ? marketplace.on('application/installed', handle)
            : marketplace.onAny(handle)
      register(first.marketplace)
      await first.marketplace.start()
      if (kind === 'onPurchaseChange') await bought(first.marketplace, first.platform, 'b1')
      else await delivered(first, 1)
      await until('the topics are known', () => seen.length > 0)
      await first.marketplace.settled()
      await first.marketplace.close()
      seen.length = 0
      await age(address, 4 * MINUTE)
      const { clock, jump } = jumpingClock()
      const pass = async (ms: number) => {
        jump(ms)
        if (name === 'PostgreSQL') await age(address, ms)
      }
      const second = await createScene({ store: address, adoptStore: true, clock })
      second.marketplace.on('application/uninstalled', () => {})
      await second.marketplace.start()
      // A process names its topics every 30 s, and when a handler is added. Then it also sets events aside.
      const look = async (event: EventName) => {
        second.marketplace.on(event, () => {})
        await second.marketplace.settled()
      }
      const id =
        kind === 'onPurchaseChange'
          ? await bought(second.marketplace, second.platform, `b${Math.random()}`)
          : String((await delivered(second, 1))[0])
      await look('purchasable_subscription/update')
      const status = kind === 'onPurchaseChange' ? 'pending' : 'unhandled'
      await until(
        'it has no handler',
        async () => (await second.marketplace.journal.get(id))?.status === status,
      )
      await until('health is ok', async () => (await codesOf(second.marketplace)).length === 0)
      await pass(11 * MINUTE)
      await look('purchasable_subscription/create')
      const problemsOf = async () => (await second.marketplace.health()).problems
      await until('health says it', async () => (await problemsOf())[0]?.code === 'handlers_missing')
      expect(await problemsOf()).toMatchObject([
        {
          message: expect.stringMatching(/has waited for 1[1-2] min$/),
          // What waits becomes dead without one (H63).
          next: expect.stringContaining('If you removed it on purpose, register an empty one'),
        },
      ])
      await pass(7 * DAY - 14 * MINUTE)
      expect(await codesOf(second.marketplace)).not.toContain('handlers_missing')
      await second.marketplace.close()
      const third = openMarketplace(second.platform, { store: address, adoptStore: true, clock })
      register(third)
      await until('what waited is handled', () => seen.includes(id))
    },
    60_000,
  )

  it.each(['changes', 'events'] as const)(
    'H63 %s that a process once handled become dead and are reported, even months after the last handler',
    async (kind) => {
      const address = await engine.freshAddress()
      const first = await createScene({ store: address })
      first.marketplace.onPurchaseChange(() => {})
      first.marketplace.on('application/installed', () => {})
      await first.marketplace.start()
      const [handled] = await delivered(first, 1)
      const isDone = async () => (await first.marketplace.journal.get(String(handled)))?.status === 'done'
      await until('the topics are known', isDone)
      await first.marketplace.close()
      await age(address, 60 * DAY)
      const second = await createScene({ store: address, adoptStore: true })
      await second.marketplace.start()
      // Entries that came before the topic was missing are pending until the next look of the process.
      const id = await until('one waits', async () => {
        const found =
          kind === 'changes'
            ? await bought(second.marketplace, second.platform, 'b1')
            : String((await delivered(second, 1))[0])
        return (await second.marketplace.journal.get(found))?.status !== 'done' && found
      })
      await second.marketplace.close()
      await age(address, 91 * DAY)
      const third = openMarketplace(second.platform, { store: address, adoptStore: true })
      const dead: HandlerFailure[] = []
      third.onHandlerError((failure) => void (failure.retryInMs === null && dead.push(failure)))
      await until('it is dead', async () => (await third.journal.get(id))?.status === 'dead')
      expect(dead.map((entry) => entry.id)).toContain(id)
      const { problems } = await third.health()
      expect(problems.find(({ code }) => code === 'entries_dead')?.next).toContain('register the missing one')
      const seen: string[] = []
      if (kind === 'changes') third.onPurchaseChange((change) => void seen.push(change.id))
      else third.on('application/installed', (event) => void seen.push(event.id))
      await third.journal.replay(id)
      await until('the replay is handled', () => seen.includes(id))
    },
    60_000,
  )
})

async function delivered({ deliver }: Awaited<ReturnType<typeof createScene>>, count: number) {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push((await deliver(sampleDelivery('application/installed'))).id)
  return ids
}

/** Buys, and returns the id of the change. */
async function bought(marketplace: Marketplace, platform: { purchase: Purchase }, business_uid: string) {
  const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
  await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: business_uid })
  const [change] = await until('the change is written', async () => {
    const found = await marketplace.journal.list({ kind: 'change', businessUid: business_uid })
    return found.length > 0 && found
  })
  return String(change?.id)
}

type Purchase = (of: { business_uid: string; payment: 'succeeded' }) => { uid: string }

const ids = (entries: readonly { id: string }[]) => entries.map(({ id }) => id)
const unhandled = async (of: Marketplace) => ids(await of.journal.list({ status: 'unhandled' }))
const changes = (of: Marketplace, status: 'unhandled') => of.journal.list({ kind: 'change', status })

/** Makes everything in the database as old as if this time had passed since. */
async function age(address: string, ms: number) {
  const { store, sql } = await openStoreWithSql(address)
  await sql(
    `update journal set received_at = received_at - ${ms}, settled_at = settled_at - ${ms}, due_at = due_at - ${ms}`,
  )
  await sql(`update lanes set due_at = due_at - ${ms} where lease_token is null`)
  await sql(`update handlers set seen_at = seen_at - ${ms}, rescued_at = rescued_at - ${ms}`)
  await store.close()
}
