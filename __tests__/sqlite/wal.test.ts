import '../support/machine/failing-disk.js'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import { openWal, syncFolder } from '../../lib/sqlite/file/wal.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { disk } from '../support/machine/failing-disk.js'

const PAGE = 4_096
const whereShown = existsSync('/proc/self/fd') ? it : it.skip

afterEach(() => {
  disk.syncsFail = false
  disk.folderSyncFails = ''
  disk.release()
})

describe('the sync of a WAL', () => {
  it('is not repeated while no commit follows the last one', async () => {
    const { wal, commit } = await openedWal()
    await wal.durable()
    commit()
    await wal.durable()
    const syncs = disk.syncs
    await Promise.all([wal.durable(), wal.durable()])
    expect(disk.syncs).toBe(syncs)
    commit()
    await wal.durable()
    expect(disk.syncs).toBe(syncs + 1)
  })

  it('covers all commits before its beginning', async () => {
    const { wal, commit } = await openedWal()
    commit()
    commit()
    const syncs = disk.syncs
    await Promise.all([wal.durable(), wal.durable(), wal.durable()])
    expect(disk.syncs).toBe(syncs + 1)
  })

  it('does not cover a commit after its beginning: one next sync covers all of those', async () => {
    const { wal, commit } = await openedWal()
    disk.hold()
    commit()
    const ended: string[] = []
    const note = (name: string) => () => void ended.push(name)
    const syncs = disk.syncs
    const all = [wal.durable().then(note('first'))]
    commit()
    all.push(wal.durable().then(note('second')))
    commit()
    all.push(wal.durable().then(note('third')))
    expect(disk.syncs).toBe(syncs + 1)
    disk.release()
    disk.hold()
    await all[0]
    await turn()
    expect(ended).toEqual(['first'])
    expect(disk.syncs).toBe(syncs + 2)
    disk.release()
    await Promise.all(all)
    expect(disk.syncs).toBe(syncs + 2)
  })

  it('C60 that fails is reported before its callers get the error, and fails all that wait for the next one', async () => {
    const { wal, commit, failures } = await openedWal()
    disk.hold()
    commit()
    const reported: number[] = []
    const fails = (sync: Promise<void>) =>
      expect(sync.catch((error) => reported.push(failures.length) && Promise.reject(error))).rejects.toThrow(
        'EIO',
      )
    const first = wal.durable()
    commit()
    const both = [fails(first), fails(wal.durable())]
    const syncs = disk.syncs
    // Only the sync under way fails: the kernel has reported the lost pages, so the next one would succeed.
    disk.failWaiting()
    await Promise.all(both)
    expect([reported, disk.syncs]).toEqual([[1, 1], syncs])
    commit()
    await wal.durable()
    expect(failures).toHaveLength(1)
  })

  it('C61 can be preceded by writing the whole file again, also at the opening', async () => {
    const { wal, path, database } = await openedWal()
    database.exec('create table t (x); insert into t values (zeroblob(1500000))')
    const before = readFileSync(`${path}-wal`)
    disk.written = 0
    await wal.rewrite()
    expect(disk.written).toBe(before.length)
    const again = await openWal(
      path,
      () => 0,
      () => {},
    )
    onCleanUp(() => again.close())
    expect(disk.written).toBe(2 * before.length)
    expect(readFileSync(`${path}-wal`).equals(before)).toBe(true)
  })
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
    await expect(
      openWal(
        path,
        () => 0,
        () => {},
      ),
    ).rejects.toThrow('EIO')
    expect(descriptors()).toBe(before)
  })

  whereShown('is undone when it is closed, and syncs no folder that stays open', async () => {
    const { path } = await openedWal()
    const before = descriptors()
    const again = await openWal(
      path,
      () => 0,
      () => {},
    )
    expect(descriptors()).toBe(before + 1)
    await again.close()
    expect(descriptors()).toBe(before)
  })
})

describe('a folder', () => {
  it.each(['EPERM', 'EISDIR', 'EINVAL', 'EACCES', 'EBADF', 'ENOTSUP', 'ENOSYS'])(
    'whose sync the system does not support (%s) needs none',
    async (code) => {
      disk.folderSyncFails = code
      await syncFolder(temporaryFolder())
    },
  )

  it('whose sync fails for another reason is not on disk', async () => {
    disk.folderSyncFails = 'EIO'
    await expect(syncFolder(temporaryFolder())).rejects.toMatchObject({ code: 'EIO' })
    disk.folderSyncFails = ''
    await expect(syncFolder(join(temporaryFolder(), 'missing'))).rejects.toMatchObject({ code: 'ENOENT' })
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

/** A database in WAL mode that makes no checkpoints by itself, with a count of commits that the test advances. */
async function openedWal() {
  const path = join(temporaryFolder(), 'm.db')
  const database = new Database(path)
  onCleanUp(() => void database.close())
  database.exec(`pragma page_size = ${PAGE}; pragma journal_mode = wal; pragma wal_autocheckpoint = 0`)
  database.exec('create table first (x)')
  let commits = 0
  const failures: unknown[] = []
  const wal = await openWal(
    path,
    () => commits,
    (error) => void failures.push(error),
  )
  onCleanUp(() => wal.close())
  return { wal, path, database, failures, commit: () => void commits++ }
}

function descriptors(): number {
  return readdirSync('/proc/self/fd').length
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
