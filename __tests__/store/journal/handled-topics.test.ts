import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, systemClock } from '../../../lib/base/clock.js'
import { HANDLED_FOR_MS } from '../../../lib/store/port/journal.js'
import type { Store } from '../../../lib/store/port/store.js'
import { type Connection, sql } from '../../../lib/store/sql/sql.js'
import { UPDATE } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql, type StoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'

const COUNT = 3_000

describe.each(ENGINE_NAMES)('many events that came before their handler, on %s', (name) => {
  const engine = useEngine(name)

  it('do not delay close()', async () => {
    const address = await engine.freshAddress()
    const { store, engine: own } = await openStoreWithSql(address)
    await store.accept(events())
    const read = own.read
    own.read = (work) => {
      void store.close()
      return read(work)
    }
    await named(store)
    await store.close()
    expect(await pending(await openStoreWithSql(address))).toBeLessThan(COUNT)
  })

  it('all become pending, also when each transaction had to run twice', async () => {
    const opened = await openStoreWithSql(await engine.freshAddress())
    const { store, engine: own } = opened
    await store.accept(events())
    const write = own.write
    own.write = async (work) => {
      const undone = new Error('the first try is undone')
      const first = write(async (trx) => {
        await work(trx)
        throw undone
      })
      await expect(first).rejects.toThrow(undone.message)
      return write(work)
    }
    await named(store)
    expect(await pending(opened)).toBe(COUNT)
  })

  it('all become pending for the next process, if the first one ends before it has done so', async () => {
    const address = await engine.freshAddress()
    const first = await openStoreWithSql(address)
    await first.store.accept(events())
    await first.sql(`update journal set received_at = received_at - ${2 * MINUTE}`)
    const write = first.engine.write
    let batches = 0
    first.engine.write = (work) =>
      write(async (trx) => {
        const result = await work(trx)
        if (++batches === 5) throw new Error('it ends here')
        return result
      })
    await expect(named(first.store)).rejects.toThrow('it ends here')
    await first.sql(`update handlers set seen_at = seen_at - ${2 * MINUTE}`)
    await first.store.close()
    const next = await openStoreWithSql(address)
    await named(next.store)
    expect(await pending(next)).toBe(COUNT)
  })

  it('H217 become pending for the next process as far back as for the one that added their handler and ended before it had done so', async () => {
    const address = await engine.freshAddress()
    const first = await openStoreWithSql(address)
    const old = eventOf('old', 'b1')
    await first.store.handleTopics({ topics: ['change'], rescueMs: MINUTE, retireMs: HANDLED_FOR_MS })
    await first.sql(
      `update handlers set seen_at = seen_at - ${9 * MINUTE}, rescued_at = rescued_at - ${9 * MINUTE}`,
    )
    // Some came before the first process began, the others while it ran.
    await first.store.accept([old])
    await first.sql(`update journal set received_at = received_at - ${8 * MINUTE}`)
    await first.store.accept(events())
    await first.sql(`update journal set received_at = received_at - ${5 * MINUTE}`)
    const write = first.engine.write
    first.engine.write = (work) =>
      write(async (trx) => {
        const result = await work(trx)
        const [{ due } = { due: 0 }] = await count(trx)
        if (Number(due) > 500) throw new Error('it ends here')
        return result
      })
    // It has run for six minutes, names the topic again after a failure, and ends.
    for (let i = 0; i < 2; i++) await expect(named(first.store, 7 * MINUTE)).rejects.toThrow('it ends here')
    await first.store.close()
    const next = await openStoreWithSql(address)
    await named(next.store)
    expect(await pending(next)).toBe(COUNT)
    expect(await next.store.listEntries({ status: 'unhandled' })).toMatchObject([{ id: old.id }])
    // It is done, so a later process reaches no further than its own start.
    await named(next.store, HOUR)
    expect(await pending(next)).toBe(COUNT + 1)
  })

  it('all become pending, if their process begins together with the first one, which has other handlers', async () => {
    const address = await engine.freshAddress()
    const first = await openStoreWithSql(address)
    await first.store.accept(events())
    await first.sql(`update journal set received_at = received_at - ${2 * MINUTE}`)
    await first.store.handleTopics({ topics: ['change'], rescueMs: MINUTE, retireMs: HANDLED_FOR_MS })
    // Not every SQLite library lets two processes share a file.
    await first.store.close()
    const second = await openStoreWithSql(address)
    await named(second.store)
    expect(await pending(second)).toBe(COUNT)
  })

  it('do not let its topic look abandoned to other processes meanwhile', async () => {
    let aheadMs = 0
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
    const { store, engine: own, queriesOf } = await openStoreWithSql(await engine.freshAddress(), { clock })
    await store.accept(events())
    const write = own.write
    own.write = (work) => {
      aheadMs += MINUTE
      return write(work)
    }
    const queries = await queriesOf(() => named(store))
    const batches = queries.filter(({ text }) => /update journal set status = 'pending'/.test(text)).length
    expect(batches).toBeGreaterThan(10)
    expect(queries.filter(({ text }) => /insert into handlers/.test(text)).length).toBeGreaterThan(batches)
  })
})

function events() {
  return Array.from({ length: COUNT }, (_, i) => ({ ...eventOf(`s${i}`, 'b1'), refresh: null }))
}

async function pending(of: StoreWithSql) {
  const rows = await of.sql<{ count: number }>(
    `select count(*) as count from journal where status = 'pending'`,
  )
  return Number(rows[0]?.count)
}

const count = (trx: Connection) =>
  sql<{ due: number }>`select count(*) as due from journal where status = 'pending'`.execute(trx)

const named = (store: Store, rescueMs: number = MINUTE) =>
  store.handleTopics({ topics: [UPDATE], rescueMs, retireMs: HANDLED_FOR_MS })
