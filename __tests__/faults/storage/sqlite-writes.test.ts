import '../../support/machine/failing-disk.js'
import { existsSync, openSync, readFileSync, realpathSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import type { Engine } from '../../../lib/store/sql/engine.js'
import { sql } from '../../../lib/store/sql/sql.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { child, DRIVERS, openedAt, storeAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { canTrace } from '../../support/machine/system-calls.js'
import { until } from '../../support/until.js'

/** A leap of the wall clock by 70 s is measured against a second clock, and each is rounded to a millisecond. */
const AHEAD_MS = 69_990

const FAILED = [() => false, () => true] as const

describe('a sync of the WAL', () => {
  it('C24 makes all earlier commits durable, is shared, and is not repeated', async () => {
    const { engine } = storeAt(join(temporaryFolder(), 'm.db'))
    await engine.open()
    await commit('a')
    await engine.durable()
    const before = disk.syncs
    await engine.durable()
    expect(disk.syncs).toBe(before)

    disk.hold()
    const ended: string[] = []
    const durable = (name: string) => engine.durable().then(() => void ended.push(name))
    await commit('b')
    const first = Promise.all([durable('first'), durable('with it')])
    await commit('c')
    const others = [durable('second'), durable('third')]
    expect(disk.syncs).toBe(before + 1)
    disk.release()
    disk.hold()
    await first
    await until('the next sync has begun', () => disk.syncs === before + 2)
    expect(ended).toEqual(['first', 'with it'])
    disk.release()
    await Promise.all(others)
    expect([ended, disk.syncs]).toEqual([['first', 'with it', 'second', 'third'], before + 2])

    function commit(value: string) {
      return engine.write(async (trx) => {
        await sql`create table if not exists t (a text)`.execute(trx)
        await sql`insert into t values (${value})`.execute(trx)
      })
    }
  })

  it('C24 that fails is not repaired by a later successful one: first a checkpoint copies everything into the database', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store } = await openedAt(path)
    await store.accept([eventOf('s1')])
    disk.syncsFail = true
    await expect(store.accept([eventOf('s2')])).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('I/O error'),
    })
    // Reads continue in the meantime.
    expect(await store.listEntries({})).toHaveLength(2)
    disk.syncsFail = false
    await store.accept([eventOf('s3')])
    // The WAL of the failed sync is gone. Its present content was written after everything else had been copied.
    const names = ['s1', 's2', 's3']
    const [inDatabase, inWal] = [readFileSync(path), readFileSync(`${path}-wal`)]
    expect(names.map((name) => inDatabase.includes(`"${name}"`) || inDatabase.includes(name))).toEqual([
      true,
      true,
      false,
    ])
    expect(inWal.includes('s3')).toBe(true)
  })

  it('C24 that fails stores nothing new while a reader prevents the checkpoint that would copy all of the WAL', async () => {
    const path = join(temporaryFolder(), 'm.db')
    // The library of the reader, because two copies of SQLite would break each other's locks.
    const { store } = await openedAt(path, 'libsql')
    await store.accept([eventOf('s1')])
    const reader = new Database(path)
    onCleanUp(() => void reader.close())
    reader.exec('begin; select count(*) from journal')
    disk.syncsFail = true
    await expect(store.accept([eventOf('s2')])).rejects.toMatchObject({ code: 'store_unavailable' })
    disk.syncsFail = false
    await expect(store.accept([eventOf('s3')])).rejects.toMatchObject({ code: 'store_unavailable' })
    reader.exec('commit')
    await store.accept([eventOf('s4')])
  })
})

describe.each(DRIVERS)('C29 writes without a pause (%s)', (driver) => {
  const whenTraced = canTrace() ? it : it.skip
  whenTraced(
    'leave the WAL short, and the thread of the event loop never waits for the disk',
    async () => {
      const trace = join(temporaryFolder(), 'trace')
      const [result] = await child('write much', driver, [
        ...['strace', '-f', '-qq', '--seccomp-bpf', '-y', '-o', trace, '-e', 'trace=fsync,fdatasync,write'],
      ])
      const { longestWal, database } = result as { longestWal: number; database: number }
      expect(database).toBeGreaterThan(30 * 1024 * 1024)
      expect(longestWal).toBeLessThan(32 * 1024 * 1024)
      const lines = readFileSync(trace, 'utf8').split('\n')
      const marks = lines.flatMap((line, at) => (line.includes('"MARK"') ? [at] : []))
      const [main] = (lines[marks[0] as number] as string).split(/\s/)
      const syncs = lines.slice(...marks).filter((line) => /^\d+ +f(data)?sync/.test(line))
      expect(syncs.length).toBeGreaterThan(20)
      expect(syncs.filter((line) => line.startsWith(`${main} `))).toEqual([])
    },
    60_000,
  )
})

