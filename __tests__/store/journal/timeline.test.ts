import { describe, expect, it } from '@jest/globals'
import { MINUTE } from '../../../lib/base/clock.js'
import { auditUid } from '../../../lib/store/journal/audit.js'
import { eventOf } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

describe.each(ENGINE_NAMES)('the order of entries on %s', (name) => {
  const engine = useEngine(name)

  it('is that of their numbers where their times are equal, and each page begins where the one before ended', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const ids = ['e1', 'e2', 'e3', 'e4']
    await store.accept(ids.map((id) => eventOf('s1', { id, key: id, businessUid: 'b1' })))
    await store.recordAction({ id: 'a1', name: 'look', businessUid: 'b1', payload: '{}' })
    for (const id of ['x1', 'x2'])
      await store.recordAction({ id, name: 'look', businessUid: auditUid('b1'), payload: '{}' })
    const at = Date.now() - MINUTE
    await sql(`update journal set received_at = ${at}`)
    await sql(`update journal set settled_at = ${at}, status = 'done' where kind <> 'action'`)
    const newestFirst = [...ids].reverse()

    const timeline = [
      'x2 entry',
      'x1 entry',
      'a1 entry',
      ...newestFirst.flatMap((id) => [`${id} outcome`, `${id} entry`]),
    ]
    for (const limit of [1, 2, 3, 100]) {
      const seen: string[] = []
      for (let page = await store.timelineOf('b1', { limit }); page.length > 0; ) {
        seen.push(...page.map(({ entryId, of }) => `${entryId} ${of}`))
        page = await store.timelineOf('b1', { limit, before: page.at(-1)?.place as never })
      }
      expect(seen).toEqual(timeline)
    }
    const listed = await store.listEntries({ subscriptionUid: 's1' })
    expect(listed.map(({ id }) => id)).toEqual(newestFirst)
  })

  it('is searched for ten minutes beyond a time, because transactions commit in any order', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const count = 600
    await store.accept(Array.from({ length: count }, (_, i) => eventOf('s1', { id: `e${i}`, key: `k${i}` })))
    await sql(`update journal set received_at = received_at - ${5 * MINUTE} where id <> 'e0'`)
    const found = await store.listEntries({ since: Date.now() - MINUTE })
    expect(found.map(({ id }) => id)).toEqual(['e0'])
  })
})
