import { describe, expect, it } from '@jest/globals'
import pg from 'pg'
import { SECOND, systemClock } from '../../lib/base/clock.js'
import type { PostgresClient } from '../../lib/postgres/connection.js'
import { connectError, createConnections, type PostgresPool } from '../../lib/postgres/pool.js'
import { createUnanswered } from '../../lib/postgres/unanswered.js'
import { postgresStore } from '../../lib/store-option.js'
import { onCleanUp } from '../support/clean-up.js'
import { connectedTo, engine, sqlAt } from '../support/engines/one-postgres.js'
import { openedStore } from '../support/engines/open-store.js'
import { startProxy } from '../support/engines/tcp-proxy.js'
import { eventOf, notice } from '../support/events.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { createScene } from '../support/scene.js'
import { until } from '../support/until.js'

describe('a database that stops answering', () => {
  it('loses its connections: they are given up, not reused, and there are never more than the maximum', async () => {
    const address = await engine.freshAddress()
    const store = await openedStore(postgresStore({ connectionString: address, maxConnections: 3 }))
    await store.accept([eventOf('s1')])
    const before = await backends(address)
    expect(before.length).toBeLessThanOrEqual(3)
    const inUse = await backends(address, `query !~ 'listen'`)
    expect(inUse.length).toBeGreaterThan(0)

    await engine.server().freeze()
    onCleanUp(() => engine.server().thaw())
    const asked = Array.from({ length: 3 }, () => store.counts().catch((error) => error.code))
    expect(await Promise.all(asked)).toEqual(asked.map(() => 'store_unavailable'))
    await engine.server().thaw()
    await until('the database answers', () => store.counts().catch(() => undefined))
    await until('the unresponsive connections are gone', async () => {
      const now = await backends(address)
      return inUse.every((pid) => !now.includes(pid)) && now.length <= 3
    })
    expect(await store.listEntries({})).toHaveLength(1)
  })

  it('never gets more connections than the maximum, even if it is only busy', async () => {
    const address = await engine.freshAddress()
    const { platform, deliver } = await createScene({
      store: postgresStore({ connectionString: address, maxConnections: 4 }),
    })
    const watch = watched(address)
    const replies = await Promise.all(
      Array.from({ length: 80 }, (_, i) => {
        const business_uid = `b${i}`
        const { uid } = platform.purchase({ business_uid, payment: 'succeeded' })
        return deliver(notice(business_uid, uid))
      }),
    )
    await platform.settled()
    const most = await watch()
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(4)
  })
})

describe('C275 commits that hang', () => {
  it.each(['a pool of ours', 'a pool of the app'])(
    'keep the places of their connections, so that the server never has more than the maximum: %s',
    async (whose) => {
      const address = await engine.freshAddress()
      const options = { connectionString: address, application_name: 'marketplace-webhooks', max: 4 }
      const pool = new pg.Pool({ ...options, ...{ pipeline: true } })
      onCleanUp(() => pool.end())
      const store = await openedStore(
        postgresStore(whose === 'a pool of ours' ? { connectionString: address, maxConnections: 4 } : pool),
      )
      await store.accept([eventOf('s0')])
      const most = watched(address)
      await awaitStandby('a standby that does not exist')
      onCleanUp(() => awaitStandby(''))
      // The server reads its settings again some time after the signal.
      let first = 0
      await until('a commit hangs', () => {
        store.recordAction(actionOf(`first-${first++}`)).catch(() => {})
        return hanging(address).then((count) => count > 0)
      })
      const codes = new Set<unknown>()
      for (let round = 0; round < 4; round++) {
        const calls = Array.from({ length: 4 }, (_, i) => store.recordAction(actionOf(`${round}-${i}`)))
        for (const ended of await Promise.allSettled(calls))
          codes.add(ended.status === 'rejected' && (ended.reason as { code?: string }).code)
      }
      expect(codes).toEqual(new Set(['store_unavailable']))
      await until('commits hang', async () => (await hanging(address)) > 0)
      await until('an error says that no connection is free, not that the network is broken', () =>
        store.counts().then(
          () => false,
          ({ message }) => /no connection is free: .* has not answered \d of them/.test(message),
        ),
      )
      await awaitStandby('')
      await until('writes succeed again', () =>
        store
          .accept([eventOf('s1')])
          .then(() => true)
          .catch(() => false),
      )
      await Promise.all(Array.from({ length: 8 }, () => store.counts()))
      expect(await most()).toBeLessThanOrEqual(4)
    },
    90_000,
  )

  it('give their places up if only their answers were lost: the server ends the processes', async () => {
    const address = await engine.freshAddress()
    const proxy = await startProxy({ to: engine.server().port })
    const store = await openedStore(
      postgresStore({ connectionString: proxy.through(address), maxConnections: 2 }),
    )
    await store.accept([eventOf('s0')])
    await proxy.quiet(300)
    const lost = proxy.silenceAfter(/commit/)
    const written = store.accept([eventOf('s1')]).catch((error) => error.code)
    await lost
    const before = await backends(address)
    expect(await written).toBe('store_unavailable')
    // The only other connection listens. It asks the server, which ends the process, so that its place is free.
    await until('another write succeeds', () =>
      store
        .accept([eventOf('s2')])
        .then(() => true)
        .catch(() => false),
    )
    const now = await backends(address)
    expect(now.length).toBeLessThanOrEqual(2)
    expect(now).not.toEqual(expect.arrayContaining(before))
    expect(await store.listEntries({})).toHaveLength(3)
  })

  it('get one place more at most when no connection is left that asks: the last one is for asking', async () => {
    const clock = createVirtualClock()
    const { pool, processes } = createHangingPool(4)
    const { acquire } = createConnections(pool, clock.forProcess(), 4)
    const errors = new Set<string>()
    const call = async () => {
      const connection = await acquire()
      await connection.query('commit').finally(() => connection.release())
    }
    for (let second = 0; second < 600; second++) {
      for (let i = 0; i < 4; i++) call().catch(({ message }) => errors.add(message))
      await clock.advance(SECOND)
    }
    expect(processes()).toBeLessThanOrEqual(5)
    expect([...errors]).toContainEqual(expect.stringMatching(/^no connection is free: .* answered 3 of them/))
  })

  it('hide no error with a code, by which a call is tried again', () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const late = new Error('timeout exceeded when trying to connect')
    expect([connectError(refused, 3), connectError(late, 0)]).toEqual([refused, late])
    expect(connectError(late, 3)).toMatchObject({ message: expect.stringContaining('has not answered 3') })
  })

  it.each([1, 4, 8, 40])(
    'end no process of the server but their own, asked about %i of them',
    async (count) => {
      const address = await engine.freshAddress()
      const asking = await connectedTo(address)
      const bystander = await connectedTo(address)
      const own = await connectedTo(address)
      own.on('error', () => {})
      const { rows } = await own.query('select pg_backend_pid() as pid')
      const unanswered = createUnanswered(systemClock)
      const released: boolean[] = []
      for (let i = 0; i < count; i++)
        unanswered.hold({
          pid: i === 0 ? rows[0].pid : NO_PROCESS + i,
          answered: new Promise(() => {}),
          release: (destroy) => void released.push(destroy),
        })
      await unanswered.ask({ query: async (text, values) => (await asking.query(text, [...values])).rows })
      expect(released).toEqual(Array(count).fill(true))
      await until('its own process has ended', () =>
        own.query('select 1').then(
          () => false,
          () => true,
        ),
      )
      expect((await bystander.query('select 1 as lives')).rows).toEqual([{ lives: 1 }])
    },
  )
})

