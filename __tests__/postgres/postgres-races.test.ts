import { describe, expect, it } from '@jest/globals'
import type pg from 'pg'
import { DAY } from '../../lib/base/clock.js'
import type { NewEvent, Store } from '../../lib/store/port/store.js'
import {
  business,
  claimed,
  DONE,
  EVERY_TOPIC,
  ending,
  finish,
  handling,
  ifKnown,
  leasedEntries,
  leasedEntry,
  named,
} from '../support/conformance/lab.js'
import { connectedTo, engine, sqlAt } from '../support/engines/one-postgres.js'
import { openedStore } from '../support/engines/open-store.js'
import { eventOf } from '../support/events.js'
import { until } from '../support/until.js'

const KEEP = { eventsMs: 7 * DAY, changesMs: 90 * DAY, actionsMs: 90 * DAY, deadMs: 30 * DAY }

describe('the sweeper, which waits for a row that another connection has locked,', () => {
  it.each(['accept', 'requestRefresh'] as const)(
    'does not delete a subscription that %s has marked in between',
    async (how) => {
      const { address, stores, sql } = await open()
      const [store, sweeping] = stores
      await store.accept([eventOf('s1')])
      await sql(`update subscriptions set refresh_at = null, failure = 'platform_refused',
      requested_at = ${Date.now() - 31 * DAY}`)
      await inTurn(address, `select from subscriptions where subscription_uid = 's1'`, [
        () => (how === 'accept' ? store.accept([eventOf('s1')]) : store.requestRefresh(named('s1', 'b1'))),
        () => sweeping.prune(KEEP),
      ])
      expect(await claimed(store)).toMatchObject({ id: 's1' })
    },
  )

  it('does not delete an entry that has been replayed in between', async () => {
    const { address, stores, sql } = await open()
    const [store, sweeping] = stores
    const event = eventOf('s1')
    await handling(store, EVERY_TOPIC)
    await store.accept([event])
    await finish(
      store,
      (await leasedEntries(store)).map((each) => ending(each, DONE)),
    )
    await sql(`update journal set settled_at = ${Date.now() - 8 * DAY}`)
    const [found] = await inTurn(address, `select from journal where id = '${event.id}'`, [
      () => store.replayEntry(event.id),
      () => sweeping.prune(KEEP),
    ])
    expect(found).toBe(true)
    expect(await store.listEntries({})).toMatchObject([{ id: event.id, status: 'pending' }])
  })

  it('deletes both if no other connection changed them', async () => {
    const { stores, sql } = await open()
    await handling(stores[0], [])
    await stores[0].accept([eventOf('s1')])
    await sql(`update subscriptions set refresh_at = null, requested_at = ${Date.now() - 31 * DAY}`)
    await sql(`update journal set received_at = ${Date.now() - 8 * DAY}`)
    expect(await stores[1].prune(KEEP)).toEqual({ rows: 2, dead: [] })
  })
})

describe('deliveries to several instances', () => {
  it('never deadlock, whether they name subscriptions or businesses', async () => {
    const { stores, sql } = await open()
    const businesses = ['b1', 'b2', 'b3', 'b4']
    // The uids have small and capital letters, which a collation sorts differently than bytes.
    const uids = businesses.flatMap((of) => ['z', 'M', 'a'].map((letter) => [`${letter}-${of}`, of] as const))
    await stores[0].accept(uids.map((uid) => eventOf(...uid)))
    const deadlocks = async () =>
      Number(
        (await sql(`select deadlocks from pg_stat_database where datname = current_database()`))[0]
          ?.deadlocks,
      )
    for (let round = 0; round < 90; round++) {
      const batches = stores.map((_store, i) => {
        const at = (round * (i + 1)) % uids.length
        const order = [...uids.slice(at), ...uids.slice(0, at)]
        // In turn: subscriptions of both kinds, of one kind, and a business beside them.
        const known = round % 3 === 0 || i === 1 ? order.slice(0, 5) : []
        const added = order.slice(5)
        return [
          ...known.map((uid) => knownEventOf(...uid)),
          ...added.map((uid) => eventOf(...uid)),
          ...(round % 3 === 1 ? [installOf(businesses[(round + i) % 4] as string)] : []),
        ]
      })
      await Promise.all(stores.map((store, i) => store.accept(batches[i] as NewEvent[])))
    }
    // The server counts a transaction when it ends, and reports it up to a second later.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(await deadlocks()).toBe(0)
  })
})

