import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../lib/base/clock.js'
import type { NewEvent, ReadClaim, SearchClaim, Store } from '../../lib/store/port/store.js'
import { byBytes } from '../../lib/store/sql/lock-order.js'
import {
  ALL_URGENCIES,
  business,
  DONE,
  EVERY_TOPIC,
  ending,
  eventOf,
  handling,
  ifKnown,
  known,
  leasedEntries,
  shows,
} from '../support/conformance/lab.js'
import { connectedTo, engine, sqlAt } from '../support/engines/one-postgres.js'
import { openedStore } from '../support/engines/open-store.js'
import { until } from '../support/until.js'

// Each test lets one call wait for a row that it needs in between, and then the other one. If they took their other rows in
// different orders, each would now hold what the other one needs. The databases sort texts like a dictionary: a, B, M, z.

describe('G240 two transactions that lock the same rows', () => {
  it('accept deliveries and finish lanes in one order', async () => {
    const { address, stores } = await open()
    const [store, other] = stores
    await handling(store, EVERY_TOPIC)
    await store.accept(['a1', 'B2', 'ab', 'M'].map(withoutRead))
    const entries = await leasedEntries(store)
    const finishes = entries.filter(({ key }) => !key.endsWith('ab')).map((each) => ending(each, DONE))
    await expectNoDeadlock(address, `select from lanes where key in ('subscription:ab', 'subscription:M')`, [
      () => other.accept(['a1', 'ab', 'B2'].map(withoutRead)),
      () => store.finishLanes(finishes),
    ])
  })

  it('add subscriptions and request reads of stored ones in one order', async () => {
    const { address, stores } = await open()
    await stores[0].accept(['o', 'z', 'zz'].map((uid) => eventOf(uid)))
    await expectNoDeadlock(address, `select from subscriptions where subscription_uid in ('o', 'zz')`, [
      () => stores[0].accept([eventOf('n'), ifStored('z'), ifStored('zz')]),
      () => stores[1].accept([eventOf('n'), eventOf('o'), eventOf('z')]),
    ])
  })

  it('add a subscription of a business and request reads of all of the business in one order', async () => {
    const { address, stores } = await open()
    await stores[0].accept([eventOf('o'), ...['z', 'zz'].map((uid) => eventOf(uid, { businessUid: 'b1' }))])
    await expectNoDeadlock(address, `select from subscriptions where subscription_uid in ('o', 'zz')`, [
      () => stores[0].accept([eventOf('n'), install('b1')]),
      () => stores[1].accept(['n', 'o', 'z'].map((uid) => eventOf(uid))),
    ])
  })

  it('accept an install that searches and finish a search in one order', async () => {
    const { address, stores } = await open()
    await stores[0].accept(['a', 'z'].map((uid) => eventOf(uid)))
    await stores[0].requestSearch('b1', 'question')
    const [claim] = await stores[0].claimSearches({ limit: 1, installLimit: 0, leaseMs: 60_000 })
    const searching = eventOf('none', {
      businessUid: 'b1',
      refresh: { ...business('b1', true), search: true },
    })
    await expectNoDeadlock(address, `select from subscriptions where subscription_uid = 'z'`, [
      () => stores[1].accept([eventOf('a'), eventOf('z'), searching]),
      () =>
        stores[0].finishSearch(claim as SearchClaim, {
          kind: 'answered',
          found: ['a'],
          failure: null,
          nextInMs: 60_000,
        }),
    ])
  })

  it('request reads of subscriptions that JavaScript sorts differently in one order', async () => {
    const { address, stores } = await open()
    const uids = ['😀', '\uff21', '\uff22']
    expect([...uids].sort(byBytes)).not.toEqual([...uids].sort())
    await stores[0].accept(uids.map((uid) => eventOf(uid, { businessUid: 'b1' })))
    await expectNoDeadlock(address, `select from subscriptions where subscription_uid = '\uff22'`, [
      () => stores[1].accept([install('b1')]),
      () => stores[0].accept(uids.map((uid) => eventOf(uid))),
    ])
  })

  it('accept deliveries and finish reads of which one is the first of its subscription', async () => {
    const { address, stores } = await open()
    const [store, other] = stores
    await known(store, 'a')
    await other.accept(['a', 'b', 'z'].map((uid) => eventOf(uid)))
    const [a, , z] = await claimsOf(store, 3)
    await expectNoDeadlock(address, `select from subscriptions where subscription_uid = 'b'`, [
      () => other.accept(['a', 'b', 'z'].map((uid) => eventOf(uid))),
      () => Promise.all([store.finishRead(a, shows(a, 'purchased')), store.finishRead(z, firstOf(z))]),
    ])
  })

  it('finish lanes and finish a first read that writes a change', async () => {
    const { address, stores } = await open()
    const [store, other] = stores
    await handling(store, EVERY_TOPIC)
    await store.accept(['a', 'of a known one'].map((uid) => eventOf(uid, { businessUid: 'b' })))
    const claims = await claimsOf(store, 2)
    expect(claims.map(({ id }) => id)).toEqual(['a', 'of a known one'])
    const [first, earlier] = claims
    await store.finishRead(earlier, firstOf(earlier))
    const entries = await leasedEntries(store)
    expect(entries.map(({ key }) => key)).toEqual(expect.arrayContaining(['changes:b', 'subscription:a']))
    await expectNoDeadlock(address, `select from lanes where key = 'changes:b'`, [
      () => store.finishLanes(entries.map((each) => ending(each, DONE))),
      () => other.finishRead(first, firstOf(first)),
    ])
  })

  it('accept deliveries and finish reads of which one is too late', async () => {
    const { address, stores } = await open()
    const [store, other] = stores
    for (const uid of ['a', 'b', 'z']) await known(store, uid)
    await other.accept(['a', 'b', 'z'].map((uid) => eventOf(uid)))
    const [a, , z] = await claimsOf(store, 3)
    await other.accept([eventOf('a')])
    const ended = { record: null, state: 'canceled', gone: 'ended' } as const
    const [, finished] = await expectNoDeadlock(
      address,
      `select from subscriptions where subscription_uid = 'b'`,
      [
        () =>
          Promise.all([
            store.finishRead(a, { ...shows(a, 'canceled'), found: ended }),
            store.finishRead(z, shows(z, 'purchased')),
          ]),
        () => other.accept(['a', 'b', 'z'].map((uid) => eventOf(uid))),
      ].reverse(),
    )
    expect(finished).toEqual([false, true])
  })

  it('accept deliveries and prune', async () => {
    const { address, stores, sql } = await open()
    const [store, other] = stores
    await handling(store, EVERY_TOPIC)
    const uids = ['c', 'm', ...Array.from({ length: 20 }, (_, i) => `z${i}`)]
    await store.accept(uids.map((uid) => eventOf(uid)))
    await sql(`update subscriptions set refresh_at = null, failure = 'platform_refused',
        requested_at = ${Date.now() - 31 * DAY} - length(subscription_uid);
      update journal set received_at = ${Date.now() - 31 * DAY};
      update handlers set seen_at = 0`)
    await expectNoDeadlock(address, `select from subscriptions where subscription_uid = 'm'`, [
      () => other.accept(uids.map((uid) => eventOf(uid))),
      () => store.prune({ eventsMs: 7 * DAY, changesMs: 90 * DAY, actionsMs: 90 * DAY, deadMs: 30 * DAY }),
    ])
  })
})

