import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, systemClock } from '../../lib/base/clock.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import type { Allowance } from '../../lib/store/accepting/allowance.js'
import { businessKey, type NewEvent, subscriptionKey } from '../../lib/store/port/store.js'
import type { Query } from '../../lib/store/sql/sql.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import { businessOf, claimed, eventOf, fails, shows } from '../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { planOfPostgres, rowsOf } from '../support/engines/postgres-plan.js'
import { planOfSqlite } from '../support/engines/sqlite-plan.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { jumpingClock } from '../support/machine/jumping-clock.js'
import { NUMBERS, subscriptions } from '../support/scenes/many-subscriptions.js'
import { gate, until } from '../support/until.js'

const ROOMY: Allowance = {
  event: { rows: 100_000, bytes: 1_000_000 },
  known: { rows: 100_000, bytes: 1_000_000 },
  unrecognised: { rows: 1_000, bytes: 1_000_000 },
  subscriptions: 100_000,
}
const MANY = 20_000
const RETENTION = {
  eventsMs: 7 * 24 * HOUR,
  changesMs: 7 * 24 * HOUR,
  actionsMs: 7 * 24 * HOUR,
  deadMs: 7 * 24 * HOUR,
}

describe.each(ENGINE_NAMES)('what anybody can make up, on %s', (name) => {
  const engine = useEngine(name)

  it('A60 is refused beyond its allowance, while events of what was read before are stored', async () => {
    const { store, jump } = await opened({ event: { rows: 5, bytes: 1_000_000 } })
    await store.accept([eventOf('known')])
    const claim = await claimed(store)
    await store.finishRead(claim, shows(claim, 'purchased'))
    await store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR })
    for (let i = 0; i < 5; i++) {
      // So that what is stored is measured again.
      jump(HOUR)
      await store.accept([eventOf(`made up ${i}`)])
    }
    jump(HOUR)
    await expect(store.accept([eventOf('made up 5')])).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await expect(store.accept([eventOf('made up 0')])).rejects.toMatchObject({ code: 'delivery_turned_away' })
    for (let i = 0; i < 20; i++) await store.accept([eventOf('known')])
    expect(await store.listEntries({ limit: 100 })).toHaveLength(26)
    expect(await store.turnedAway()).toEqual({ refused: 2, deleted: 0, counted: [] })
    jump(2 * HOUR)
    expect(await store.turnedAway()).toBeNull()
  })

  it('A61 gets room again from entries that are finished, and never from one that waits', async () => {
    const { store, jump } = await opened({ event: { rows: 5, bytes: 1_000_000 } })
    // Nobody has a handler, so they are finished.
    for (let i = 0; i < 12; i++) {
      jump(HOUR)
      await store.accept([eventOf(`made up ${i}`, { id: `made up ${i}` })])
    }
    const kept = (await store.listEntries({ limit: 100 })).map(({ id }) => id)
    expect(kept).toContain('made up 11')
    expect(kept.length).toBeLessThanOrEqual(5)
    await store.handleTopics({ topics: ['event:*'], rescueMs: HOUR, retireMs: HOUR })
    jump(HOUR)
    await expect(fill(store, 6)).rejects.toMatchObject({ code: 'delivery_turned_away' })
    expect((await store.counts()).pending).toBe(5)
  })

  it('A60, A228 gets no room beside a known name, and the sender of both gets 503', async () => {
    const { store, jump, uids } = await opened({ event: { rows: 3, bytes: 1_000_000 } })
    await store.accept([eventOf('known')])
    const claim = await claimed(store)
    await store.finishRead(claim, shows(claim, 'purchased'))
    await store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR })
    for (let i = 0; i < 3; i++) {
      jump(HOUR)
      await store.accept([eventOf(`waiting ${i}`)])
    }
    jump(HOUR)
    const mixed = [eventOf('known', { id: 'of known' }), ...[1, 2, 3].map((i) => eventOf(`made up ${i}`))]
    await expect(store.accept(mixed)).rejects.toMatchObject({ code: 'delivery_turned_away' })
    expect((await store.listEntries({ limit: 100 })).map(({ id }) => id)).toContain('of known')
    expect(await uids()).toEqual(['known', 'waiting 0', 'waiting 1', 'waiting 2'])
  })

  it('A61, A229 gets no room from an event that was set aside until a process has its handler again', async () => {
    const { store, sql, jump } = await opened({ event: { rows: 2, bytes: 1_000_000 } })
    for (const uid of ['s1', 's2']) {
      // So that what is stored is measured again, and none makes room for the next.
      jump(HOUR)
      await store.accept([eventOf(uid)])
    }
    await sql('update journal set settled_at = 1')
    jump(HOUR)
    await expect(fill(store, 1)).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await sql('update journal set settled_at = null')
    jump(HOUR)
    await fill(store, 1)
  })

  it('A61 gets room at last from a dead event, unless it names what was read before', async () => {
    const { store, sql, jump, knows } = await opened({ event: { rows: 3, bytes: 1_000_000 } })
    await knows('s1')
    await store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR })
    for (const id of ['s1', 'first', 'second', 'third']) {
      jump(HOUR)
      await store.accept([eventOf(id, { id })])
    }
    await sql(`update journal set status = 'dead', settled_at = 1 where id in ('s1', 'first', 'second')`)
    await sql(`update journal set status = 'done', settled_at = 2 where id = 'third'`)
    const kept = async () => (await store.listEntries({ limit: 100 })).map(({ id }) => id).sort()
    jump(HOUR)
    await store.accept([eventOf('4', { id: '4' })])
    expect(await kept()).toEqual(['4', 'first', 's1', 'second'])
    jump(HOUR)
    await store.accept([eventOf('5', { id: '5' })])
    expect(await kept()).toEqual(['4', '5', 's1'])
  })

  it('A60 A61 is never more than its allowance, however many arrive at once', async () => {
    const { store, jump } = await opened({ event: { rows: 5, bytes: 1_000_000 } })
    for (let flood = 0; flood < 3; flood++) {
      jump(HOUR)
      const sent = Array.from({ length: 30 }, (_, i) => store.accept([eventOf(`made up ${flood} ${i}`)]))
      const taken = (await Promise.allSettled(sent)).filter(({ status }) => status === 'fulfilled')
      expect(taken.length).toBeGreaterThan(0)
      expect((await store.listEntries({ limit: 100 })).length).toBeLessThanOrEqual(5)
    }
  })

  it('A62 that the platform has denied makes room for further subscriptions, and what waits for its first answer never does', async () => {
    const { store, jump, uids } = await opened({ subscriptions: 4 })
    for (let i = 0; i < 4; i++) {
      jump(HOUR)
      await store.accept([eventOf(`s${i}`)])
    }
    const claims = await store.claimReads({ limit: 4, leaseMs: HOUR, except: [], urgencies: [1] })
    for (const claim of claims)
      await store.finishRead(claim, {
        ...fails(claim.id === 's3' ? 'platform_unreachable' : 'platform_record_missing', 24 * HOUR),
        verifying: claim.id === 's2',
      })
    jump(HOUR)
    await store.accept([eventOf('s4')])
    await store.accept([eventOf('s5')])
    await expect(store.accept([eventOf('s6')])).rejects.toMatchObject({ code: 'delivery_turned_away' })
    while ((await store.prune(RETENTION)).rows > 0);
    expect(await uids()).toEqual(['s2', 's3', 's4', 's5'])
  })

  it('A62 makes no room with what is being read', async () => {
    const { store, jump } = await opened({ subscriptions: 1 })
    await store.accept([eventOf('s0')])
    await store.finishRead(await claimed(store), fails('platform_record_missing', 0))
    const claim = await claimed(store)
    jump(2_000)
    await expect(store.accept([eventOf('s1')])).rejects.toMatchObject({ code: 'delivery_turned_away' })
    expect(await store.finishRead(claim, fails('platform_record_missing'))).toBe(true)
    jump(HOUR)
    await store.accept([eventOf('s1')])
  })

  it('A60 has the room again of a delivery that could not be written', async () => {
    const { store, jump } = await opened({ event: { rows: 5, bytes: 1_000_000 } })
    for (let i = 0; i < 5; i++)
      await expect(store.accept([eventOf('odd', { key: null as never })])).rejects.toThrow()
    jump(HOUR)
    await fill(store, 5)
    expect(await store.listEntries({})).toHaveLength(5)
  })

  it.each<[string, string, Partial<Allowance>]>([
    ['A61', 'journal', { event: { rows: MANY, bytes: 1_000_000 } }],
    ['A232', 'journal', { known: { rows: MANY, bytes: 1_000_000 } }],
    ['A62', 'subscriptions', { subscriptions: MANY }],
  ])('%s is searched for room in %s without a look at the very many that wait', async (row, table, most) => {
    const { address, store: before, sql, knows } = await opened({})
    await knows('known')
    await sql(subscriptions('waits', `${Date.now() + HOUR}`, MANY, 1, `'platform_unreachable'`))
    await sql(subscriptions('denied', `${Date.now() + HOUR}`, 600, 2, `'platform_record_missing'`))
    await sql(entries('pending', MANY))
    await sql(entries('done', 600))
    await sql(entries('pending', MANY, 0))
    await sql(entries('done', 600, 0))
    await sql('analyze')
    await before.close()
    const lab = await opened(most, address)
    const { store, jump } = lab
    const beyond = row === 'A232' ? 'known' : 'beyond'
    const deletions: Query[] = []
    await until('room was made', async () => {
      jump(HOUR)
      const asked = await lab.queriesOf(() => store.accept([eventOf(beyond)]).catch(() => {}))
      deletions.push(...asked.filter(({ text }) => /^\s*delete/.test(text)))
      return deletions.length > 0
    })
    for (const query of deletions) {
      expect(/from (\w+)/.exec(query.text)?.[1]).toBe(table)
      if (name === 'SQLite') {
        const plan = (await planOfSqlite(query)).map(({ detail }) => detail).join('\n')
        expect(plan).toMatch(/INDEX (subscriptions_denied|journal_status)/)
        expect(plan).not.toMatch(/ORDER BY/)
      } else {
        const rows = (await planOfPostgres(lab, query)).filter((node) => node['Relation Name']).map(rowsOf)
        // Beside known ones the finished made-up ones are searched.
        expect(Math.max(...rows)).toBeLessThanOrEqual(row === 'A232' ? 1_200 : 600)
      }
    }
  })

  it('A63 and is not recognised is only counted beyond its allowance, by name', async () => {
    const { store } = await opened({ unrecognised: { rows: 2, bytes: 1_000_000 } })
    const ids = await Promise.all([1, 2].map((i) => store.accept([unrecognised(`u${i}`)])))
    expect(ids).toEqual([[], []])
    expect(await store.accept([unrecognised('u3'), eventOf('s1', { id: 'event' })])).toEqual(['u3'])
    expect(await store.accept([unrecognised('u4', '[1]')])).toEqual(['u4'])
    const stored = (await store.listEntries({ limit: 100 })).map(({ id }) => id)
    expect(stored.sort()).toEqual(['event', 'u1', 'u2'])
    expect(await store.turnedAway()).toEqual({
      refused: 0,
      deleted: 0,
      counted: [
        ['app moved', 1],
        ['without names', 1],
      ],
    })
  })

  it('A63 whatever the bytes, and again after a restart', async () => {
    const { store, address } = await opened({ unrecognised: { rows: 1_000, bytes: 3_000 } })
    let count = 4
    const large = JSON.stringify('x'.repeat(1_400))
    await store.accept([unrecognised('u1', large)])
    await store.accept([unrecognised('u2', large)])
    expect(await store.accept([unrecognised('u3', large)])).toEqual(['u3'])
    await store.close()
    const again = await opened({ unrecognised: { rows: 1_000, bytes: 3_000 } }, address)
    await again.store.accept([unrecognised('u4', large)])
    await until('what is stored was measured', async () => {
      const [id] = await again.store.accept([unrecognised(`u${++count}`, large)])
      return id
    })
    expect((await again.store.listEntries({ limit: 100 })).length).toBeLessThan(2 + 20)
  })

  it('A232 and names what was read before has an allowance of its own, in which the oldest finished entries make room', async () => {
    const { store, jump, knows } = await opened({ known: { rows: 5, bytes: 1_000_000 } })
    await knows('s1')
    await store.accept([eventOf('made up', { id: 'made up' })])
    // Nobody has a handler, so they are finished.
    for (let i = 0; i < 20; i++) {
      if (i % 4 === 0) jump(30 * MINUTE)
      const known = [eventOf('s1', { id: `known ${i}` })]
      await store.accept(known).catch(() => {
        // On a busy machine a measurement was under way, which may count twice what comes meanwhile. The next one is due.
        jump(10 * MINUTE)
        return store.accept(known)
      })
    }
    const sent = Array.from({ length: 30 }, (_, i) => store.accept([eventOf('s1', { id: `at once ${i}` })]))
    await Promise.allSettled(sent)
    // Of the last hour.
    expect((await store.turnedAway())?.deleted).toBeGreaterThan(5)
    jump(HOUR)
    await store.accept([eventOf('s1', { id: 'newest' })])
    const kept = (await store.listEntries({ limit: 100 })).map(({ id }) => id)
    expect(kept).toEqual(expect.arrayContaining(['newest', 'made up']))
    expect(kept.length).toBeLessThanOrEqual(6)
  })

  it('A232 and names what was read before makes no room with what waits for its handler or is dead, and its read is requested all the same', async () => {
    const { store, sql, jump, knows } = await opened({ known: { rows: 3, bytes: 1_000_000 } })
    for (const uid of ['flooded', 'quiet']) await knows(uid)
    await store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR })
    for (let i = 0; i < 3; i++) {
      jump(HOUR)
      await store.accept([eventOf('flooded', { id: `waits ${i}` })])
    }
    const requests = async () => {
      const [row] = await sql<{ count: number }>(
        "select generation as count from subscriptions where subscription_uid = 'quiet'",
      )
      return Number(row?.count)
    }
    const before = await requests()
    jump(HOUR)
    const both = [eventOf('quiet', { id: 'refused' }), eventOf('made up', { id: 'made up' })]
    await expect(store.accept(both)).rejects.toMatchObject({ code: 'delivery_turned_away' })
    expect(await requests()).toBe(before + 1)
    const ids = async () => (await store.listEntries({ limit: 100 })).map(({ id }) => id)
    expect(await ids()).toEqual(expect.arrayContaining(['made up', 'waits 0', 'waits 1', 'waits 2']))
    expect(await ids()).not.toContain('refused')
    await sql("update journal set status = 'dead', settled_at = 1 where id = 'waits 0'")
    jump(HOUR)
    await expect(store.accept([eventOf('quiet')])).rejects.toMatchObject({ code: 'delivery_turned_away' })
    await sql("update journal set status = 'done', settled_at = 1 where id = 'waits 1'")
    jump(HOUR)
    await store.accept([eventOf('quiet', { id: 'later' })])
    expect(await ids()).toEqual(expect.arrayContaining(['later', 'waits 0', 'waits 2']))
    expect(await ids()).not.toContain('waits 1')
  })

  it('A233 takes nothing from what was read before, and that takes nothing from it', async () => {
    const few = { rows: 5, bytes: 1_000_000 }
    const { store, jump, knows } = await opened({ event: few, known: few })
    await knows('s1')
    const ids = async (word: string) =>
      (await store.listEntries({ limit: 100 })).filter(({ id }) => id.startsWith(word)).length
    for (let i = 0; i < 4; i++) {
      jump(HOUR)
      await store.accept([eventOf('s1', { id: `known ${i}` })])
    }
    for (let i = 0; i < 50; i++) await store.accept([eventOf(`made up ${i}`, { id: `made up ${i}` })])
    expect(await ids('known')).toBe(4)
    const left = await ids('made up')
    for (let i = 4; i < 50; i++) await store.accept([eventOf('s1', { id: `known ${i}` })])
    expect([left > 0, await ids('made up')]).toEqual([true, left])
    expect(await ids('known')).toBeGreaterThan(0)
  })

  it('A234 is not an install of a business that has a subscription which was read', async () => {
    const { store, sql, knows } = await opened({ event: { rows: 2, bytes: 1_000_000 } })
    await knows('s1')
    await store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR })
    const installs = (businessUid: string, count: number) =>
      Array.from({ length: count }, () => installOf(businessUid))
    const known = businessOf('s1')
    for (const install of installs(known, 10)) await store.accept([install])
    await store.accept(installs('elsewhere', 1))
    const unread = await sql<{ key: string; count: number }>(
      "select key, sum(unread) as count from journal where name = 'application/installed' group by key order by key",
    )
    expect(unread.map(({ key, count }) => [key, Number(count)])).toEqual([
      [businessKey(known), 0],
      [businessKey('elsewhere'), 1],
    ])
    await expect(store.accept(installs('others', 3))).rejects.toMatchObject({ code: 'delivery_turned_away' })
  })

  it('A234 is not an install that came before the first read of its business, whatever became of it', async () => {
    const lab = await opened({})
    const { store, sql, knows } = lab
    await store.handleTopics({ topics: ['event:application/installed'], rescueMs: 0, retireMs: HOUR })
    const known = businessOf('s1')
    const made = [installOf('elsewhere'), eventOf('made up', { businessUid: known, refresh: null })]
    await store.accept([installOf(known), installOf(known), ...made])
    await sql(`update journal set status = 'dead' where id = (
      select max(id) from journal where key = '${businessKey(known)}')`)
    await sql(entries('done', MANY, 0))
    await sql('analyze')
    await sql(entries('pending', MANY))
    await sql(`insert into journal (id, kind, name, topic, key, business_uid, payload, status, attempts, received_at, unread)
      ${NUMBERS(MANY)} select 'older ' || n, 'event', 'x', 'event:x', 'k' || n, '${known}', '{}', 'pending', 0, 1, 1
      from numbers`)
    const asked = await lab.queriesOf(() => knows('s1'))
    const unread = await sql<{ key: string; count: number }>(
      "select key, sum(unread) as count from journal where topic <> 'event:x' group by key order by key",
    )
    expect(unread.map(({ key, count }) => [key, Number(count)])).toEqual([
      [businessKey(known), 0],
      [businessKey('elsewhere'), 1],
      [subscriptionKey('made up'), 1],
    ])
    const promotions = asked.filter(({ text }) => /place from|update journal set unread = 0/.test(text))
    // On SQLite a statement runs once for each of the two names.
    expect(promotions).toHaveLength(name === 'SQLite' ? 3 : 2)
    for (const query of promotions)
      if (name === 'SQLite') {
        const plan = (await planOfSqlite(query)).map(({ detail }) => detail).join('\n')
        expect(plan).toMatch(/INDEX (journal_(business|subscription)|sqlite_autoindex_journal_1)/)
        expect(plan).not.toMatch(/journal_status/)
      } else {
        const rows = (await planOfPostgres(lab, query)).filter((node) => node['Relation Name']).map(rowsOf)
        expect(Math.max(...rows)).toBeLessThanOrEqual(1_000)
      }
  })

  it('A234 is not what the first reads find among the newest, however many events named them before: some of each', async () => {
    const { store, sql } = await opened({ event: { rows: 100_000, bytes: 100_000_000 } })
    await store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR })
    await store.accept([
      eventOf('many'),
      eventOf('large'),
      ...Array.from({ length: 5 }, () => eventOf('sold')),
    ])
    const large = 'x'.repeat(60_000)
    await sql(earlierOf(subscriptionKey('many'), { subscription_uid: 'many' }, MANY))
    await sql(earlierOf(subscriptionKey('large'), { subscription_uid: 'large' }, 40, large))
    await sql(earlierOf(businessKey(businessOf('large')), { business_uid: businessOf('large') }, 40, large))
    const claims = await store.claimReads({ limit: 3, leaseMs: HOUR, except: [], urgencies: [1] })
    await Promise.all(claims.map((claim) => store.finishRead(claim, shows(claim, 'purchased'))))
    const found = await sql<Record<'key', string> & Record<'rows' | 'promoted' | 'bytes', number>>(
      `select key, count(*) as rows, sum(1 - unread) as promoted, sum((1 - unread) * length(payload)) as bytes
        from journal where kind = 'event' group by key`,
    )
    const of = (key: string) => {
      const { rows, promoted, bytes } = found.find((each) => each.key === key) ?? assert.fail(key)
      return { rows: Number(rows), promoted: Number(promoted), bytes: Number(bytes) }
    }
    const many = of(subscriptionKey('many'))
    const parts = [of(subscriptionKey('large')), of(businessKey(businessOf('large')))]
    expect(of(subscriptionKey('sold'))).toMatchObject({ rows: 5, promoted: 5 })
    expect([many.rows, ...parts.map(({ rows }) => rows)]).toEqual([MANY + 1, 41, 40])
    expect(many.promoted).toBeGreaterThan(0)
    expect(many.promoted).toBeLessThanOrEqual(1_000)
    for (const { promoted } of parts) expect(promoted).toBeGreaterThan(5)
    expect(parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(1024 * 1024 + large.length)
    const lanes = await sql<{ unread: number }>('select unread from lanes')
    expect(new Set(lanes.map(({ unread }) => unread))).toEqual(new Set([0]))
  })

  it('A232 is accepted without a question to the database until its allowance is nearly used up', async () => {
    const lab = await opened({})
    await lab.knows('s1')
    // What is stored is measured at first.
    await until('nothing is asked', async () => {
      const asked = await lab.queriesOf(async () => {
        for (let i = 0; i < 10; i++) await lab.store.accept([eventOf('s1'), eventOf('made up')])
      })
      return !asked.some(({ text }) => /^\s*select/.test(text))
    })
  })

  async function opened(most: Partial<Allowance>, at?: string) {
    const address = at ?? (await engine.freshAddress())
    const { clock, jump } = jumpingClock()
    const lab = await openStoreWithSql(address, { clock, most: { ...ROOMY, ...most } })
    const { store, sql } = lab
    const uids = async () =>
      (await store.listSubscriptions({ limit: 100 })).map(({ subscriptionUid }) => subscriptionUid)
    /** Lets a read show a subscription. */
    async function knows(uid: string) {
      await store.accept([eventOf(uid, { id: `first of ${uid}` })])
      const claim = await claimed(store)
      await store.finishRead(claim, shows(claim, 'purchased'))
      await sql(`delete from journal where id = 'first of ${uid}' or kind = 'change'`)
    }
    return { ...lab, jump, address, uids, knows }
  }
})