describe('G21 accepting and finishing of one key on several connections', () => {
  it('leaves no entry without a lane and no lane without an entry, and hands over in order', async () => {
    const { stores, sql } = await open()
    await handling(stores[0], EVERY_TOPIC)
    const keys = ['a', 'b']
    const seen = new Map<string, string[]>(keys.map((key) => [key, []]))
    const active = new Set<string>()
    let accepted = 0
    const accepting = stores.map(async (store, i) => {
      for (let n = 0; n < 150; n++) {
        await store.accept(
          keys.map((key) => ({ ...eventOf('s'), id: `${i}-${n}-${key}`, key, refresh: null })),
        )
        accepted += keys.length
      }
    })
    let isOver = false
    const working = [...stores, ...stores].map(async (store) => {
      for (;;) {
        const mayEnd = isOver
        const lanes = await store.claimLanes({
          limit: 2,
          entryLimit: 4,
          leaseMs: 60_000,
          topics: EVERY_TOPIC,
          exceptKeys: [],
        })
        for (const { id, leaseToken, entries: handedOut } of lanes) {
          expect(active.has(id)).toBe(false)
          active.add(id)
          seen.get(id)?.push(...handedOut.map((each) => each.id))
          const results = handedOut.map((each) => ({ id: each.id, attempt: 1, result: DONE }))
          active.delete(id)
          expect(await store.finishLanes([{ id, leaseToken, results, keepLease: false }])).toEqual([id])
        }
        if (lanes.length === 0 && mayEnd) return
      }
    })
    await Promise.all(accepting)
    isOver = true
    await Promise.all(working)
    expect([...seen.values()].flat()).toHaveLength(accepted)
    expect(await sql('select * from lanes')).toEqual([])
    expect(await sql(`select id from journal where status <> 'done'`)).toEqual([])
    for (const [key, ids] of seen) {
      const inOrder = await sql<{ id: string }>(`select id from journal where key = '${key}' order by seq`)
      expect(ids).toEqual(inOrder.map(({ id }) => id))
    }
  }, 60_000)
})

it('G21 an entry that is accepted while the last one before it is finished keeps its lane', async () => {
  const { address, stores } = await open()
  const [store] = stores
  await handling(store, EVERY_TOPIC)
  const first = eventOf('s1')
  await store.accept([first])
  const last = await leasedEntry(store)
  const accepting = await connectedTo(address)
  await accepting.query('begin')
  await accepting.query(`update lanes set due_at = due_at`)
  await accepting.query(`insert into journal
    (id, kind, name, topic, key, business_uid, subscription_uid, payload, status, attempts, received_at)
    select 'second', kind, name, topic, key, business_uid, subscription_uid, payload, 'pending', 0, received_at
    from journal`)
  const finished = store.finishLanes([ending(last, DONE)])
  await waiters(accepting, 1)
  await accepting.query('commit')
  expect(await finished).toEqual([last.key])
  expect((await leasedEntries(store)).map((each) => each.id)).toEqual(['second'])
})

describe('G22 an event whose receiver checked the handlers just before one was added', () => {
  it('is handed to the handler, before a later one of the same subscription', async () => {
    const { address, stores } = await open()
    const [receiver, worker] = stores
    const [event, later] = [eventOf('s1'), eventOf('s1')]
    // The receiver has found no handler. Before it commits, it waits for the row of the subscription.
    const holder = await connectedTo(address)
    await holder.query('begin')
    await holder.query('lock table journal in share mode')
    const accepted = receiver.accept([event])
    await waiters(holder, 1)
    const named = worker.handleTopics({ topics: EVERY_TOPIC, rescueMs: 1_000, retireMs: 60_000 })
    await Promise.race([named, waiters(holder, 2)])
    await holder.query('rollback')
    await Promise.all([accepted, named])
    await worker.accept([later])
    expect((await leasedEntries(worker, { entryLimit: 10 })).map(({ id }) => id)).toEqual([
      event.id,
      later.id,
    ])
  })
})

async function open() {
  const address = await engine.freshAddress()
  const stores: [Store, Store] = [await openedStore(address), await openedStore(address)]
  const sql = <Row = Record<string, unknown>>(text: string) =>
    sqlAt<Row>(address, `set search_path = marketplace_webhooks; ${text}`)
  return { address, stores, sql }
}

/**
 * Starts each call when the previous one waits for the row, and then releases the row. PostgreSQL grants locks in
 * order.
 */
async function inTurn(address: string, row: string, calls: (() => Promise<unknown>)[]) {
  const holder = await connectedTo(address)
  await holder.query(`begin`)
  await holder.query(`${row} for update`)
  const begun: Promise<unknown>[] = []
  for (const call of calls) {
    begun.push(call())
    await Promise.race([begun.at(-1), waiters(holder, begun.length)])
  }
  await holder.query('rollback')
  return Promise.all(begun)
}

async function waiters(client: pg.Client, count: number) {
  await until('the call waits for the row', async () => {
    // Within a transaction, pg_stat_activity does not change after it was first read.
    await client.query('select pg_stat_clear_snapshot()')
    const { rows } = await client.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length >= count
  })
}

function knownEventOf(subscriptionUid: string, businessUid: string): NewEvent {
  return { ...eventOf('none', businessUid), refresh: ifKnown(subscriptionUid, businessUid) }
}

function installOf(businessUid: string): NewEvent {
  return { ...eventOf('none', businessUid), refresh: business(businessUid) }
}
