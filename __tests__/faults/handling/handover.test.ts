import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, MINUTE } from '../../../lib/base/clock.js'
import type { NewEvent, Store } from '../../../lib/store/port/store.js'
import { type Connection, sql as statement } from '../../../lib/store/sql/sql.js'
import { DONE, EVERY_TOPIC, ending, finish, handling, leasedEntries } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'

const UPDATE = 'event:purchasable_subscription/update'

describe.each(ENGINE_NAMES)('the queue on %s', (engineName) => {
  const engine = useEngine(engineName)
  const open = async () => openStoreWithSql(await engine.freshAddress())

  it('H30 leaves an entry in its lane whose topic a live process has, and gives a set aside one back to a process that was frozen', async () => {
    const { store, sql } = await open()
    await handling(store, [UPDATE])
    await store.accept([eventOf('s1')])
    const look = () => store.handleTopics({ topics: ['event:other'], rescueMs: 0, retireMs: 3 * MINUTE })
    await look()
    expect(await store.listEntries({})).toMatchObject([{ status: 'pending' }])
    await sql(`update handlers set seen_at = seen_at - ${4 * MINUTE}`)
    await look()
    expect(await store.listEntries({})).toMatchObject([{ status: 'unhandled' }])
    // It goes on: its topics are not new.
    await handling(store, [UPDATE], 0)
    expect(await store.listEntries({})).toMatchObject([{ status: 'pending' }])
  })

  it('H31 makes events pending that came within a time, of all that no process had a handler for', async () => {
    const address = await engine.freshAddress()
    const first = await openStoreWithSql(address)
    await handling(first.store, ['change'], MINUTE)
    const [old, recent, other] = [eventOf('s1'), eventOf('s1'), { ...eventOf('s1'), name: 'other' }]
    await first.store.accept([old])
    await first.sql(`update journal set received_at = received_at - ${HOUR}`)
    await first.sql(`update handlers set rescued_at = rescued_at - ${HOUR}`)
    await first.store.accept([recent, other])
    await first.store.close()
    const { store } = await openStoreWithSql(address)
    await handling(store, ['change', UPDATE], MINUTE)
    const pending = await store.listEntries({ status: 'pending' })
    expect(pending.map(({ id }) => id)).toEqual([recent.id])
    expect(await leasedEntries(store)).toMatchObject([{ id: recent.id }])
  })

  it('H32 does not try an entry before its time because an earlier entry was replayed', async () => {
    const { store } = await open()
    await handling(store, EVERY_TOPIC)
    const [first, second] = [eventOf('s1'), eventOf('s1')]
    await store.accept([first])
    await finish(
      store,
      (await leasedEntries(store)).map((each) => ending(each, DONE)),
    )
    await store.accept([second])
    const retry = { kind: 'retry', inMs: HOUR, error: 'later' } as const
    await finish(
      store,
      (await leasedEntries(store)).map((each) => ending(each, retry)),
    )
    await store.replayEntry(first.id)
    const replayed = await leasedEntries(store, { entryLimit: 100 })
    expect(replayed.map(({ id }) => id)).toEqual([first.id])
    await finish(
      store,
      replayed.map((each) => ending(each, DONE)),
    )
    expect(await leasedEntries(store)).toEqual([])
  })

  it('H33 counts the lapses of a head that was returned untried', async () => {
    const { store } = await open()
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1'), eventOf('s1')])
    await leasedEntries(store, { leaseMs: -1 })
    // Alone, and ends the process.
    await leasedEntries(store, { leaseMs: -1 })
    const [lapsed] = await leasedEntries(store, { entryLimit: 100 })
    expect(lapsed).toMatchObject({ lapses: 1, attempt: 2 })
    if (!lapsed) throw new Error('nothing')
    await finish(store, [{ id: lapsed.key, leaseToken: lapsed.leaseToken, results: [], keepLease: false }])
    expect(await leasedEntries(store, { entryLimit: 100 })).toMatchObject([
      { id: lapsed.id, lapses: 1, attempt: 2 },
    ])
  })

  it('H34 frees the entries behind a head that has lost its handler, even if its next try is far away', async () => {
    const { store, sql } = await open()
    await handling(store, EVERY_TOPIC)
    const [head, next] = [eventOf('s1'), { ...eventOf('s1'), kind: 'unrecognised', name: '' } as const]
    await store.accept([head, next])
    const retry = { kind: 'retry', inMs: 24 * HOUR, error: 'later' } as const
    await finish(
      store,
      (await leasedEntries(store)).map((each) => ending(each, retry)),
    )
    await sql('update handlers set seen_at = 0')
    // The next version of the app has a handler only for the other topic.
    await store.handleTopics({ topics: ['unrecognised'], rescueMs: 0, retireMs: 3 * MINUTE })
    expect(await leasedEntries(store, { topics: ['unrecognised'] })).toMatchObject([{ id: next.id }])
    expect(await store.listEntries({ status: 'unhandled' })).toMatchObject([{ id: head.id, attempts: 1 }])
  })

  it('H35 makes unhandled events of one key pending in order, whatever their names', async () => {
    const { store } = await open()
    const [first, second] = [
      { ...eventOf('s1'), name: 'purchasable_subscription/updated' },
      { ...eventOf('s1'), name: 'purchasable_subscription/create' },
    ]
    await store.accept([first])
    await store.accept([second])
    await handling(store, ['event:*'], HOUR)
    const claimed = await leasedEntries(store, { topics: ['event:*'], entryLimit: 100 })
    expect(claimed.map(({ id }) => id)).toEqual([first.id, second.id])
  })

  it('H218 reports no lease that ran out of a topic that no process has, and deletes what an erasure has emptied', async () => {
    const { store, sql } = await open()
    await handling(store, EVERY_TOPIC)
    await store.accept(['kept', 'erased'].map((key) => ({ ...eventOf(key, key), ...ODD, key })))
    await leasedEntries(store)
    await store.erase('erased', { id: 'erasure', name: 'erase', businessUid: 'erased', payload: '{}' })
    await sql(`update lanes set due_at = due_at - ${HOUR}`)
    const overdueMs = async () => (await store.counts()).oldestPendingMs
    expect(await overdueMs()).toBeGreaterThan(50 * MINUTE)
    await sql(`update handlers set seen_at = seen_at - ${HOUR}`)
    await handling(store, ['event:other'])
    expect(await overdueMs()).toBeNull()
    await pruneAll(store)
    expect(await sql('select key from lanes')).toEqual([{ key: 'kept' }])
    // The other one is taken up when a process has its topic again.
    expect(await leasedEntries(store)).toMatchObject([{ key: 'kept' }])
  })

  it('H218 keeps no lane whose entries have ended with their retention after its lease ran out', async () => {
    const { store, sql } = await open()
    await handling(store, EVERY_TOPIC)
    const [old, recent] = [eventOf('s2'), eventOf('s2')].map((each) => ({ ...each, ...ODD, key: 'b' }))
    await store.accept([{ ...eventOf('s1'), ...ODD, key: 'a' }, old, recent] as NewEvent[])
    expect(await leasedEntries(store)).toHaveLength(2)
    await sql(`update lanes set due_at = due_at - ${HOUR}`)
    await sql(`update handlers set seen_at = seen_at - ${HOUR}`)
    await sql(`update journal set received_at = received_at - ${8 * DAY} where id <> '${recent?.id}'`)
    await pruneAll(store)
    expect(await store.listEntries({ status: 'pending' })).toMatchObject([{ id: recent?.id }])
    expect(await sql('select key, suspect from lanes')).toEqual([{ key: 'b', suspect: 1 }])
    await sql(`update journal set received_at = received_at - ${8 * DAY}`)
    await pruneAll(store)
    expect(await sql('select key from lanes')).toEqual([])
  })

  it('H219 does not claim to have replayed an entry that is deleted meanwhile', async () => {
    const { store, sql, engine: own } = await open()
    await handling(store, EVERY_TOPIC)
    const entry = eventOf('s1')
    await store.accept([entry])
    await finish(
      store,
      (await leasedEntries(store)).map((each) => ending(each, DONE)),
    )
    const write = own.write
    own.write = (work) =>
      write((trx) =>
        work({
          ...trx,
          async query(query) {
            if (/update journal set attempts/.test(query.text)) await sqlIn(trx, entry.id)
            return trx.query(query)
          },
        }),
      )
    expect(await store.replayEntry(entry.id)).toBe(false)
    expect(await sql('select key from lanes')).toEqual([])
  })

  it('H221 keeps an old entry whose replay finds no handler for a whole retention from then on', async () => {
    const { store, sql } = await open()
    await handling(store, EVERY_TOPIC)
    const entry = eventOf('s1')
    await store.accept([entry])
    const dead = { kind: 'dead', error: 'gave up' } as const
    await finish(
      store,
      (await leasedEntries(store)).map((each) => ending(each, dead)),
    )
    await sql(`update journal set received_at = received_at - ${8 * DAY}`)
    await sql('update handlers set seen_at = 0')
    expect(await store.replayEntry(entry.id)).toBe(true)
    await store.handleTopics({ topics: ['unrecognised'], rescueMs: 0, retireMs: 3 * MINUTE })
    const status = async () => (await store.getEntry(entry.id))?.status
    expect(await status()).toBe('unhandled')
    await pruneAll(store)
    expect(await status()).toBe('unhandled')
    await sql(`update journal set due_at = due_at - ${8 * DAY}`)
    await pruneAll(store)
    expect(await status()).toBe('dead')
  })

  it('H221 ends every other entry at its time, however many older ones were replayed and find no handler', async () => {
    const { store, sql } = await open()
    const events = Array.from({ length: 230 }, (_, i) => ({ ...eventOf(`s${i}`), id: `event ${i}` }))
    const odd = events.map((each, i) => ({ ...each, ...ODD, id: `odd ${i}` }))
    const behind = [
      { ...eventOf('s'), id: 'event', name: 'other' },
      { ...eventOf('s'), ...ODD, id: 'odd' },
    ]
    await store.accept([...events, ...odd])
    await store.accept(behind)
    for (const { id } of [...events, ...odd, { id: 'odd' }]) await store.replayEntry(id)
    await sql(`update journal set received_at = received_at - ${8 * DAY}`)
    await sql(`update journal set due_at = due_at - ${8 * DAY} where id = 'odd'`)
    await store.handleTopics({ topics: ['change'], rescueMs: 0, retireMs: 3 * MINUTE })
    await pruneAll(store)
    expect(await store.getEntry('event')).toBeUndefined()
    expect(await store.getEntry('odd')).toBeUndefined()
    const left = await sql(
      'select kind, status, count(*) as rows from journal group by kind, status order by kind',
    )
    expect(left.map(({ kind, status, rows }) => [kind, status, Number(rows)])).toEqual([
      ['event', 'unhandled', 230],
      ['unrecognised', 'pending', 230],
    ])
  })
})

/** What makes an unrecognised delivery of an event. */
const ODD = { kind: 'unrecognised', name: '', refresh: null } as const

async function pruneAll(store: Store) {
  const retention = { eventsMs: 7 * DAY, changesMs: 90 * DAY, actionsMs: HOUR, deadMs: 30 * DAY }
  while ((await store.prune(retention)).rows > 0);
}

const sqlIn = (trx: Connection, id: string) => statement`delete from journal where id = ${id}`.execute(trx)
