import { describe, expect, it } from '@jest/globals'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption, wrapStore } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { createScene, OUR_ITEM } from '../../support/scene.js'
import { addDeadEntries, addSubscriptions } from '../../support/scenes/large-tables.js'

const SUBSCRIPTIONS = 260

describe.each(ENGINE_NAMES)('the export of a business with many subscriptions on %s', (name) => {
  const engine = useEngine(name)

  it('has every entry of them once, oldest first, and asks for those of several at a time', async () => {
    const opened = await openStoreWithSql(await engine.freshAddress())
    await addSubscriptions(opened, SUBSCRIPTIONS, OUR_ITEM)
    await addDeadEntries(opened, SUBSCRIPTIONS)
    await opened.sql(`update subscriptions set business_uid = 'b1'`)
    // Of one subscription there are more than a page has, and half of all name no business.
    await opened.sql(`update journal set subscription_uid = 's-0000001' where seq % 2 = 0`)
    await opened.sql(`update journal set business_uid = case when seq % 4 < 2 then 'b1' end`)
    let lists = 0
    const counted = wrapStore(opened.store, (method, call) => {
      if (method === 'listEntries') lists++
      return call()
    })
    const { marketplace } = await createScene({ store: storeOption(counted), worker: false })
    const { subscriptions, journal } = await marketplace.businesses.export('b1')
    expect(subscriptions).toHaveLength(SUBSCRIPTIONS)
    const inserted = await opened.sql<{ id: string }>(
      'select id from journal order by received_at, id -- returning',
    )
    expect(journal.map(({ id }) => id)).toEqual(inserted.map(({ id }) => id))
    expect(lists).toBeLessThan(SUBSCRIPTIONS / 10)

    const pieces: string[] = []
    for await (const piece of marketplace.businesses.exportText('b1')) pieces.push(piece)
    const text = JSON.parse(pieces.join(''))
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
    expect(text.subscriptions).toEqual(subscriptions)
    expect(text.journal.sort(byId)).toEqual(journal.sort(byId))
    expect(pieces.length).toBeGreaterThan(1)
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(70_000)
  })
})
