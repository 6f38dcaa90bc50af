import { describe, expect, it } from '@jest/globals'
import { EVERY_TOPIC, eventOf, handling, LONG, leasedEntry, SHORT } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('a claim whose answer was lost, on %s', (name) => {
  const engine = useEngine(name)

  it('of a suspect is no lapse of it', async () => {
    const { store, engine: own } = await openStoreWithSql(await engine.freshAddress())
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1', { id: 'e1', key: 'k' })])
    await leasedEntry(store, { leaseMs: SHORT })
    const lanes = { topics: EVERY_TOPIC, exceptKeys: [] }
    await until(
      'it is suspect',
      async () => (await store.dueSuspect({ kinds: ['lane'], ...lanes })) === 'lane',
    )
    const write = own.write
    own.write = async (work) => {
      await write(work)
      throw new Error('the answer is lost')
    }
    await expect(store.claimSuspectLane({ leaseMs: LONG, ...lanes })).rejects.toThrow('the answer is lost')
    own.write = write
    expect(await store.claimSuspectLane({ leaseMs: LONG, ...lanes })).toMatchObject({ id: 'k', lapses: 0 })
  })
})
