import '../support/machine/failing-disk.js'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import { openWal } from '../../lib/sqlite/file/wal.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { disk } from '../support/machine/failing-disk.js'

const PAGE = 4_096
/** No commit follows, and no sync fails. */
const UNUSED = [() => 0, () => {}] as const
const whereShown = existsSync('/proc/self/fd') ? it : it.skip

afterEach(() => {
  disk.syncsFail = false
})

describe('the opening of a WAL', () => {
  it('syncs what an earlier process has committed', async () => {
    const syncs = disk.syncs
    await openedWal()
    expect(disk.syncs).toBe(syncs + 1)
  })

  whereShown('closes its file if it fails', async () => {
    const { path } = await openedWal()
    const before = descriptors()
    disk.syncsFail = true
    await expect(openWal(path, ...UNUSED)).rejects.toThrow('EIO')
    expect(descriptors()).toBe(before)
  })

  whereShown('is undone when it is closed, and syncs no folder that stays open', async () => {
    const { path } = await openedWal()
    const before = descriptors()
    const again = await openWal(path, ...UNUSED)
    expect(descriptors()).toBe(before + 1)
    await again.close()
    expect(descriptors()).toBe(before)
  })
})

describe('the syncs of a WAL', () => {
  it('acknowledge only the commits before them, and are shared by all that wait', async () => {
    let commits = 0
    const { path } = await openedWal()
    const wal = await openWal(path, () => commits, UNUSED[1])
    onCleanUp(() => wal.close())
    const syncs = await syncsOf(async () => {
      commits = 1
      const first = [wal.durable(), wal.durable()]
      commits = 2
      const second = [wal.durable(), wal.durable()]
      await Promise.all([...first, ...second])
    })
    expect(syncs).toBe(2)
    // A commit during a sync is not on disk with it, also if nobody waits for it yet.
    commits = 3
    const third = wal.durable()
    commits = 4
    await third
    expect(await syncsOf(() => wal.durable())).toBe(1)
    expect(await syncsOf(() => wal.durable())).toBe(0)
  })

  it('that fail refuse the commits during them too', async () => {
    let commits = 1
    const failures: unknown[] = []
    const { path } = await openedWal()
    const wal = await openWal(
      path,
      () => commits,
      (error) => void failures.push(error),
    )
    onCleanUp(() => wal.close())
    disk.syncsFail = true
    const syncs = await syncsOf(async () => {
      const first = wal.durable()
      commits = 2
      const ended = await Promise.allSettled([first, wal.durable()])
      expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    })
    expect([syncs, failures.length]).toEqual([1, 1])
  })
})

describe('the rewriting of a WAL', () => {
  it('C61 writes the whole file again, also at the opening', async () => {
    const { wal, path, database } = await openedWal()
    database.exec('create table t (x); insert into t values (zeroblob(1500000))')
    const before = readFileSync(`${path}-wal`)
    disk.written = 0
    await wal.rewrite()
    expect(disk.written).toBe(before.length)
    const again = await openWal(path, ...UNUSED)
    onCleanUp(() => again.close())
    expect(disk.written).toBe(2 * before.length)
    expect(readFileSync(`${path}-wal`).equals(before)).toBe(true)
  })
})

describe('the length of a WAL', () => {
  it('counts the pages that no checkpoint has copied, not those of the file', async () => {
    const { wal, path, database } = await openedWal()
    database.exec('create table t (x); insert into t values (zeroblob(50000))')
    const pages = (statSync(`${path}-wal`).size - 32) / (24 + PAGE)
    expect(pages).toBeGreaterThan(10)
    expect([1, pages, pages + 1].map((each) => wal.reaches(each))).toEqual([true, true, false])
    database.pragma('wal_checkpoint(passive)')
    database.exec('update t set x = 1')
    expect(wal.reaches(1)).toBe(true)
    expect(statSync(`${path}-wal`).size).toBe(32 + pages * (24 + PAGE))
    expect(wal.reaches(pages)).toBe(false)
  })

  it('is zero for an empty file', async () => {
    const { wal, database } = await openedWal()
    database.pragma('wal_checkpoint(truncate)')
    expect(wal.reaches(1)).toBe(false)
  })
})

/** A database in WAL mode that makes no checkpoints by itself. */
async function openedWal() {
  const path = join(temporaryFolder(), 'm.db')
  const database = new Database(path)
  onCleanUp(() => void database.close())
  database.exec(`pragma page_size = ${PAGE}; pragma journal_mode = wal; pragma wal_autocheckpoint = 0`)
  database.exec('create table first (x)')
  const wal = await openWal(path, ...UNUSED)
  onCleanUp(() => wal.close())
  return { wal, path, database }
}

async function syncsOf(work: () => Promise<unknown>): Promise<number> {
  const before = disk.syncs
  await work()
  return disk.syncs - before
}

function descriptors(): number {
  return readdirSync('/proc/self/fd').length
}
