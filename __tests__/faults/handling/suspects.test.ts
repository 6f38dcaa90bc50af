import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { noticeOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import type { ChildSettings } from '../../support/receiving/receiver-child.js'
import {
  childSettings,
  loadReceiver,
  type ReceiverProcess,
} from '../../support/receiving/receiver-process.js'
import { createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

const UPDATE = 'purchasable_subscription/update'
const SEVEN = ['b0', 'b1', 'b2', 'b3', 'b4', 'b5', 'b6']
const ALONE =
  'it was handled 5 times alone, and each time the process ended or froze before its handler returned'

describe.each(ENGINE_NAMES)('work that ends its process, on %s', (engineName) => {
  const engine = useEngine(engineName)

  it('G5, H64 two of seven changes, by a handler and by entitledWhen: the others are handled after their first try alone, and they become dead after five, with words that are true', async () => {
    const deadly = ['b0', 'b5']
    const { platform, address } = await lab()
    await changed(platform, address, SEVEN)
    const { deaths, seen } = await livesOf(
      childSettings(platform, address, { deadlyChanges: ['b0'], deadlyRule: ['b5'] }),
      address,
      haveEnded,
    )
    const others = SEVEN.filter((each) => !deadly.some((business) => business === each))
    // Once beside all others, and at most once alone before the innocent ones had their turn.
    expect(others.every((each) => seen[deadly.length + 2]?.get(each) === 'done')).toBe(true)
    expect(deaths).toBe(1 + 5 * deadly.length)
    const ends = await endsOf(address)
    for (const business of deadly)
      expect(ends.get(business)).toEqual([{ status: 'dead', attempts: 5, error: ALONE }])
    for (const business of others)
      expect(ends.get(business)).toEqual([{ status: 'done', attempts: 1, error: null }])
  }, 180_000)

  it('H65 the second entry of a lane: the first one and the other lanes are handled', async () => {
    const { platform, address } = await lab()
    const bought = await changed(platform, address, ['b0', 'b1'])
    await changed(platform, address, [], () => platform.paymentIssue(bought[0] as string))
    const { deaths } = await livesOf(
      childSettings(platform, address, { deadlyChanges: ['b0 suspended'] }),
      address,
      haveEnded,
    )
    const ends = await endsOf(address)
    expect(ends.get('b0')).toEqual([
      { status: 'done', attempts: 1, error: null },
      { status: 'dead', attempts: 5, error: ALONE },
    ])
    expect(ends.get('b1')).toEqual([{ status: 'done', attempts: 1, error: null }])
    // Before the first entry is written as done, the second may end the process once more.
    expect(deaths).toBeLessThanOrEqual(7)
  }, 120_000)

  it('H66 one of seven reads: the others are read after its first try alone; after five it is put off and reported', async () => {
    const { platform, address } = await lab()
    const asking = openMarketplace(platform, { store: address, worker: false })
    const uids: string[] = []
    for (const business_uid of SEVEN) {
      const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
      await asking.subscriptions.track({ subscriptionUid: uid, businessUid: business_uid })
      uids.push(uid)
    }
    await asking.close()
    const settings = childSettings(platform, address, { deadlyReads: [uids[3] as string] })
    const { deaths, receiver } = await livesOf(
      settings,
      address,
      async (alive) => {
        const { counts } = await alive.get<{ counts: { lapsed: number } }>('/health')
        return counts.lapsed === 1
      },
      async (alive) => {
        const decisions = await alive.get<{ entitled: boolean; reason: string }[]>(`/decisions?of=${SEVEN}`)
        expect(decisions.map(({ entitled }) => entitled)).toEqual(SEVEN.map((_, i) => i !== 3))
        const health = await alive.get<{ status: string; problems: { code: string }[] }>('/health')
        expect(health).toMatchObject({ status: 'degraded', counts: { refused: 0, givenUp: 0, lapsed: 1 } })
        expect(health.problems.map(({ code }) => code)).toContain('reads_end_process')
      },
    )
    expect(receiver).toBeDefined()
    expect(deaths).toBe(6)
  }, 120_000)

  it('H67 a handler may take an hour, and one hangs: a lane whose lease ran out is handled, and so is what comes after it', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const { marketplace, deliver } = await createScene({
      store: storeOption(store),
      handlers: { timeoutMs: HOUR },
      closeTimeoutMs: 10,
      ...internals({ leaseMs: 1_000 }),
    })
    const called: string[] = []
    const lapsing = gate()
    marketplace.on(UPDATE, ({ data }) => {
      called.push(data.subscription_uid)
      if (data.subscription_uid === 'hangs') return new Promise(() => {})
      return data.subscription_uid === 'lapses' ? lapsing.opened : undefined
    })
    await marketplace.start()
    for (const uid of ['hangs', 'lapses']) {
      await deliver(noticeOf(uid))
      await until('it is called', async () => called.includes(uid))
    }
    // As if another process had taken it over, and had ended.
    await sql("update lanes set lease_token = 'of another process', due_at = 1 where key like '%lapses'")
    lapsing.open()
    await until(
      'it is called again',
      async () => called.filter((each) => each === 'lapses').length === 2,
      10_000,
    )
    await deliver(noticeOf('later'))
    await until('it is called', async () => called.includes('later'), 10_000)
  }, 60_000)

  async function lab() {
    return { address: await engine.freshAddress(), platform: await startPlatform() }
  }
})

/** Lets these businesses buy, or `make` something else happen. Its changes wait for a handler. */
async function changed(
  platform: Awaited<ReturnType<typeof startPlatform>>,
  store: string,
  businesses: readonly string[],
  make = () => {},
) {
  const marketplace = openMarketplace(platform, { store })
  await marketplace.start()
  const before = (await marketplace.journal.list({ kind: 'change' })).length
  const uids: string[] = []
  for (const business_uid of businesses) {
    const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
    await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: business_uid })
    uids.push(uid)
  }
  make()
  if (businesses.length === 0) await marketplace.businesses.refresh('b0')
  const count = before + Math.max(1, businesses.length)
  await until(
    'the changes wait',
    async () => (await marketplace.journal.list({ kind: 'change', status: 'pending' })).length === count,
  )
  await marketplace.close()
  return uids
}

