import { expect, it } from '@jest/globals'
import { eventOf, known, LONG } from '../../support/conformance/lab.js'
import { ALL_URGENCIES } from '../../support/conformance/reads/read-calls.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { until } from '../../support/until.js'

const engines = Object.fromEntries(ENGINE_NAMES.map((name) => [name, useEngine(name)]))

it.each(ENGINE_NAMES)(
  'E22 what a claim has leased on %s is handed out before made-up rows of its business are put off',
  async (name) => {
    const { store, engine } = await openStoreWithSql(
      await (engines[name] as (typeof engines)[0]).freshAddress(),
    )
    await known(store, 'read before', 'purchased', 'b2')
    await store.accept([eventOf('read before', { businessUid: 'b2' })])
    await store.accept(
      Array.from({ length: 1_500 }, (_, i) => eventOf(`made up ${i}`, { businessUid: 'b1' })),
    )
    await until('it is due', async () => {
      const [row] = await store.subscriptionsOf('b2')
      return (row?.refreshAt ?? Number.POSITIVE_INFINITY) <= Date.now()
    })
    let transactions = 0
    const { write } = engine
    engine.write = (work) => {
      transactions++
      return write(work)
    }
    const rest = { leaseMs: LONG, exceptUnread: ['b1'], urgencies: ALL_URGENCIES }
    let isPutOff = false
    const onPutOff = () => {
      isPutOff = true
    }
    const claims = await store.claimReads({ ...rest, limit: 4, except: [], onPutOff })
    expect(claims.map(({ id }) => id)).toEqual(['read before'])
    expect(transactions).toBe(1)
    expect(isPutOff).toBe(true)
    // The next claim puts off the rest, and says nothing.
    isPutOff = false
    expect(await store.claimReads({ ...rest, limit: 4, except: ['b2'], onPutOff })).toEqual([])
    expect(transactions).toBeGreaterThan(5)
    expect(isPutOff).toBe(false)
  },
)
