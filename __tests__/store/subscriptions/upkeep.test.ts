import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../../lib/base/clock.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

describe.each(ENGINE_NAMES)('prune on %s', (name) => {
  const engine = useEngine(name)

  it('deletes the 100,001st subscription that the platform has denied, and those before it, unless they are being read', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const now = Date.now()
    // A statement ends after five seconds, which all rows together may take on a busy machine.
    for (let n = 1; n <= 100_004; n += 20_000)
      await sql(`
        insert into subscriptions (subscription_uid, business_uid, generation, settled_generation, requested_at, refresh_at,
          urgency, cause, unread, verifying, failure, lapses, quiet_until_read, created_at, lease_token)
        with recursive numbers(n) as (select ${n} union all select n + 1 from numbers where n < ${Math.min(n + 19_999, 100_004)})
        select 'denied ' || n, 'b', 1, 0, ${now - DAY} + n, ${now + DAY}, 1, 0, 1, 0, 'token_refused', 0, 0, ${now},
          case when n = 2 then 'a lease' end
        from numbers`)
    const retention = { eventsMs: DAY, changesMs: DAY, actionsMs: DAY, deadMs: 10 * DAY }
    for (let rows = 1; rows > 0; ) rows = (await store.prune(retention)).rows
    const left = await store.listSubscriptions({ limit: 1_000 })
    const named = await store.subscriptionsNamed([1, 2, 3, 4, 5, 6].map((n) => `denied ${n}`))
    expect(left).toHaveLength(1_000)
    expect(named.map(({ subscriptionUid }) => subscriptionUid).sort()).toEqual([
      'denied 2',
      'denied 5',
      'denied 6',
    ])
  })
})