/** Starts one process after the other until `isOver` in one that lives. `seen`: the changes after so many deaths. */
async function livesOf(
  settings: ChildSettings,
  address: string,
  isOver: (receiver: ReceiverProcess) => Promise<boolean>,
  atEnd: (receiver: ReceiverProcess) => Promise<void> = async () => {},
) {
  const seen: Map<string, string>[] = []
  for (let deaths = 0; deaths < 20; deaths++) {
    const receiver = loadReceiver(settings)
    await receiver.begin().catch(() => {})
    let hasEnded = false
    receiver.ended.then(() => {
      hasEnded = true
    })
    await until(
      'the process ends, or the work is over',
      async () => hasEnded || (await isOver(receiver).catch(() => false)),
      60_000,
    )
    if (!hasEnded) {
      await atEnd(receiver)
      receiver.signal('SIGTERM')
      await receiver.ended
      return { deaths, seen, receiver }
    }
    const ends = await endsOf(address)
    seen[deaths + 1] = new Map([...ends].map(([business, [end]]) => [business, String(end?.status)]))
  }
  throw new Error('it ends every process')
}

async function haveEnded(receiver: ReceiverProcess) {
  const entries = await receiver.get<{ kind: string; status: string }[]>('/journal')
  return entries.every(({ kind, status }) => kind !== 'change' || status === 'done' || status === 'dead')
}

/** How the changes of each business have ended, in order. */
async function endsOf(address: string) {
  const { store, sql } = await openStoreWithSql(address)
  const rows = await sql<{ business_uid: string; status: string; attempts: number; error: string | null }>(
    `select business_uid, status, attempts, error from journal where kind = 'change' order by seq`,
  )
  await store.close()
  const ends = new Map<string, Omit<(typeof rows)[0], 'business_uid'>[]>()
  for (const { business_uid, ...end } of rows)
    ends.set(business_uid, [...(ends.get(business_uid) ?? []), end])
  return ends
}