describe('the sync of a folder', () => {
  const whereShown = existsSync('/proc/self/fd') ? it : it.skip
  whereShown('puts the names of new files on disk when a SQLite file is opened', async () => {
    const folder = temporaryFolder()
    disk.syncedFolders.length = 0
    await openedAt(join(folder, 'm.db'))
    expect(disk.syncedFolders).toContain(realpathSync(folder))
  })
})

describe('the time of a SQLite store', () => {
  it('C25 of leases does not follow a wall clock that leaps, in this process or the next; no time goes back', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { clock, jump, leap } = jumpingClock()
    const { store, engine } = await openedAt(path, undefined, clock)
    await store.requestRefresh({
      kind: 'subscription',
      subscriptionUid: 's1',
      businessUid: 'b1',
      purchasableUid: null,
    })
    const [before, leasesBefore] = [await timeOf(engine), await leaseTimeOf(engine)]
    leap(70_000)
    const ahead = await timeOf(engine)
    await store.handleTopics({ topics: ['change'], rescueMs: 0, retireMs: 1_000 })
    expect(ahead - before).toBeGreaterThanOrEqual(AHEAD_MS)
    leap(-140_000)
    expect(await timeOf(engine)).toBeGreaterThanOrEqual(ahead)
    expect((await leaseTimeOf(engine)) - leasesBefore).toBeLessThan(5_000)
    await store.close()
    const next = await openedAt(path, undefined, clock)
    const [after, leasesAfter] = [await timeOf(next.engine), await leaseTimeOf(next.engine)]
    expect(after).toBeGreaterThanOrEqual(ahead)
    expect(after - ahead).toBeLessThan(5_000)
    expect(leasesAfter - leasesBefore).toBeLessThan(5_000)
    jump(70_000)
    expect((await timeOf(next.engine)) - after).toBeGreaterThanOrEqual(AHEAD_MS)
    expect((await leaseTimeOf(next.engine)) - leasesAfter).toBeGreaterThanOrEqual(AHEAD_MS)
  })

  it('C25 continues from the last stored time if the machine restarts with a wall clock that is behind', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const first = await openedAt(path)
    const later = Date.now() + 3_600_000
    await first.engine.write((trx) =>
      sql`update marketplace_time set boot = 'another', noted = ${later}`.execute(trx),
    )
    await first.store.close()
    const next = await openedAt(path)
    expect(await timeOf(next.engine)).toBeGreaterThanOrEqual(later)
  })

  const timeOf = (engine: Engine) => selected(engine, engine.now())
  const leaseTimeOf = (engine: Engine) => selected(engine, engine.leaseNow())

  async function selected(engine: Engine, time: ReturnType<Engine['now']>): Promise<number> {
    const rows = await engine.read((db) => sql<{ now: number }>`select ${time} as now`.execute(db))
    return Number(rows[0]?.now)
  }
})

describe.each(DRIVERS)('a large file (%s)', (driver) => {
  it('C28 opens before it is checked, and is refused as damaged as soon as the check finds the damage', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store, engine } = await openedAt(path, driver)
    for (let i = 0; i < 9; i++)
      await engine.write(async (trx) => {
        await sql`create table if not exists ballast (a blob)`.execute(trx)
        await sql`with recursive n (i) as (select 1 union all select i + 1 from n where i < 2048)
          insert into ballast select zeroblob(3500) from n`.execute(trx)
      })
    await store.accept([eventOf('s1')])
    await store.close()
    expect(statSync(path).size).toBeGreaterThan(64 * 1024 * 1024)
    const file = openSync(path, 'r+')
    for (let page = 8_000; page < 9_000; page++)
      writeSync(file, Buffer.alloc(4_096, 0xa5), 0, 4_096, page * 4_096)

    // On a busy machine the check may end before the first call. A store that waited for its check would never answer.
    const again = await until('a store answers before its check has ended', async () => {
      const { store } = storeAt(path, driver)
      try {
        await store.open()
        expect(await store.counts()).toMatchObject({ subscriptions: 1 })
        return store
      } catch (error) {
        expect(error).toMatchObject({ code: 'store_corrupt' })
        await store.close()
        return undefined
      }
    })
    const refusal = { code: 'store_corrupt', message: expect.stringContaining(path) }
    await until('the damage is found', () => again.counts().then(...FAILED))
    await expect(again.counts()).rejects.toMatchObject(refusal)
    await expect(again.accept([eventOf('s2')])).rejects.toMatchObject(refusal)
  })

  it('C28 of some MiB is checked before it is used', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store } = await openedAt(path, driver)
    for (let i = 0; i < 12; i++)
      await store.accept([{ ...eventOf(`s${i}`), payload: JSON.stringify('x'.repeat(500_000)) }])
    await store.close()
    const bytes = readFileSync(path)
    expect(bytes.length).toBeGreaterThan(5 * 1024 * 1024)
    // The damage is in a part that opening alone does not read.
    writeFileSync(path, bytes.fill(0xa5, 3_000_000, 3_200_000))
    await expect(storeAt(path, driver).store.open()).rejects.toMatchObject({ code: 'store_corrupt' })
  })
})
