import '../support/failing-disk.js'
import { execFile, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from '@jest/globals'
import { type Clock, systemClock } from '../../lib/clock.js'
import { createPostgresEngine } from '../../lib/postgres/engine.js'
import type { SqliteDriverName } from '../../lib/sqlite/drivers.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import { sql } from '../../lib/store/sql.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { eventOf } from '../support/events.js'
import { disk } from '../support/failing-disk.js'
import { jumpingClock } from '../support/jumping-clock.js'
import { EVAL_TYPESCRIPT } from '../support/processes.js'
import { canMount, smallDisk } from '../support/small-disk.js'
import { canTrace } from '../support/system-calls.js'
import { until } from '../support/until.js'

const hasNodeSqlite = process.getBuiltinModule?.('node:sqlite' as 'node:fs') !== undefined
const DRIVERS: SqliteDriverName[] = hasNodeSqlite ? ['node:sqlite', 'libsql'] : ['libsql']
const hasProc = existsSync('/proc/self/fd')
const canLimit = hasProc && spawnSync('prlimit', ['--version']).status === 0

afterEach(() => {
  disk.syncsFail = false
  disk.folderSyncFails = ''
  disk.release()
})

describe.each(DRIVERS)('a SQLite file that cannot be opened at first (%s)', (driver) => {
  const title =
    'C20 opens in the same process as soon as the fault has passed, and its failures leave nothing open'
  const whenTraced = canTrace() && hasProc ? it : it.skip

  whenTraced.each([
    ['pwrite64', [1, 3, 6]],
    ['fsync,fdatasync', [1, 2, 3, 4]],
    ['ftruncate', [1]],
  ] as const)(
    `${title} (%s)`,
    async (calls, places) => {
      for (const place of places) {
        const lines = await child('open again', driver, [
          ...['strace', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`],
          ...['-e', `inject=${calls}:error=EIO:when=${place}`],
        ])
        for (const { failed, left, message } of lines.slice(0, -1)) {
          expect({ place, failed, left }).toEqual({ place, failed: 'store_unavailable', left: [] })
          expect(message).toMatch(/I\/O error|EIO|disk/)
        }
        expect(lines.at(-1)).toMatchObject({ opened: true })
      }
    },
    60_000,
  )

  const whenMountable = canMount() && hasProc ? it : it.skip
  whenMountable('C20 opens when a full disk has room again', async () => {
    const { folder, fill, free } = smallDisk(2)
    fill()
    const { store } = storeAt(join(folder, 'm.db'), driver)
    for (let tries = 0; tries < 3; tries++)
      await expect(store.open()).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(/the disk is full/),
      })
    expect(filesOpenIn(folder)).toEqual([])
    free()
    await store.open()
    await store.accept([eventOf('s1')])
    expect(await store.counts()).toMatchObject({ subscriptions: 1 })
  })

  it('C20 opens after a failed migration, without a leftover connection in the way', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { engine } = storeAt(path, driver)
    let fails = true
    const migrate: typeof engine.migrate = async (migrations) => {
      if (fails) throw new Error('EIO')
      return engine.migrate(migrations)
    }
    const store = createSqlStore({ ...engine, migrate })
    onCleanUp(() => store.close())
    await expect(store.open()).rejects.toThrow('EIO')
    fails = false
    await store.open()
    await store.accept([eventOf('s1')])
    await store.close()
    const again = storeAt(path, driver)
    await again.store.open()
    expect(await again.store.counts()).toMatchObject({ subscriptions: 1 })
  })
})

describe.each(DRIVERS)('a file-size limit (%s)', (driver) => {
  const whenLimited = canLimit ? it : it.skip
  whenLimited('C21 stops writes only, is named, and leaves nothing to do when it is lifted', async () => {
    const refusal = {
      failed: 'store_unavailable',
      message: expect.stringContaining('file-size limit of this process'),
    }
    expect(await child('file-size limit', driver)).toEqual([
      refusal,
      { left: [] },
      refusal,
      refusal,
      { listed: 1 },
      { listed: 2 },
    ])
  })
})

describe('C22 a file system that', () => {
  it.each(['EPERM', 'EISDIR', 'EINVAL', 'EACCES'])(
    'that answers %s when a folder is synced still holds a store',
    async (code) => {
      disk.folderSyncFails = code
      const { store } = storeAt(join(temporaryFolder(), 'm.db'))
      await store.open()
      await store.accept([eventOf('s1')])
      expect(await store.counts()).toMatchObject({ subscriptions: 1 })
    },
  )

  it('that reports an I/O error when a folder is synced does not hold a store', async () => {
    disk.folderSyncFails = 'EIO'
    const { store } = storeAt(join(temporaryFolder(), 'm.db'))
    await expect(store.open()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('I/O error'),
    })
    disk.folderSyncFails = ''
    await store.open()
  })
})

describe.each(DRIVERS)('a database file behind a symbolic link (%s)', (driver) => {
  it.each(['there', 'not there yet'])('C23 (%s) is synced where SQLite writes its WAL', async (when) => {
    const folder = temporaryFolder()
    const [elsewhere, link] = [join(folder, 'elsewhere'), join(folder, 'link.db')]
    mkdirSync(elsewhere)
    const real = join(elsewhere, 'm.db')
    symlinkSync(real, link)
    if (when === 'there') {
      const first = storeAt(real, driver)
      await first.store.open()
      await first.store.close()
    }
    const { store } = storeAt(link, driver)
    await store.open()
    const before = statSync(`${real}-wal`).size
    await store.accept([eventOf('s1')])
    expect(statSync(`${real}-wal`).size).toBeGreaterThan(before)
    expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'link.db'])
    // SQLite's descriptor, and ours.
    if (hasProc) expect(filesOpenIn(folder).filter((file) => file === `${real}-wal`)).toHaveLength(2)
  })
})

describe('a sync of the WAL', () => {
  it('C24 makes durable all earlier commits, is shared, and is not repeated', async () => {
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
    const first = durable('first')
    await commit('c')
    const others = [durable('second'), durable('third')]
    expect(disk.syncs).toBe(before + 1)
    disk.release()
    disk.hold()
    await first
    await until('the next sync has begun', () => disk.syncs === before + 2)
    expect(ended).toEqual(['first'])
    disk.release()
    await Promise.all(others)
    expect([ended, disk.syncs]).toEqual([['first', 'second', 'third'], before + 2])

    function commit(value: string) {
      return engine.write(async (trx) => {
        await sql`create table if not exists t (a text)`.execute(trx)
        await sql`insert into t values (${value})`.execute(trx)
      })
    }
  })

  it('C24 that fails is not repaired by one that succeeds: the database first takes over everything', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store } = storeAt(path)
    await store.open()
    await store.accept([eventOf('s1')])
    disk.syncsFail = true
    await expect(store.accept([eventOf('s2')])).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('I/O error'),
    })
    // Reads go on meanwhile.
    expect(await store.listEntries({})).toHaveLength(2)
    disk.syncsFail = false
    await store.accept([eventOf('s3')])
    // The WAL of the failed sync is gone: its present content was written after everything else had been moved.
    const names = ['s1', 's2', 's3']
    const [inDatabase, inWal] = [readFileSync(path), readFileSync(`${path}-wal`)]
    expect(names.map((name) => inDatabase.includes(`"${name}"`) || inDatabase.includes(name))).toEqual([
      true,
      true,
      false,
    ])
    expect(inWal.includes('s3')).toBe(true)
  })
})

describe('the time of a SQLite store', () => {
  it('C25 does not follow a wall clock that leaps: no lease expires, in this process and in the next', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { clock, jump, leap } = jumpingClock()
    const { store, engine } = storeAt(path, undefined, clock)
    await store.open()
    await store.requestRefresh({
      kind: 'subscription',
      subscriptionUid: 's1',
      businessUid: 'b1',
      purchasableUid: null,
    })
    const before = await timeOf(engine)
    leap(70_000)
    expect((await timeOf(engine)) - before).toBeLessThan(5_000)
    leap(-140_000)
    expect(await timeOf(engine)).toBeGreaterThanOrEqual(before)
    await store.close()
    const next = storeAt(path, undefined, clock)
    await next.store.open()
    const after = await timeOf(next.engine)
    expect(after).toBeGreaterThanOrEqual(before)
    expect(after - before).toBeLessThan(5_000)
    jump(70_000)
    expect((await timeOf(next.engine)) - after).toBeGreaterThanOrEqual(70_000)
  })

  it('C25 continues from the last stored time when the machine restarts with a wall clock that is behind', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const first = storeAt(path)
    await first.store.open()
    const later = Date.now() + 3_600_000
    await first.engine.write((trx) =>
      sql`update marketplace_time set boot = 'another', noted = ${later}`.execute(trx),
    )
    await first.store.close()
    const next = storeAt(path)
    await next.store.open()
    expect(await timeOf(next.engine)).toBeGreaterThanOrEqual(later)
  })

  async function timeOf(engine: ReturnType<typeof createSqliteEngine>): Promise<number> {
    const rows = await engine.read((db) => sql<{ now: number }>`select ${engine.now()} as now`.execute(db))
    return Number(rows[0]?.now)
  }
})

describe.each(DRIVERS)('a backup (%s)', (driver) => {
  it('C27 is made during deliveries, opens as a store, and replaces nothing', async () => {
    const folder = temporaryFolder()
    const { store } = storeAt(join(folder, 'm.db'), driver)
    await store.open()
    for (let i = 0; i < 20; i++) await store.accept([eventOf(`s${i}`)])
    const target = join(folder, "it's a backup.db")
    const backup = store.backup(target)
    const meanwhile = Promise.all(Array.from({ length: 50 }, (_, i) => store.accept([eventOf(`t${i}`)])))
    await backup
    await meanwhile
    await expect(store.backup(target)).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringContaining('exists already'),
    })
    const copy = storeAt(target, driver)
    await copy.store.open()
    const { subscriptions } = await copy.store.counts()
    expect(subscriptions).toBeGreaterThanOrEqual(20)
    expect(subscriptions).toBeLessThanOrEqual(70)
    expect((await store.counts()).subscriptions).toBe(70)
  })

  it('C27 that fails reports why and leaves no half file', async () => {
    const folder = temporaryFolder()
    const { store } = storeAt(join(folder, 'm.db'), driver)
    await store.open()
    await expect(store.backup(join(folder, 'nowhere', 'b.db'))).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringContaining('does not exist: make it first'),
    })
    await store.accept([eventOf('s1')])
    expect(readdirSync(folder).filter((name) => !name.startsWith('m.db'))).toEqual([])
  })

  const whenMountable = canMount() ? it : it.skip
  whenMountable('C27 onto a full disk reports that and leaves no half file', async () => {
    const { store } = storeAt(join(temporaryFolder(), 'm.db'), driver)
    await store.open()
    await store.accept([{ ...eventOf('s1'), payload: JSON.stringify('x'.repeat(500_000)) }])
    const { folder, fill } = smallDisk(2)
    fill()
    await expect(store.backup(join(folder, 'b.db'))).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringContaining('the disk is full'),
    })
    expect(readdirSync(folder)).toEqual(['ballast'])
  })

  it('C27 does not keep the process alive after the copy', async () => {
    expect(await child('end with a thread', driver)).toEqual([{ done: true }])
  })
})

it('C27 a backup of PostgreSQL fails with the name of the tool for it', async () => {
  const engine = createPostgresEngine({
    connection: 'postgres://nobody@127.0.0.1:1/nothing',
    schema: 'of_the_app',
    maxConnections: 2,
    clock: systemClock,
  })
  await expect(engine.backup('b.dump')).rejects.toMatchObject({
    code: 'backup_failed',
    message: expect.stringMatching(/pg_dump .*--schema=of_the_app/),
  })
})

describe.each(DRIVERS)('a large file (%s)', (driver) => {
  it('C28 opens before it is checked, and is refused as damaged as soon as the check finds it', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store, engine } = storeAt(path, driver)
    await store.open()
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

    // On a busy machine a check may end before the first call; a store that waits for its check never answers.
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
    await until('the damage is found', () => again.counts().then(...FAILED), 15_000)
    await expect(again.counts()).rejects.toMatchObject(refusal)
    await expect(again.accept([eventOf('s2')])).rejects.toMatchObject(refusal)
  }, 40_000)

  it('C28 of some MiB is checked before it is used', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store } = storeAt(path, driver)
    await store.open()
    for (let i = 0; i < 12; i++)
      await store.accept([{ ...eventOf(`s${i}`), payload: JSON.stringify('x'.repeat(500_000)) }])
    await store.close()
    const bytes = readFileSync(path)
    expect(bytes.length).toBeGreaterThan(5 * 1024 * 1024)
    // Where no opening looks by itself.
    writeFileSync(path, bytes.fill(0xa5, 3_000_000, 3_200_000))
    await expect(storeAt(path, driver).store.open()).rejects.toMatchObject({ code: 'store_corrupt' })
  })
})

describe.each(DRIVERS)('C29 while much is written (%s)', (driver) => {
  const whenTraced = canTrace() ? it : it.skip
  whenTraced(
    'the WAL stays short, and the thread of the event loop never waits for the disk',
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

const FAILED = [() => false, () => true] as const

function storeAt(path: string, driver?: SqliteDriverName, clock: Clock = systemClock) {
  const engine = createSqliteEngine({ path, clock, ...(driver && { driver }) })
  const store = createSqlStore(engine)
  onCleanUp(async () => {
    await store.close()
    await engine.close()
  })
  return { engine, store }
}

/** Runs support/sqlite-child.ts on a new file; the lines it printed. */
async function child(task: string, driver: SqliteDriverName, under: readonly string[] = []) {
  const script = JSON.stringify(join(__dirname, '../support/sqlite-child.ts'))
  const [command, ...rest] = [
    ...under,
    ...[process.execPath, '--no-warnings', ...EVAL_TYPESCRIPT],
    `process.argv.splice(1, 0, 'eval'); require(${script})`,
    ...[task, join(temporaryFolder(), 'm.db'), driver],
  ] as [string, ...string[]]
  const { stdout } = await promisify(execFile)(command, rest, { timeout: 50_000 })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

function filesOpenIn(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((file) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${file}`)
      return target.startsWith(folder) ? [target] : []
    } catch {
      return []
    }
  })
}