async function open() {
  const address = await engine.freshAddress()
  const stores: [Store, Store] = [await openedStore(address), await openedStore(address)]
  const sql = (text: string) => sqlAt(address, `set search_path = marketplace_webhooks; ${text}`)
  return { address, stores, sql }
}

/** Starts each call while a connection holds the rows of `held`: the next one once the one before waits, or has ended. */
async function expectNoDeadlock(address: string, held: string, calls: (() => Promise<unknown>)[]) {
  const before = engine.server().log().length
  const holder = await connectedTo(address)
  await holder.query('begin')
  await holder.query(`${held} for update`)
  const begun: Promise<unknown>[] = []
  for (const call of calls) {
    begun.push(call())
    await Promise.race([begun.at(-1), waiters(begun.length)])
  }
  await holder.query('rollback')
  const results = await Promise.all(begun)
  expect(engine.server().log().slice(before)).not.toContain('deadlock detected')
  return results

  async function waiters(count: number) {
    await until('the call waits for a row', async () => {
      // Within a transaction, pg_stat_activity does not change after it was first read.
      await holder.query('select pg_stat_clear_snapshot()')
      const { rows } = await holder.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rows.length >= count
    })
  }
}

async function claimsOf(store: Store, count: number): Promise<[ReadClaim, ReadClaim, ReadClaim]> {
  const found: ReadClaim[] = []
  await until('the reads are due', async () => {
    found.push(
      ...(await store.claimReads({ limit: count, leaseMs: 60_000, except: [], urgencies: ALL_URGENCIES })),
    )
    return found.length === count
  })
  return found.sort((a, b) => byBytes(a.id, b.id)) as [ReadClaim, ReadClaim, ReadClaim]
}

/** A first read that writes a change. */
function firstOf(claim: ReadClaim) {
  const { businessUid } = claim.subscription
  const change = { id: `change of ${claim.id}`, key: `changes:${businessUid}`, businessUid, payload: '{}' }
  return shows(claim, 'purchased', { changes: [{ ...change, cause: 'event' }] })
}

const withoutRead = (uid: string): NewEvent => eventOf(uid, { refresh: null })
const ifStored = (uid: string): NewEvent => eventOf(uid, { refresh: ifKnown(uid, `business of ${uid}`) })
const install = (uid: string): NewEvent => eventOf('none', { businessUid: uid, refresh: business(uid, true) })