describe('a flood beyond the allowance', () => {
  it('A60 costs the database a few statements, however many deliveries are refused', async () => {
    const { engine, calls } = countedEngine()
    const most = { ...ROOMY, event: { rows: 5, bytes: 1_000_000 } }
    const store = createSqlStore(engine, systemClock, { most })
    await store.open()
    await store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR })
    await fill(store, 5)
    await expect(fill(store, 1)).rejects.toMatchObject({ code: 'delivery_turned_away' })
    const made = await calls(async () => {
      const sent = Array.from({ length: 200 }, (_, i) => store.accept([eventOf(`made up ${i}`)]))
      const refused = (await Promise.allSettled(sent)).filter(({ status }) => status === 'rejected')
      expect(refused).toHaveLength(200)
    })
    expect(made).toBeLessThan(20)
    await store.close()
  })

  it('A63 of unrecognised deliveries beside others measures nothing for each of them', async () => {
    const { engine, calls } = countedEngine()
    const most = { ...ROOMY, unrecognised: { rows: 2, bytes: 1_000_000 } }
    const store = createSqlStore(engine, systemClock, { most })
    await store.open()
    for (let i = 0; i < 3; i++) await store.accept([unrecognised(`first ${i}`)])
    await until('what is stored was measured', async () => (await calls(() => sleep(50))) === 0)
    const made = await calls(async () => {
      for (let i = 0; i < 30; i++) {
        await store.accept([eventOf(`s${i}`)])
        expect(await store.accept([unrecognised(`u${i}`)])).toEqual([`u${i}`])
      }
    })
    expect(made).toBe(0)
    await store.close()
  })

  it('is measured in the background, which ends before the store closes', async () => {
    const { engine, hold } = countedEngine()
    let hasEnded = false
    const closing: typeof engine = {
      ...engine,
      async close() {
        hasEnded = true
        await engine.close()
      },
    }
    const store = createSqlStore(closing, systemClock, { most: ROOMY })
    await store.open()
    const release = hold()
    await store.accept([eventOf('s1')])
    const closed = store.close()
    await sleep(50)
    expect(hasEnded).toBe(false)
    release()
    await closed
    expect(hasEnded).toBe(true)
  })

  it('A60 that waits long for room is refused as such, and stored all the same', async () => {
    const { engine, hold } = countedEngine()
    const most = { ...ROOMY, event: { rows: 10, bytes: 1_000_000 } }
    const store = createSqlStore(engine, systemClock, { most })
    await store.open()
    await fill(store, 9)
    const release = hold()
    await expect(store.accept([eventOf('late', { id: 'late' })])).rejects.toMatchObject({
      code: 'delivery_turned_away',
    })
    release()
    await until('it is stored', async () =>
      (await store.listEntries({ limit: 100 })).some(({ id }) => id === 'late'),
    )
    await store.close()
  })
})

