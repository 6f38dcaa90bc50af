import '../support/machine/failing-disk.js'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import { systemClock } from '../../lib/base/clock.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { eventOf } from '../support/events.js'
import { disk } from '../support/machine/failing-disk.js'

const whereShown = existsSync('/proc/self/fd') ? it : it.skip
afterEach(() => {
  disk.syncsFail = false
})

describe('the opening of a SQLite file', () => {
  whereShown('puts the names of new files on disk, by syncing the folder that contains them', async () => {
    const { store, folder } = storeInFolder()
    disk.syncedFolders.length = 0
    await store.open()
    expect(disk.syncedFolders).toContain(realpathSync(folder))
  })
})

describe('a SQLite file whose sync has failed', () => {
  it('C24 stores nothing new while a reader prevents the checkpoint that would copy all of the WAL', async () => {
    const { store, path } = storeInFolder()
    await store.open()
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

/** Uses the same library as the reader, because two copies of SQLite would break each other's locks. */
function storeInFolder() {
  const folder = temporaryFolder()
  const path = join(folder, 'm.db')
  const store = createSqlStore(createSqliteEngine({ path, clock: systemClock, driver: 'libsql' }))
  onCleanUp(() => store.close())
  return { store, folder, path }
}
