import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../../lib/base/clock.js'
import { TABLES } from '../../../lib/postgres/rights.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { createScene, openMarketplace } from '../../support/scene.js'
import { gate, until } from '../../support/until.js'

const ENTRIES = 10_000
const ERASURE = { id: 'erasure', name: 'erase', businessUid: 'b1', payload: '{}' }

describe.each(ENGINE_NAMES)('erase on %s', (name) => {
  const engine = useEngine(name)

  it('leaves nothing of the business in any table, and its record under a hash', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    marketplace.onPurchaseChange(() => {})
    for (const business_uid of ['the-erased', 'the-other']) {
      platform.purchase({ business_uid, payment: 'succeeded', subscription_uid: `of-${business_uid}` })
      platform.install(business_uid)
    }
    await platform.settled()
    // A wrong track of another's subscription, and one of another business for its own.
    await marketplace.subscriptions.track({ subscriptionUid: 'of-the-other', businessUid: 'the-erased' })
    await marketplace.subscriptions.track({ subscriptionUid: 'of-the-erased', businessUid: 'the-other' })
    await until(
      'both purchases are read',
      async () => (await marketplace.isEntitled('the-erased')) && marketplace.isEntitled('the-other'),
    )
    await until(
      'every entry is handled',
      async () => (await marketplace.journal.list({ status: 'pending' })).length === 0,
    )

    const data = await marketplace.businesses.export('the-erased')
    expect(data.subscriptions).toMatchObject([
      { subscription_uid: 'of-the-erased', purchase_state: 'purchased' },
    ])
    expect(data.journal.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['event', 'change']))
    const { rows, erasedAt, auditUid } = await marketplace.businesses.erase('the-erased', { actor: 'ada' })
    expect(rows).toBeGreaterThanOrEqual(data.journal.length + 1)
    expect(await marketplace.isEntitled('the-erased')).toBe(false)
    expect(await marketplace.explain('the-erased')).toMatchObject({
      reason: 'unknown_business',
      subscriptions: [],
    })
    const after = await marketplace.businesses.export('the-erased')
    expect(after).toMatchObject({
      subscriptions: [],
      candidateOf: [],
      journal: [{ kind: 'action', business_uid: auditUid, receivedAt: erasedAt }],
    })
    expect(await marketplace.businesses.history('the-erased')).toMatchObject([
      { kind: 'action', action: 'erase', actor: 'ada', at: erasedAt },
    ])
    expect(await marketplace.isEntitled('the-other')).toBe(true)
    await marketplace.close()
    expect(await tracesOf('the-erased', store)).toEqual([])
    expect((await tracesOf('the-other', store)).length).toBeGreaterThan(2)
  })

  it('prevents a read under way from restoring anything; a later delivery counts as new', async () => {
    const store = await engine.freshAddress()
    const [shown, held] = [gate(), gate()]
    const { platform, marketplace } = await createScene({
      store,
      platform: {
        async fetch(address, init) {
          const reply = await fetch(address, init)
          if (!decodeURIComponent(String(address)).includes('[uid]=s1')) return reply
          shown.open()
          await held.opened
          return reply
        },
      },
      ...internals({ callTimeoutMs: 20_000 }),
    })
    platform.purchase({ business_uid: 'the-business', payment: 'succeeded', subscription_uid: 's1' })
    await platform.settled()
    await shown.opened
    await marketplace.businesses.erase('the-business')
    held.open()
    await marketplace.close()
    expect(await tracesOf('the-business', store)).toEqual([])

    const again = openMarketplace(platform, { store })
    await again.subscriptions.track({ subscriptionUid: 's1', businessUid: 'the-business' })
    await until('the subscription is known again', () => again.isEntitled('the-business'))
  })

  it('prevents a handler under way from finishing an entry, and passes no leased entry to a handler', async () => {
    const store = await engine.freshAddress()
    const [begun, held] = [gate(), gate()]
    const { platform, marketplace, deliver } = await createScene({ store })
    const called: string[] = []
    const install = { business_id: 'the-business', app_code_name: 'ours' }
    marketplace.onAny(async ({ id }) => {
      called.push(id)
      begun.open()
      await held.opened
    })
    await until('the business has access', async () => (await marketplace.health()).status === 'ok')
    await deliver(['first', 'second', 'third'].map((event_time) => installed({ ...install, event_time })))
    await begun.opened
    await marketplace.businesses.erase('the-business')
    held.open()
    await marketplace.close()
    expect(called).toHaveLength(1)
    const traces = await tracesOf('the-business', store)
    // The lane stays leased until the handler's lease would have ended.
    expect(traces.filter(([table]) => table !== 'lanes')).toEqual([])
    expect(platform.subscription('s1')).toBeUndefined()
  })

  it('K439 ends while made-up subscriptions of the business arrive, which are new data', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    await store.accept([eventOf('s1', 'b1'), eventOf('s2', 'b2'), eventOf('s2', 'b1')])
    let isOver = false
    let arrived = 0
    async function arrive() {
      while (!isOver) {
        const round = arrived++
        const others = Array.from({ length: 300 }, (_, i) => eventOf(`z ${round} ${i}`, 'b1'))
        await store.accept([eventOf(`z candidate ${round}`, 'b3'), ...others])
        await store.accept([eventOf(`z candidate ${round}`, 'b1'), eventOf('s1', 'b1')])
      }
    }
    const arriving = Promise.all([arrive(), arrive(), arrive()])
    await until('some have arrived', () => arrived > 3)
    const ended = store.erase('b1', ERASURE).then(() => true)
    const isEnded = await Promise.race([ended, delay(15_000, false)])
    isOver = true
    await Promise.all([arriving, ended])
    expect(isEnded).toBe(true)
    const rows = await sql<{ uid: string }>(`select subscription_uid as uid from subscriptions
      where 'b1' in (business_uid, candidate_business_uid)`)
    const uids = rows.map(({ uid }) => uid)
    for (const uid of ['s2', 'z 0 0', 'z candidate 0']) expect(uids).not.toContain(uid)
    expect(uids).toContain(`z ${arrived - 1} 0`)
  }, 60_000)

  it('K439 deletes what a clock that was set back later has dated ahead', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    await store.accept(Array.from({ length: 60 }, (_, i) => eventOf(`s${i}`, 'b1')))
    await sql(
      `update subscriptions set created_at = created_at + ${DAY}, unread = 0 where subscription_uid < 's3'`,
    )
    await store.erase('b1', ERASURE)
    expect(await store.listSubscriptions({ limit: 100 })).toEqual([])
    expect((await store.listEntries({})).map(({ id }) => id)).toEqual(['erasure'])
  })

  it('deletes 10,000 entries in small batches, and lets the event loop run in between', async () => {
    const { store, sql, queriesOf } = await openStoreWithSql(await engine.freshAddress())
    for (let first = 1; first < ENTRIES; first += ENTRIES / 10) {
      await sql(`insert into journal
        (id, kind, name, topic, key, business_uid, subscription_uid, payload, status, attempts, received_at, settled_at)
        with recursive numbers(n) as (select ${first} union all select n + 1 from numbers where n < ${first + ENTRIES / 10 - 1})
        select 'e' || n, 'event', 'x', 'event:x', 'k' || n, 'the-business', 's1', '{}', 'done', 1, n, n from numbers`)
    }
    await sql(`insert into journal
      (id, kind, name, topic, key, business_uid, payload, status, attempts, received_at)
      values ('other', 'event', 'x', 'event:x', 'k', 'b2', '{}', 'unhandled', 0, 1)`)
    let turns = 0
    let isOver = false
    const turn = () => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    turn()
    const record = { id: 'erasure', name: 'erase', businessUid: 'the-business', payload: '{}' }
    let erased = { rows: 0, at: 0 }
    async function actMeanwhile() {
      await until('entries are deleted', async () => (await store.getEntry('e1')) === undefined)
      await store.recordAction({ id: 'looked', name: 'look', businessUid: 'the-business', payload: '{}' })
    }
    const queries = await queriesOf(async () => {
      const acting = actMeanwhile()
      erased = await store.erase('the-business', record)
      await acting
    })
    isOver = true
    const deletes = queries.filter(({ text }) => /delete from journal/.test(text))
    const most = Math.max(...deletes.map(({ values }) => [values].flat(2).flatMap(asArray).length))
    expect(erased.rows).toBe(ENTRIES)
    expect(most).toBeLessThanOrEqual(200)
    expect(turns).toBeGreaterThanOrEqual(ENTRIES / 200)
    expect((await store.listEntries({})).map(({ id }) => id)).toEqual(['looked', 'erasure', 'other'])
  }, 120_000)
})

