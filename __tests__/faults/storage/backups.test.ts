import '../../support/machine/failing-disk.js'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { temporaryFolder } from '../../support/clean-up.js'
import { DRIVERS, openedAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { until } from '../../support/until.js'

const BIG = JSON.stringify('x'.repeat(300_000))

afterEach(() => {
  disk.releaseReads()
  disk.syncsFail = false
})

describe.each(DRIVERS)('C64 a backup that takes long (%s)', (driver) => {
  it('holds up no delivery, also not when the WAL is long enough for a checkpoint', async () => {
    const { store, target, isDone } = await halfwayInABackup()
    for (let i = 0; i < 48; i++) await store.accept([{ ...eventOf(`t${i}`), payload: BIG }])
    expect(isDone()).toBe(false)
    disk.releaseReads()
    await until('the backup is done', isDone)
    // No format of WAL mode: a reader needs no other file.
    expect([...readFileSync(target).subarray(18, 20)]).toEqual([1, 1])
    expect(await countIn(target)).toBe(20)
    await store.accept([eventOf('last')])
    expect(await store.listEntries({ limit: 100 })).toHaveLength(69)
  })

  it('is ended by close, which does not wait for it, and leaves no file', async () => {
    const { store, folder, backup } = await halfwayInABackup()
    const closing = store.close()
    disk.releaseReads()
    await closing
    expect(await backup).toMatchObject({ code: 'closed' })
    expect(filesOf(folder)).toEqual([])
    expect(await countIn(join(folder, 'm.db'))).toBe(20)
  })

  it('is ended by a sync that fails, so that the file can be made sound', async () => {
    const { store, folder, backup } = await halfwayInABackup()
    disk.syncsFail = true
    await expect(store.accept([eventOf('a')])).rejects.toMatchObject({ code: 'store_unavailable' })
    disk.syncsFail = false
    const accepted = store.accept([eventOf('b')])
    disk.releaseReads()
    await accepted
    expect(await backup).toMatchObject({
      code: 'backup_failed',
      message: expect.stringContaining('a sync of the database failed meanwhile'),
    })
    expect(filesOf(folder)).toEqual([])
  })

  it('is made after another one that was begun before', async () => {
    const { store, folder, target, backup } = await halfwayInABackup()
    const second = store.backup(join(folder, 'second.db'))
    await store.accept([eventOf('t')])
    disk.releaseReads()
    expect(await backup).toBe('done')
    await second
    expect([await countIn(target), await countIn(join(folder, 'second.db'))]).toEqual([20, 21])
  })

  async function countIn(path: string) {
    const { store } = await openedAt(path, driver)
    return (await store.listEntries({ limit: 100 })).length
  }

  async function halfwayInABackup() {
    const folder = temporaryFolder()
    const { store } = await openedAt(join(folder, 'm.db'), driver)
    for (let i = 0; i < 20; i++) await store.accept([eventOf(`s${i}`)])
    const target = join(folder, 'backup.db')
    disk.readsWait = true
    let isDone = false
    const backup = store
      .backup(target)
      .then(
        () => 'done',
        (error: unknown) => error,
      )
      .finally(() => {
        isDone = true
      })
    await until('it reads the database', () => disk.waitingReads > 0)
    return { store, folder, target, backup, isDone: () => isDone }
  }
})

function filesOf(folder: string): string[] {
  return readdirSync(folder).filter((name) => !name.startsWith('m.db'))
}
