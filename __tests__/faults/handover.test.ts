import { describe, expect, it } from '@jest/globals'
import { type Clock, HOUR, MINUTE } from '../../lib/clock.js'
import { DONE, EVERY_TOPIC, ending, finish, handling, leasedEntries } from '../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../support/engines.js'
import { eventOf } from '../support/events.js'
import { jumpingClock } from '../support/jumping-clock.js'
import { openStoreWithSql } from '../support/store-with-sql.js'
import { until } from '../support/until.js'

const UPDATE = 'event:purchasable_subscription/update'

describe.each(ENGINE_NAMES)('the queue on %s', (engineName) => {
  const engine = useEngine(engineName)
  const open = async (clock?: Clock) => openStoreWithSql(await engine.freshAddress(), clock ? { clock } : {})

  it('H30 leaves a handed-over entry in its lane for a live process that is not ready yet', async () => {
    const { store, sql } = await open()
    await handling(store, [UPDATE])
    await store.accept([eventOf('s1')])
    // The same state as while the process hands over the waiting entries.
    await sql('update handlers set ready = 0')
    // Another process, with other handlers.
    await handling(store, ['event:other'])
    expect(await store.listEntries({})).toMatchObject([{ status: 'pending' }])
  })

  it('H31 does not retire a topic whose process takes long to hand over its waiting entries', async () => {
    const { clock, jump } = jumpingClock()
    const { store, sql } = await open(clock)
    await sql(`insert into handlers values ('${UPDATE}', 0, 0)`)
    for (let batch = 0; batch < 3; batch++)
      await store.accept(Array.from({ length: 300 }, (_, i) => eventOf(`s${batch}-${i}`)))
    const topics = [UPDATE, 'change']
    const handed = store.handleTopics({ topics, rescueMs: 0, retireMs: 3 * MINUTE })
    await until('the handover has begun', async () => (await store.counts()).pending > 0)
    if (engineName === 'SQLite') jump(4 * MINUTE)
    else await sql(`update handlers set seen_at = seen_at - ${4 * MINUTE}`)
    await handed
    expect(
      await sql("select topic, ready from handlers where ready = 1 and topic <> 'worker' order by topic"),
    ).toMatchObject(['change', UPDATE].map((topic) => ({ topic, ready: 1 })))
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
    expect(await store.listEntries({ status: 'waiting' })).toMatchObject([{ id: head.id, attempts: 1 }])
  })

  it('H35 releases waiting events of one key in order, whatever their names', async () => {
    const { store } = await open()
    const [first, second] = [
      { ...eventOf('s1'), name: 'purchasable_subscription/updated' },
      { ...eventOf('s1'), name: 'purchasable_subscription/create' },
    ]
    await store.accept([first])
    await store.accept([second])
    let isHandled = false
    const handled = store.handleTopics({ topics: ['event:*'], rescueMs: 0, retireMs: HOUR }).then(() => {
      isHandled = true
    })
    const released: string[] = []
    while (!isHandled || released.length === 0) {
      const claimed = await leasedEntries(store, { topics: ['event:*'], entryLimit: 100 })
      released.push(...claimed.map(({ id }) => id))
    }
    await handled
    expect(released).toEqual([first.id, second.id])
  })
})
