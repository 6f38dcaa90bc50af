import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { postgresStore } from '../lib/index.js'
import { onCleanUp } from './support/clean-up.js'
import { eventOf } from './support/events.js'
import { engine } from './support/one-postgres.js'

describe('the statements that accept deliveries on PostgreSQL', () => {
  it('are prepared on a connection that often runs them', async () => {
    const { accept, prepared, stored } = await opened()
    await accept(4)
    expect(await prepared()).toBe(0)
    await accept(4)
    expect(await prepared()).toBeGreaterThanOrEqual(3)
    await accept(4)
    expect(await stored()).toBe(12)
  })

  it.each([
    ['the app resets the connections of its pool', 'deallocate all', 0],
    [
      'a migration changes a column that a statement returns',
      'alter table marketplace_webhooks.subscriptions alter column subscription_uid type varchar(300)',
      3,
    ],
  ])('K32 are sent as texts, and store everything, after %s', async (_what, statement, left) => {
    const { accept, prepared, stored, pool } = await opened()
    await accept(8)
    await pool.query(statement)
    await accept(8)
    // None of those that are missing is prepared again.
    expect(Math.min(await prepared(), 3)).toBe(left)
    expect(await stored()).toBe(16)
  })
})

/** A store over a pool of one connection. */
async function opened() {
  const pool = new pg.Pool({ connectionString: await engine.freshAddress(), max: 1 })
  onCleanUp(() => pool.end())
  const store = postgresStore(pool)
  onCleanUp(() => store.close())
  await store.open()
  let count = 0
  const rowsOf = async (text: string) => (await pool.query(text)).rows
  return {
    pool,
    /** Accepts events, one after the other. Each requests a read of all subscriptions of a business. */
    async accept(times: number) {
      for (let i = 0; i < times; i++) {
        const event = eventOf(`s${++count}`)
        await store.accept([{ ...event, refresh: { kind: 'business', businessUid: 'b1', install: null } }])
      }
    },
    prepared: async () => (await rowsOf(`select 1 from pg_prepared_statements`)).length,
    stored: async () => (await rowsOf('select 1 from marketplace_webhooks.journal')).length,
  }
}
