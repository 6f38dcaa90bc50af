import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { noAnswer } from '../../lib/postgres/connection.js'
import { isTimeout } from '../../lib/postgres/errors.js'
import { endAbandonedLeases } from '../../lib/store/leases/leases.js'
import { LANE_URGENCY, type Leased, URGENCY } from '../../lib/store/port/store.js'
import type { Query } from '../../lib/store/sql/sql.js'
import { onCleanUp } from '../support/clean-up.js'
import { EVERY_TOPIC, handling } from '../support/conformance/lab.js'
import { engine } from '../support/engines/one-postgres.js'
import { openedStore } from '../support/engines/open-store.js'
import { openStoreWithSql, type StoreWithSql } from '../support/engines/store-with-sql.js'
import { eventOf } from '../support/events.js'
import { until } from '../support/until.js'

/** The rows that were due an hour ago and are not any more. */
const DEAD = 10_000
const HOUR_AGO = '(extract(epoch from clock_timestamp()) * 1000)::bigint - 3600000'

describe('G381 while a transaction stays open', () => {
  it.each(['reads', 'lanes'] as const)(
    'the claim of %s reads few pages, also beside a class whose rows wait long, and still finds what was committed late',
    async (what) => {
      const address = await engine.freshAddress()
      const { claim, makeDue, makeOthersDue, endAll } = KINDS[what]
      const db = await openStoreWithSql(address)
      await handling(db.store, EVERY_TOPIC)
      for (let i = 0; i < 5; i++) await db.store.accept([eventOf(`s${i}`)])
      await makeDue(db, DEAD)
      await transactionOf(address)
      await endAll(db)
      await makeOthersDue(db)

      // The first claim of a process reads all rows that are due, and those behind them.
      const whole = await db.queriesOf(() => claim(db))
      const next = await db.queriesOf(() => claim(db))
      const [pagesOfAll, pages] = [await pagesOf(db, whole), await pagesOf(db, next)]
      expect(pagesOfAll).toBeGreaterThan(100)
      expect(pages).toBeLessThan(pagesOfAll / 4)
      if (what === 'reads') {
        // Also in a process that makes no claims.
        const other = await openStoreWithSql(address)
        const first = await other.queriesOf(() => other.store.readFirst('b1'))
        const second = await other.queriesOf(() => other.store.readFirst('b1'))
        expect(await pagesOf(db, first)).toBeGreaterThan(pagesOfAll)
        expect(await pagesOf(db, second)).toBeLessThan(pagesOfAll)
      }

      await makeDue(db, 1)
      await until('it is found', async () => (await claim(db)).length === 1)
    },
    60_000,
  )

  it.each(['reads', 'lanes'] as const)(
    'a look for suspect %s and their claim read few pages, and find a lease that ran out long ago',
    async (what) => {
      const address = await engine.freshAddress()
      const { suspect, table, dueAt, makeDue } = KINDS[what]
      const db = await openStoreWithSql(address)
      const [topics, exceptKeys] = [EVERY_TOPIC, []]
      await handling(db.store, topics)
      await db.store.accept([eventOf('lapsed')])
      await makeDue(db, DEAD)
      await db.sql(`update ${table} set lease_token = 'held'`)
      await transactionOf(address)
      await db.sql(`update ${table} set lease_token = null, ${dueAt} = ${dueAt} + 7200000`)

      const due = () => db.store.dueSuspect({ kinds: [suspect], topics, exceptKeys })
      const claim = () =>
        suspect === 'read'
          ? db.store.claimSuspectRead({ leaseMs: 60_000 })
          : db.store.claimSuspectLane({ leaseMs: 60_000, topics, exceptKeys })
      const whole = await pagesOf(db, await db.queriesOf(due))
      expect(whole).toBeGreaterThan(100)
      expect(await pagesOf(db, await db.queriesOf(due))).toBeLessThan(whole / 4)
      expect(await pagesOf(db, await db.queriesOf(claim))).toBeLessThan(whole / 4)
      const atStart = await db.queriesOf(() => endAbandonedLeases(db.engine))
      expect(await pagesOf(db, atStart)).toBeLessThan(whole / 4)

      await db.sql(`update ${table} set lease_token = 'held', ${dueAt} = ${HOUR_AGO}
        where ${what === 'reads' ? 'subscription_uid' : 'key'} like '%lapsed%'`)
      await until('it is found', async () => (await due()) === suspect)
      expect(await claim()).toMatchObject({ id: expect.stringContaining('lapsed') })
    },
    60_000,
  )

  it('a claim of searches reads few pages, and still fails one whose lease ran out long ago', async () => {
    const address = await engine.freshAddress()
    const db = await openStoreWithSql(address)
    const claim = () => db.store.claimSearches({ ...EACH, installLimit: 5 })
    await db.sql(`insert into searches (business_uid, by_install, asked, generation, settled_generation, failures,
        wanted_at, lease_token, search_at)
      select 'b' || n, 1, 0, 1, 0, 0, 1, 'held', ${HOUR_AGO} from generate_series(1, ${DEAD}) as n`)
    await transactionOf(address)
    await db.sql('update searches set lease_token = null, search_at = search_at + 7200000')
    const whole = await pagesOf(db, await db.queriesOf(claim))
    expect(whole).toBeGreaterThan(100)
    expect(await pagesOf(db, await db.queriesOf(claim))).toBeLessThan(whole / 4)
    await db.sql(
      `update searches set lease_token = 'held', search_at = ${HOUR_AGO} where business_uid = 'b1'`,
    )
    await until('it has failed', async () => {
      await claim()
      const [row] = await db.sql<{ failures: number }>(
        "select failures from searches where business_uid = 'b1'",
      )
      return row?.failures === 1
    })
  }, 60_000)

  it.each(['reads', 'lanes'] as const)(
    'a claim of %s looks less far back after one that the server gave up, and again for what waits longer',
    async (what) => {
      const address = await engine.freshAddress()
      const { claim, makeDue, endAll, table } = KINDS[what]
      const before = await openStoreWithSql(address)
      await handling(before.store, EVERY_TOPIC)
      await makeDue(before, DEAD)
      await transactionOf(address)
      await endAll(before)
      const whole = await pagesOf(before, await before.queriesOf(() => claim(before)))
      expect(whole).toBeGreaterThan(100)

      const db = await openStoreWithSql(address)
      const lock = await lockOf(address, table)
      const given = expect(claim(db)).rejects.toThrow('canceling statement')
      await until('it is given up', async () => {
        const { rows } = await lock.query(
          `select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        )
        return rows.length > 0
      })
      await given
      await lock.query('rollback')
      expect(await pagesOf(db, await db.queriesOf(() => claim(db)))).toBeLessThan(whole / 4)
      await makeDue(db, 1)
      await until('it is found', async () => (await claim(db)).length === 1)
    },
    60_000,
  )

  it.each(['reads', 'lanes', 'searches'] as const)(
    'a claim of %s finds what the one before it found and left',
    async (what) => {
      const address = await engine.freshAddress()
      const { claim, makeAllDue, table } = KINDS[what]
      const db = await openStoreWithSql(address)
      await handling(db.store, EVERY_TOPIC)
      await makeAllDue(db, 2 * EACH.limit)
      // Queries for all rows are not made again for 50 times as long as the first claim took.
      const lock = await lockOf(address, table)
      const first = claim(db)
      await sleep(200)
      await lock.query('rollback')
      expect(await first).toHaveLength(EACH.limit)
      expect(await claim(db)).toHaveLength(EACH.limit)
    },
  )

  it('a business is read before all that is due, also if the call before it found that', async () => {
    const address = await engine.freshAddress()
    const db = await openStoreWithSql(address)
    await KINDS.reads.makeDue(db, 3)
    await db.sql("update subscriptions set generation = 2 where subscription_uid in ('3-1', '3-2')")
    await db.sql(`update subscriptions set refresh_at = refresh_at + 3000000 where subscription_uid = '3-2'`)
    const lock = await lockOf(address, 'subscriptions')
    const first = db.store.readFirst('3-1')
    await sleep(200)
    await lock.query('rollback')
    await first
    await db.store.readFirst('3-2')
    const rows = await db.sql<{ uid: string }>(
      'select subscription_uid as uid from subscriptions order by refresh_at',
    )
    expect(rows.map(({ uid }) => uid)).toEqual(['3-2', '3-1', '3-3'])
  })

  it.each(['reads', 'lanes'] as const)(
    'a look for suspect %s finds what the one before it found',
    async (what) => {
      const address = await engine.freshAddress()
      const { suspect, table, dueAt, makeDue } = KINDS[what]
      const db = await openStoreWithSql(address)
      await handling(db.store, EVERY_TOPIC)
      await makeDue(db, 2)
      await db.sql(`update ${table} set lease_token = 'held', ${dueAt} = ${HOUR_AGO}`)
      const look = () => db.store.dueSuspect({ kinds: [suspect], topics: EVERY_TOPIC, exceptKeys: [] })
      const lock = await lockOf(address, table)
      const first = look()
      await sleep(200)
      await lock.query('rollback')
      expect(await first).toBe(suspect)
      expect(await look()).toBe(suspect)
    },
  )

  it('an answer that took too long for this process also makes the look back shorter, a lost connection does not', () => {
    expect(isTimeout(noAnswer(6_000))).toBe(true)
    expect(isTimeout(Object.assign(new Error('it was reset'), { code: 'ECONNRESET' }))).toBe(false)
  })

  it('the first claim finds what has been due for long, also of topics that it has not seen', async () => {
    const db = await openStoreWithSql(await engine.freshAddress())
    await handling(db.store, EVERY_TOPIC)
    await db.store.accept([eventOf('first'), { ...eventOf('second'), name: 'another event' }])
    await db.sql(`update lanes set due_at = ${HOUR_AGO}`)
    const lanes = { ...EACH, entryLimit: 5, topics: EVERY_TOPIC, exceptKeys: [] }
    expect(await db.store.claimLanes(lanes)).toHaveLength(2)
  })

  it.each([
    ['lane', 'lanes', 'key', (db: StoreWithSql, lease: Leased) => db.store.renewLane(lease, 60_000)],
    [
      'read',
      'subscriptions',
      'subscription_uid',
      (db: StoreWithSql, lease: Leased) => db.store.renewRead(lease, 60_000),
    ],
  ] as const)(
    'a renewal of a %s finds its row by its name',
    async (_, table, name, renew) => {
      const address = await engine.freshAddress()
      const db = await openStoreWithSql(address)
      await KINDS[table === 'lanes' ? 'lanes' : 'reads'].makeDue(db, DEAD)
      // The statistics say that hardly any lease is held.
      await db.sql(`analyze ${table}`)
      await transactionOf(address)
      await db.sql(`update ${table} set lease_token = 'held'`)
      await db.sql(`update ${table} set lease_token = null where ${name} not like '%7'`)
      const [row] = await db.sql<{ id: string }>(
        `select min(${name}) as id from ${table} where lease_token is not null`,
      )
      const lease = { id: String(row?.id), leaseToken: 'held' }
      const asked = await db.queriesOf(() => renew(db, lease))
      expect(await renew(db, lease)).toBe(true)
      expect(await pagesOf(db, asked)).toBeLessThan(50)
    },
    60_000,
  )

  it('the store names its application and process, and has the dead rows', async () => {
    const address = await engine.freshAddress()
    const store = await openedStore(address)
    await store.accept([eventOf('s1')])
    const { pid } = await transactionOf(address)
    const found = await until('the transaction is seen', async () => {
      const { oldestTransaction, ...more } = (await store.cleanUp()) ?? {}
      return oldestTransaction?.includes('report') && { oldestTransaction, ...more }
    })
    expect(found.oldestTransaction).toBe(`a transaction of the application report (process ${pid})`)
    expect(found.oldestTransactionMs).toBeGreaterThanOrEqual(0)
    for (let i = 0; i < 20; i++) await store.accept([eventOf('s1')])
    await until('its dead rows are counted', async () => ((await store.cleanUp())?.deadRows ?? 0) >= 10)
  })

  it('its age counts since the process saw it first, if the role may not look into it', async () => {
    const address = await engine.freshAddress()
    const store = await openedStore(address)
    const superuser = new URL(address)
    superuser.username = 'postgres'
    const { pid } = await transactionOf(superuser.href)
    const ages: (number | null | undefined)[] = []
    await until('its age grows', async () => {
      const found = await store.cleanUp()
      if (!found?.oldestTransaction?.includes(`(process ${pid})`)) return false
      ages.push(found.oldestTransactionMs)
      return (found.oldestTransactionMs ?? 0) > 50
    })
    expect(ages[0]).toBeLessThan(50)
  })
})

const UPDATE = 'event:purchasable_subscription/update'
const EACH = { limit: 5, leaseMs: 60_000 }
/** Leaves the other classes alone, as if they were behind. */
const onlyOf =
  <Class>(one: Class) =>
  (classes: readonly Class[]) =>
    classes.find((each) => each === one)
const KINDS = {
  reads: {
    ...({ suspect: 'read', table: 'subscriptions', dueAt: 'refresh_at' } as const),
    claim: ({ store }: StoreWithSql) =>
      store.claimReads({ ...EACH, except: [], urgencies: [0, 3], choose: onlyOf(URGENCY.event) }),
    makeDue: ({ sql }: StoreWithSql, count: number) =>
      sql(`insert into subscriptions (subscription_uid, business_uid, generation, settled_generation, urgency, unread,
          verifying, lapses, created_at, refresh_at)
        select '${count}-' || n, '${count}-' || n, 1, 1, 0, 0, 0, 0, 1, ${HOUR_AGO} from generate_series(1, ${count}) as n`),
    makeOthersDue: ({ sql }: StoreWithSql) =>
      sql(`update subscriptions set urgency = 3, refresh_at = ${HOUR_AGO} where subscription_uid = 's1'`),
    makeAllDue: (db: StoreWithSql, count: number) => KINDS.reads.makeDue(db, count),
    endAll: ({ sql }: StoreWithSql) =>
      sql(`update subscriptions set refresh_at = refresh_at + 7200000 where urgency = 0`),
  },
  lanes: {
    ...({ suspect: 'lane', table: 'lanes', dueAt: 'due_at' } as const),
    claim: ({ store }: StoreWithSql) =>
      store.claimLanes({
        ...{ ...EACH, entryLimit: 5, topics: [UPDATE, 'change'], exceptKeys: [] },
        choose: onlyOf(LANE_URGENCY.event),
      }),
    async makeDue({ sql }: StoreWithSql, count: number) {
      const lane = `'late' as key, '${UPDATE}' as topic`
      if (count === 1)
        await sql(`insert into journal (id, kind, name, topic, key, status, attempts, received_at, payload)
          select 'late', 'event', 'purchasable_subscription/update', topic, key, 'pending', 0, 1, '{}' from (select ${lane}) as late`)
      await sql(`insert into lanes (key, topic, due_at, lapses)
        select case ${count} when 1 then 'late' else 'key ' || n end, '${UPDATE}', ${HOUR_AGO}, 0 from generate_series(1, ${count}) as n`)
    },
    makeOthersDue: ({ sql }: StoreWithSql) =>
      sql(
        `insert into lanes (key, topic, due_at, lapses, unread) values ('others', '${UPDATE}', ${HOUR_AGO}, 0, 1)`,
      ),
    async makeAllDue({ store, sql }: StoreWithSql, count: number) {
      for (let i = 0; i < count; i++) await store.accept([eventOf(`s${i}`)])
      await sql(`update lanes set due_at = ${HOUR_AGO}, unread = 0`)
    },
    endAll: ({ sql }: StoreWithSql) => sql('delete from lanes'),
  },
  searches: {
    table: 'searches',
    claim: ({ store }: StoreWithSql) => store.claimSearches({ ...EACH, installLimit: EACH.limit }),
    makeAllDue: ({ sql }: StoreWithSql, count: number) =>
      sql(`insert into searches (business_uid, by_install, asked, generation, settled_generation, failures, wanted_at, search_at)
        select 'b' || n, 0, 0, 1, 0, 0, 1, ${HOUR_AGO} from generate_series(1, ${count}) as n`),
  },
}

/** A transaction in `repeatable read` of the application `report`, open until the test ends. */
async function transactionOf(address: string): Promise<{ pid: number }> {
  const client = new pg.Client({ connectionString: address, application_name: 'report' })
  onCleanUp(() => client.end())
  await client.connect()
  await client.query('begin isolation level repeatable read')
  const { rows } = await client.query('select pg_backend_pid() as pid')
  return rows[0]
}

/** A transaction that has locked the table, until it or the test ends. */
async function lockOf(address: string, table: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: address })
  onCleanUp(() => client.end())
  await client.connect()
  await client.query(`begin; lock table marketplace_webhooks.${table}`)
  return client
}

/** The pages that these queries read. */
async function pagesOf({ explain }: StoreWithSql, queries: readonly Query[]): Promise<number> {
  let pages = 0
  for (const query of queries) {
    const [row] = await explain('explain (analyze, buffers, format json)', query)
    const [{ Plan }] = JSON.parse(String(row?.['QUERY PLAN']))
    pages += Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
  }
  return pages
}
