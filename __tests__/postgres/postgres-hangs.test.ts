import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { systemClock } from '../../lib/base/clock.js'
import { postgresStore, storeFor } from '../../lib/store-option.js'
import { onCleanUp } from '../support/clean-up.js'
import { useEngine } from '../support/engines/engines.js'
import { POSTGRES_PASSWORD } from '../support/engines/postgres-installation.js'
import { eventOf, notice } from '../support/events.js'
import { createScene, OUR_ITEM, type Scene } from '../support/scene.js'
import { until } from '../support/until.js'

const engine = useEngine('PostgreSQL')

describe('a database that stops answering', () => {
  it('loses its connections: they are given up, not reused, and there are never more than the maximum', async () => {
    const address = await engine.freshAddress()
    const store = storeFor(postgresStore({ connectionString: address, maxConnections: 3 }), systemClock)
    onCleanUp(() => store.close())
    await store.open()
    await store.accept([eventOf('s1')])
    const before = await backends(address)
    expect(before.length).toBeLessThanOrEqual(3)
    const inUse = await backends(address, `query !~ 'listen'`)
    expect(inUse.length).toBeGreaterThan(0)

    await engine.server().freeze()
    onCleanUp(() => engine.server().thaw())
    const asked = await Promise.all(
      Array.from({ length: 3 }, () =>
        store.counts().then(
          () => 'answered',
          (error) => error.code,
        ),
      ),
    )
    expect(asked).toEqual(['store_unavailable', 'store_unavailable', 'store_unavailable'])
    await engine.server().thaw()
    await until(
      'the database answers',
      () =>
        store.counts().then(
          () => true,
          () => false,
        ),
      10_000,
    )
    await until('the unresponsive connections are gone', async () => {
      const now = await backends(address)
      return inUse.every((pid) => !now.includes(pid)) && now.length <= 3
    })
    expect(await store.listEntries({})).toHaveLength(1)
  }, 30_000)

  it('never gets more connections than the maximum, even if it is only busy', async () => {
    const address = await engine.freshAddress()
    const { platform, deliver } = await createScene({
      store: postgresStore({ connectionString: address, maxConnections: 4 }),
    })
    let most = 0
    let isOver = false
    const watching = (async () => {
      while (!isOver) most = Math.max(most, (await backends(address)).length)
    })()
    const replies = await Promise.all(
      Array.from({ length: 80 }, (_, i) => {
        const business_uid = `b${i}`
        const { uid } = platform.purchase({ business_uid, purchasable_uid: OUR_ITEM, payment: 'succeeded' })
        return deliver(notice(business_uid, uid))
      }),
    )
    await platform.settled()
    isOver = true
    await watching
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(4)
  })
})

describe('two transactions in a deadlock', () => {
  it('cost neither a delivery nor a log line: the aborted one is tried again', async () => {
    const address = await engine.freshAddress()
    const scene: Scene = await createScene({ store: address, worker: false })
    await scene.deliver([notice('b1', 's1'), notice('b1', 's2')])
    const url = new URL(address)
    const other = new pg.Client({
      host: url.hostname,
      port: Number(url.port),
      user: 'postgres',
      password: POSTGRES_PASSWORD,
      database: url.pathname.slice(1),
    })
    await other.connect()
    onCleanUp(() => other.end())
    // This makes the delivery the one that is aborted.
    await other.query(`set deadlock_timeout = '1min'`)
    const lock = (uid: string) =>
      other.query('select 1 from marketplace_webhooks.subscriptions where subscription_uid = $1 for update', [
        uid,
      ])
    await other.query('begin')
    await lock('s2')
    const delivered = scene.deliver([notice('b1', 's1'), notice('b1', 's2')])
    await until('the delivery waits for the lock', async () => {
      const rows = await engine
        .server()
        .sql(`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = $1`, [
          url.pathname.slice(1),
        ])
      return rows.length > 0
    })
    const locked = lock('s1')
    await locked
    expect(engine.server().log()).toContain('deadlock detected')
    await other.query('commit')
    expect((await delivered).status).toBe(200)
    const entries = await scene.marketplace.journal.list()
    expect(entries).toHaveLength(4)
    const rows = await engine
      .server()
      .sql<{ generation: string }>(
        'select generation from marketplace_webhooks.subscriptions order by subscription_uid',
        [],
        url.pathname.slice(1),
      )
    expect(rows.map(({ generation }) => Number(generation))).toEqual([2, 2])
  })
})

/** The server's processes that serve this package. */
async function backends(address: string, condition = 'true'): Promise<number[]> {
  const rows = await engine.server().sql<{ pid: number }>(
    `select pid from pg_stat_activity
      where datname = $1 and application_name = 'marketplace-webhooks' and ${condition}`,
    [new URL(address).pathname.slice(1)],
  )
  return rows.map(({ pid }) => pid)
}
