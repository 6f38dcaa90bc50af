import './support/failing-disk.js'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../lib/clock.js'
import { createSqlStore } from '../lib/store/sql-store.js'
import { createSqliteEngine } from '../lib/store/sqlite.js'
import { onCleanUp, temporaryFolder } from './support/clean-up.js'
import { disk } from './support/failing-disk.js'

const whereShown = existsSync('/proc/self/fd') ? it : it.skip

describe('the opening of a SQLite file', () => {
  whereShown('puts the names of new files on disk: the folder that holds them is synced', async () => {
    const folder = temporaryFolder()
    const engine = createSqliteEngine({ path: join(folder, 'm.db'), clock: systemClock })
    const store = createSqlStore(engine)
    onCleanUp(() => store.close())
    disk.syncedFolders.length = 0
    await store.open()
    expect(disk.syncedFolders).toContain(realpathSync(folder))
  })
})
