import { describe, expect, it } from '@jest/globals'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

describe.each(ENGINE_NAMES)('an erasure of more rows than a transaction has, on %s', (name) => {
  const engine = useEngine(name)

  it('clears the business wherever it is a candidate, deletes its subscriptions and entries, and nothing of others', async () => {
    const { store, sql } = await openStoreWithSql(await engine.freshAddress())
    const many = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 250)'
    for (const [prefix, business, candidate] of [
      ['candidate', 'other', `'b1'`],
      ['own', 'b1', 'null'],
      ['else', 'other', `'b2'`],
    ]) {
      await sql(`insert into subscriptions
        (subscription_uid, business_uid, candidate_business_uid, generation, settled_generation, urgency, unread, verifying,
          lapses, created_at)
        ${many} select '${prefix}-' || i, '${business}', ${candidate}, 1, 1, 4, 0, 0, 0, 1 from n`)
      await sql(`insert into journal
        (id, kind, name, topic, key, business_uid, subscription_uid, payload, status, attempts, received_at, settled_at)
        ${many} select '${prefix}-' || i, 'event', 'x', 'event:x', 'k', '${business}', '${prefix}-' || i, '{}', 'done', 0, i, i
        from n`)
    }
    const action = { id: 'a1', name: 'erase', businessUid: null, payload: '{}' }
    // 250 candidates, 250 subscriptions and their entries.
    expect(await store.erase('b1', action)).toMatchObject({ rows: 750 })
    expect(
      await sql(`select business_uid, candidate_business_uid, cast(count(*) as integer) as rows from subscriptions
        group by business_uid, candidate_business_uid order by candidate_business_uid is null, candidate_business_uid`),
    ).toEqual([
      { business_uid: 'other', candidate_business_uid: 'b2', rows: 250 },
      { business_uid: 'other', candidate_business_uid: null, rows: 250 },
    ])
    expect(
      await sql(
        `select business_uid, cast(count(*) as integer) as rows from journal where kind = 'event' group by business_uid`,
      ),
    ).toEqual([{ business_uid: 'other', rows: 500 }])
  })
})