describe('erase, for several instances on PostgreSQL', () => {
  const engine = useEngine('PostgreSQL')

  it('clears the cached answers of the other instances', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace } = await createScene({ store })
    const other = openMarketplace(platform, { store, worker: false })
    platform.purchase({ business_uid: 'the-business', payment: 'succeeded', subscription_uid: 's1' })
    await platform.settled()
    await until(
      'both instances let the business in',
      async () => (await marketplace.isEntitled('the-business')) && other.isEntitled('the-business'),
    )
    await marketplace.businesses.erase('the-business')
    // Without a notification, an answer stays cached for five seconds.
    await until(
      'the other instance does not let the business in any more',
      async () => !(await other.isEntitled('the-business')),
      4_000,
    )
  })
})

/** The rows of a closed store that contain the text: the table, and for an entry its kind and name. */
async function tracesOf(text: string, address: string): Promise<string[][]> {
  const { sql, store } = await openStoreWithSql(address)
  const found: string[][] = []
  for (const table of TABLES)
    for (const row of await sql<Record<string, unknown>>(`select * from ${table} -- returning`))
      if (JSON.stringify(row).includes(text))
        found.push([table, ...(table === 'journal' ? [String(row.kind), String(row.name)] : [])])
  await store.close()
  return found
}

function installed(data: Record<string, unknown>) {
  return { entity_name: 'application', event_type: 'installed', data }
}

/** The ids in a parameter: an array, or its JSON. */
function asArray(value: unknown): unknown[] {
  return typeof value === 'string' && value.startsWith('[') ? JSON.parse(value) : [value]
}
