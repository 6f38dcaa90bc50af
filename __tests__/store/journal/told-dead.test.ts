import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import { eventOf, UPDATE } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

const NOTHING = { eventsMs: HOUR, changesMs: HOUR, actionsMs: HOUR, deadMs: HOUR }

describe.each(ENGINE_NAMES)('an entry that a prune has ended as dead, on %s', (name) => {
  const engine = useEngine(name)

  it.each([
    ['is in one result, also if the answer to its transaction was lost', false],
    ['is in none if it was replayed before it could be reported', true],
  ])('%s', async (_what, isReplayed) => {
    const { store, engine: own } = await openStoreWithSql(await engine.freshAddress())
    await store.handleTopics({ topics: [UPDATE], rescueMs: 0, retireMs: HOUR })
    await store.accept([eventOf('s1', { id: 'e1' })])
    await store.handleTopics({ topics: [], rescueMs: 0, retireMs: -1 })
    const write = own.write
    own.write = async (work) => {
      await write(work)
      throw new Error('the answer is lost')
    }
    await expect(store.prune({ ...NOTHING, eventsMs: -1 })).rejects.toThrow('the answer is lost')
    own.write = write
    if (isReplayed) await store.replayEntry('e1')
    const told: string[] = []
    for (let i = 0; i < 3; i++) told.push(...(await store.prune(NOTHING)).dead.map(({ id }) => id))
    expect(told).toEqual(isReplayed ? [] : ['e1'])
  })
})
