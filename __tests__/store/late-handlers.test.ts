import { describe, expect, it } from '@jest/globals'
import { MINUTE, systemClock } from '../../lib/base/clock.js'
import { HANDLED_FOR_MS } from '../../lib/store/port/journal.js'
import type { Store } from '../../lib/store/port/store.js'
import { UPDATE } from '../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { eventOf } from '../support/events.js'

const COUNT = 3_000

describe.each(ENGINE_NAMES)('many events that came before their handler, on %s', (name) => {
  const engine = useEngine(name)

  it('do not delay close()', async () => {
    const { store, engine: own } = await openStoreWithSql(await engine.freshAddress())
    await store.accept(events())
    const read = own.read
    let reads = 0
    own.read = (work) => {
      reads++
      void store.close()
      return read(work)
    }
    await named(store)
    expect(reads).toBe(1)
  })

  it('all become pending, also when each transaction had to run twice', async () => {
    const { store, sql, engine: own } = await openStoreWithSql(await engine.freshAddress())
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
    const rows = await sql<{ count: number }>(
      `select count(*) as count from journal where status = 'pending'`,
    )
    expect(Number(rows[0]?.count)).toBe(COUNT)
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

const named = (store: Store) =>
  store.handleTopics({ topics: [UPDATE], rescueMs: MINUTE, retireMs: HANDLED_FOR_MS })