describe('two transactions in a deadlock', () => {
  it('cost neither a delivery nor a log line: the aborted one is tried again', async () => {
    const address = await engine.freshAddress()
    const scene = await createScene({ store: address, worker: false })
    await scene.deliver([notice('b1', 's1'), notice('b1', 's2')])
    const superuser = new URL(address)
    superuser.username = 'postgres'
    const other = await connectedTo(superuser.href)
    // This makes the delivery the one that is aborted.
    await other.query(`set deadlock_timeout = '1min'`)
    const lock = (uid: string) =>
      other.query('select 1 from subscriptions where subscription_uid = $1 for update', [uid])
    await other.query('begin')
    await lock('s2')
    const delivered = scene.deliver([notice('b1', 's1'), notice('b1', 's2')])
    await until('the delivery waits for the lock', async () => {
      const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
      return (await sqlAt(address, waits)).length > 0
    })
    await lock('s1')
    expect(engine.server().log()).toContain('deadlock detected')
    await other.query('commit')
    expect((await delivered).status).toBe(200)
    const entries = await scene.marketplace.journal.list()
    expect(entries).toHaveLength(4)
    const { rows } = await other.query('select generation from subscriptions order by subscription_uid')
    expect(rows.map(({ generation }) => Number(generation))).toEqual([2, 2])
  })
})

/** Linux gives no process a number as high as this. */
const NO_PROCESS = 2_000_000_000

/** Until it is '', every commit waits for this standby. */
async function awaitStandby(name: string) {
  await engine.server().sql(`alter system set synchronous_standby_names = '${name && `"${name}"`}'`)
  await engine.server().sql('select pg_reload_conf()')
}

/** How many commits wait for a standby. */
async function hanging(address: string): Promise<number> {
  const rows = await sqlAt(address, `select 1 from pg_stat_activity where wait_event = 'SyncRep'`)
  return rows.length
}

const actionOf = (id: string) => ({ id, name: 'replay', businessUid: null, payload: '{}' })

/** A pool at a server whose commits hang, and which works for each of its processes for ever, also without a client. */
function createHangingPool(max: number): { pool: PostgresPool; processes(): number } {
  const idle: PostgresClient[] = []
  const queue: ((client: PostgresClient) => void)[] = []
  let open = 0
  let made = 0
  function lendNext() {
    const next = queue.length > 0 && (idle.shift() ?? (open < max && madeClient()))
    if (next) queue.shift()?.(next)
  }
  function madeClient(): PostgresClient {
    open++
    const client: PostgresClient = {
      processID: ++made,
      query: async ({ text, values }) => {
        if (text === 'commit') return new Promise(() => {})
        const asked = (text.includes('pg_stat_activity') && (values?.[0] as number[])) || []
        return { rows: asked.map((pid) => ({ pid })) }
      },
      on: () => {},
      off: () => {},
      release(destroy) {
        if (destroy) open--
        else idle.push(client)
        lendNext()
      },
    }
    return client
  }
  return {
    pool: {
      on: () => {},
      off: () => {},
      options: { max },
      connect(callback) {
        queue.push((client) => callback(undefined, client))
        lendNext()
      },
    },
    processes: () => made,
  }
}

/** Counts the server's processes from now on. Returns a function that ends this, and resolves with the highest count. */
function watched(address: string): () => Promise<number> {
  let most = 0
  let isOver = false
  const watching = (async () => {
    while (!isOver) most = Math.max(most, (await backends(address)).length)
  })()
  return async () => {
    isOver = true
    await watching
    return most
  }
}

/** The server's processes that serve this package. */
async function backends(address: string, condition = 'true'): Promise<number[]> {
  const rows = await sqlAt<{ pid: number }>(
    address,
    `select pid from pg_stat_activity
      where datname = current_database() and application_name = 'marketplace-webhooks' and ${condition}`,
  )
  return rows.map(({ pid }) => pid)
}
