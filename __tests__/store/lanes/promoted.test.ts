import { describe, expect, it } from '@jest/globals'
import { MINUTE } from '../../../lib/base/clock.js'
import { businessKey } from '../../../lib/store/port/store.js'
import { EVERY_TOPIC, eventOf, handling, known } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql, type StoreWithSql } from '../../support/engines/store-with-sql.js'

const LATE = 1_000
const ofSubscription = () => eventOf('s1', { businessUid: 'b1' })
const ofBusiness = () =>
  eventOf('any', { businessUid: 'b1', subscriptionUid: null, key: businessKey('b1'), refresh: null })

/** What makes the lane one of a subscription that was read. */
const WAYS: Record<string, (db: StoreWithSql) => Promise<unknown>> = {
  'the first read of its subscription': ({ store }) => known(store, 's1', 'purchased', 'b1'),
  'an event of its subscription': async ({ store, sql }) => {
    await sql('update subscriptions set unread = 0')
    await store.accept([ofSubscription()])
  },
  'an event of its business': async ({ store, sql }) => {
    await sql('update subscriptions set unread = 0')
    await store.accept([ofBusiness()])
  },
}

describe.each(ENGINE_NAMES)('on %s a lane with an event of a subscription that was never read', (name) => {
  const engine = useEngine(name)

  it.each(Object.keys(WAYS))(
    'is due from now on in its new class after %s, unless it is leased or suspect',
    async (way) => {
      const outcomes = []
      for (const state of ['suspect = 0', "lease_token = 'held'", 'suspect = 1']) {
        const db = await openStoreWithSql(await engine.freshAddress())
        await handling(db.store, EVERY_TOPIC)
        await db.store.accept([ofSubscription(), ofBusiness()])
        await db.sql(`update lanes set due_at = ${LATE}, ${state}`)
        const now = Date.now()
        await WAYS[way]?.(db)
        const lanes = await db.sql<{ due: number }>('select due_at as due from lanes where unread = 0')
        expect(lanes).toHaveLength(way.startsWith('the first read') ? 2 : 1)
        outcomes.push(lanes.every(({ due }) => (state === 'suspect = 0' ? due > now - MINUTE : due === LATE)))
      }
      expect(outcomes).toEqual([true, true, true])
    },
  )
})
