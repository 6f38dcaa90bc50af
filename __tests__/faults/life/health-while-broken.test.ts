import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { type Clock, MINUTE, SECOND, systemClock } from '../../../lib/base/clock.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { sql } from '../../../lib/store/sql/sql.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { createWriteHealth } from '../../../lib/store/write-health.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { connectedTo, engine as postgres } from '../../support/engines/one-postgres.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { eventOf } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { createScene, openMarketplace, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

describe('K26 health while the disk is broken', () => {
  it('is failing with the error of the last write, and ok again once the disk works, without a delivery', async () => {
    const { clock, jump } = jumpingClock()
    let broken = false
    const plain = createSqliteEngine({ path: join(temporaryFolder(), 'm.db'), clock })
    const store = createSqlStore(
      {
        ...plain,
        durable: () => (broken ? Promise.reject(new Error('no space left on device')) : plain.durable()),
      },
      clock,
    )
    const { deliver, marketplace } = await createScene({ store: storeOption(store), clock, worker: false })
    expect((await deliver({ any: 'thing' })).status).toBe(200)
    expect(await marketplace.health()).toMatchObject({ status: 'ok', problems: [] })
    broken = true
    expect((await deliver({ any: 'thing' })).status).toBe(503)
    for (let i = 0; i < 5; i++) {
      jump(10 * SECOND)
      expect(await marketplace.health()).toMatchObject({
        status: 'failing',
        problems: [
          { code: 'store_write_failed', message: expect.stringContaining('no space left on device') },
        ],
      })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    broken = false
    await until('health is ok', async () => {
      jump(2 * SECOND)
      return (await marketplace.health()).status === 'ok'
    })
    broken = true
    expect((await deliver({ any: 'thing' })).status).toBe(503)
    broken = false
    expect((await deliver({ any: 'thing' })).status).toBe(200)
    await until('health is ok', async () => {
      jump(2 * SECOND)
      return (await marketplace.health()).status === 'ok'
    })
  })

  it('is failing even if only the worker writes, and ok after that', async () => {
    const { clock, jump } = jumpingClock()
    let broken = false
    const plain = createSqliteEngine({ path: ':memory:', clock })
    const store = createSqlStore(
      {
        ...plain,
        write: (work) =>
          plain.write(async (trx) => {
            const result = await work(trx)
            if (broken) throw new Error('database or disk is full')
            return result
          }),
      },
      clock,
    )
    const marketplace = openMarketplace(await startPlatform(), { store: storeOption(store), clock })
    await marketplace.start()
    broken = true
    const problems = await until('health is failing', async () => {
      const health = await marketplace.health()
      return health.status === 'failing' && health.problems
    })
    expect(problems).toMatchObject([{ message: expect.stringContaining('database or disk is full') }])
    broken = false
    await until('health is ok', async () => {
      jump(SECOND)
      return (await marketplace.health()).status === 'ok'
    })
  })

  it('counts neither a row that cannot be stored nor a mistake of the caller', async () => {
    const { store } = await openStoreWithSql('sqlite::memory:')
    await expect(store.accept([eventOf('s\0')])).rejects.toMatchObject({ code: 'argument_invalid' })
    expect(await store.problem()).toBeNull()
  })

  it('stays failing after a write that may have written nothing; only a probe some time after the last failure ends it', async () => {
    const { clock, jump } = jumpingClock()
    const health = createWriteHealth({ probe: async () => {}, isDataError: () => false, clock })
    await health.watch(() => Promise.reject(new Error('disk is full'))).catch(() => {})
    await health.watch(async () => {})
    expect(health.problem()).toBe('disk is full')
    jump(3 * SECOND)
    await health.watch(async () => {})
    await until('the probe has ended the failure', () => health.problem() === null)
  })

  it('reports a write that takes too long until a probe was quick, and probes at most once a second, one at a time', async () => {
    const { clock, jump } = jumpingClock()
    let probes = 0
    let takesMs = 4 * SECOND
    const probe = async () => {
      probes++
      jump(takesMs)
    }
    const health = createWriteHealth({ probe, isDataError: () => false, clock })
    let finish = () => {}
    const slow = health.watch(() => new Promise<void>((resolve) => (finish = resolve)))
    expect(health.problem()).toBeNull()
    jump(MINUTE)
    expect(health.problem()).toMatch(/a write has not finished for 60 s/)
    finish()
    await slow
    await until('a probe was slow', () => {
      jump(SECOND)
      const problem = health.problem()
      expect(problem).not.toBeNull()
      return problem === 'Cannot use the store in time: a write took 4 s'
    })
    // Senders who wait longer get their 200.
    expect(health.problem(10 * SECOND)).toBeNull()

    takesMs = 0
    probes = 0
    jump(SECOND)
    await health.watch(() => Promise.reject(new Error('EIO'))).catch(() => {})
    for (let i = 0; i < 100; i++) expect(health.problem()).toBe('EIO')
    expect(probes).toBe(1)
  })
})

describe('health', () => {
  it.each<[counts: object, code: string, message: RegExp]>([
    [{ dead: 2 }, 'entries_dead', /^2 journal entries are dead/],
    [{ retrying: 3 }, 'entries_retrying', /^3 journal entries are tried again because a handler failed/],
    [
      { oldestPendingMs: 6 * MINUTE },
      'entries_overdue',
      /^the oldest due entry of the journal has been due for 6 min/,
    ],
    [
      { oldestRequestMs: 5 * MINUTE },
      'requests_overdue',
      /^the oldest requested read has been pending for 5 min/,
    ],
  ])(
    'is degraded, with an explanation and the next step, if the store counts %j',
    async (counts, code, message) => {
      const inner = createSqlStore(createSqliteEngine({ path: ':memory:', clock: systemClock }))
      const store = { ...inner, counts: async () => ({ ...(await inner.counts()), ...counts }) }
      const marketplace = openMarketplace(await startPlatform(), { store: storeOption(store), worker: false })
      await marketplace.start()
      const { status, problems } = await marketplace.health()
      expect(status).toBe('degraded')
      expect(problems).toEqual([
        { code, message: expect.stringMatching(message), next: expect.stringContaining(' ') },
      ])
    },
  )

  it("answers failing if the app's own store never answers", async () => {
    const { clock, jump } = jumpingClock()
    const inner = createSqlStore(createSqliteEngine({ path: ':memory:', clock }))
    const timers: (() => void)[] = []
    const patient: Clock = {
      ...clock,
      setTimeout: (callback, ms) => {
        if (ms === 9 * SECOND) timers.push(callback)
        return clock.setTimeout(callback, ms)
      },
    }
    const store = { ...inner, counts: () => new Promise<never>(() => {}) }
    const marketplace = openMarketplace(await startPlatform(), { store: storeOption(store), clock: patient })
    await marketplace.start()
    const asked = marketplace.health()
    jump(9 * SECOND)
    for (const timer of timers) timer()
    expect(await asked).toMatchObject({
      status: 'failing',
      problems: [{ code: 'store_not_answering', message: 'the store does not answer' }],
      counts: null,
    })
  })
})

describe('G30 a role whose commits do not wait for the disk', () => {
  it.each([
    ['off', 'on'],
    ['local', 'on'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('with the default %s commits here with %s', async (mode, expected) => {
    const address = await postgres.freshAddress()
    const server = postgres.server()
    const role = new URL(address).username
    await server.sql(`alter role ${role} set synchronous_commit = ${mode}`)
    onCleanUp(() => server.sql(`alter role ${role} reset synchronous_commit`))
    const { engine } = await openStoreWithSql(address)
    const rows = await engine.write((trx) =>
      sql<{ mode: string }>`select current_setting('synchronous_commit') as mode`.execute(trx),
    )
    expect(rows[0]?.mode).toBe(expected)
  })

  it.each(['database', 'server', 'pool'])(
    'with that default of the %s commits a delivery here with on',
    async (place) => {
      const address = new URL(await postgres.freshAddress())
      const server = postgres.server()
      if (place === 'pool') address.searchParams.set('options', '--synchronous_commit=off')
      else {
        const altered = place === 'server' ? 'alter system' : `alter database ${address.pathname.slice(1)}`
        await server.sql(`${altered} set synchronous_commit = off`)
        server.signal('SIGHUP')
        onCleanUp(async () => {
          await server.sql(`${altered} reset synchronous_commit`)
          server.signal('SIGHUP')
        })
      }
      const mode = `select current_setting('synchronous_commit') as mode`
      await until('it is the default', async () => {
        const { rows } = await (await connectedTo(String(address))).query(mode)
        return rows[0].mode === 'off'
      })
      const { store, sql } = await openStoreWithSql(String(address))
      await sql(`create table modes (mode text);
      create function note() returns trigger language plpgsql as $$ begin insert into modes ${mode}; return new; end $$;
      create trigger note after insert on journal for each row execute function note()`)
      await store.accept([eventOf('s1')])
      expect(await sql('select mode from modes')).toEqual([{ mode: 'on' }])
    },
  )
})