/** An engine whose calls are counted, and whose reads wait between `hold()` and the call of what it returns. */
function countedEngine() {
  const engine = createSqliteEngine({ path: ':memory:', clock: systemClock })
  let count = 0
  let held: Promise<void> | undefined
  const counted: typeof engine = {
    ...engine,
    async read(work) {
      count++
      await held
      return engine.read(work)
    },
    write(work) {
      count++
      return engine.write(work)
    },
  }
  return {
    engine: counted,
    async calls(work: () => Promise<unknown>) {
      const before = count
      await work()
      return count - before
    },
    hold() {
      const gated = gate()
      held = gated.opened
      return () => {
        held = undefined
        gated.open()
      }
    },
  }
}

/** Entries of events; `unread` 1: that may be made up. */
function entries(status: string, count: number, unread = 1): string {
  return `insert into journal (id, kind, name, topic, key, payload, status, attempts, received_at, unread)
    ${NUMBERS(count)} select '${status} ${unread} ' || n, 'event', 'x', 'event:x', '${status} ' || n, '{}', '${status}', 0, 1, ${unread} from numbers`
}

/** Entries of events that came before all others, whose key is `key`. */
function earlierOf(key: string, named: Record<string, string>, count: number, payload = '{}'): string {
  return `insert into journal
      (id, kind, name, topic, key, ${Object.keys(named)}, payload, status, attempts, received_at, unread)
    ${NUMBERS(count)} select '${key} ' || n, 'event', 'x', 'event:x', '${key}', '${Object.values(named)}', '${payload}', 'pending', 0, n, 1
    from numbers`
}

async function fill(store: { accept(events: NewEvent[]): Promise<unknown> }, count: number) {
  for (let i = 0; i < count; i++) await store.accept([eventOf(`waiting ${i}`)])
}

function installOf(businessUid: string): NewEvent {
  return eventOf('', {
    name: 'application/installed',
    key: businessKey(businessUid),
    subscriptionUid: null,
    businessUid,
    refresh: null,
  })
}

function unrecognised(id: string, payload = '{"entity_name":"app","event_type":"moved"}'): NewEvent {
  return {
    id,
    kind: 'unrecognised',
    name: '',
    key: id,
    businessUid: null,
    subscriptionUid: null,
    payload,
    issues: ['unknown'],
    refresh: null,
  }
}
