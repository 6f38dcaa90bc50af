import { closeSync, openSync, readFileSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { findSqlite, type SqliteDriverName } from '../../../lib/sqlite/drivers.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { DRIVERS, openedAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf } from '../../support/events.js'

interface Paths {
  file: string
  backup: string
}

describe.each(DRIVERS)('C63 a SQLite file that is overwritten in place while the app runs (%s)', (driver) => {
  const losses: Record<string, [lose: (paths: Paths) => void, message: RegExp]> = {
    emptied: [({ file }) => truncateSync(file), /: it was overwritten or shortened .* restore a backup/],
    'cut in half': [
      ({ file }) => truncateSync(file, 4096 * Math.floor(pagesOf(file) / 2)),
      /: it was overwritten/,
    ],
    'left without its last page': [({ file }) => truncateSync(file, (pagesOf(file) - 1) * 4096), /: it was/],
    'overwritten by an earlier backup': [
      ({ file, backup }) => overwrite(file, backup),
      /: it was overwritten/,
    ],
    'left with an empty first page': [({ file }) => eraseFirstPage(file), /: it was overwritten/],
    'left with an empty WAL': [
      ({ file }) => truncateSync(`${file}-wal`),
      /m\.db-wal was overwritten or shortened .* restore a backup/,
    ],
  }

  it.each(Object.entries(losses))(
    '(%s) takes no delivery, and says so at once',
    async (_what, [lose, message]) => {
      const { store, paths } = await storeWithBackup(driver)
      lose(paths)
      expect(await store.problem()).toMatch(message)
      await expect(store.accept([eventOf('late')])).rejects.toMatchObject({ code: 'store_unavailable' })
    },
  )

  it('whose WAL was emptied in the middle of a commit takes no more deliveries', async () => {
    const { store, paths } = await storeWithBackup(driver)
    truncateSync(`${paths.file}-wal`)
    // As long as before, with a hole at its beginning.
    const other = (await findSqlite(driver)).open(paths.file)
    other.exec('create table made_meanwhile (it text)')
    other.close()
    expect(statSync(`${paths.file}-wal`).size).toBeGreaterThan(4096)
    expect(await store.problem()).toMatch(/m\.db-wal was overwritten or shortened/)
    await expect(store.accept([eventOf('late')])).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  it('is not suspected while it grows, is copied, and its WAL is emptied and begins again', async () => {
    const { store, paths } = await storeWithBackup(driver)
    const other = (await findSqlite(driver)).open(paths.file)
    for (let i = 0; i < 20; i++) {
      await store.accept(Array.from({ length: 50 }, (_, j) => eventOf(`grown-${i}-${j}`)))
      if (i % 5 === 4) other.exec('pragma wal_checkpoint(truncate)')
      if (i === 10) await store.backup(join(temporaryFolder(), 'second.db'))
      expect(await store.problem()).toBeNull()
    }
    other.close()
  })

  it('is not suspected while another program makes it smaller', async () => {
    const { store, paths } = await storeWithBackup(driver)
    const other = (await findSqlite(driver)).open(paths.file)
    other.exec('create table much (it blob)')
    other.exec('insert into much values (zeroblob(400000))')
    other.exec('pragma wal_checkpoint(truncate)')
    await store.accept([eventOf('before')])
    const before = pagesOf(paths.file)
    other.exec('drop table much')
    for (const statement of ['vacuum', 'pragma wal_checkpoint(truncate)']) {
      other.exec(statement)
      await store.accept([eventOf(statement)])
      expect(await store.problem()).toBeNull()
    }
    expect(pagesOf(paths.file)).toBeLessThan(before)
    other.close()
  })
})

/** A store whose events are partly in its file and partly in its WAL. */
async function storeWithBackup(driver: SqliteDriverName) {
  const folder = temporaryFolder()
  const paths = { file: join(folder, 'm.db'), backup: join(folder, 'backup.db') }
  const { store } = await openedAt(paths.file, driver)
  await store.accept([eventOf('s1')])
  await store.backup(paths.backup)
  await store.accept([eventOf('s2')])
  expect(await store.problem()).toBeNull()
  return { store, paths }
}

const pagesOf = (file: string) => statSync(file).size / 4096

/** As `cp` and `cat >` do it: the file stays the same one. */
function overwrite(file: string, content: string) {
  writeFileSync(file, readFileSync(content))
}

function eraseFirstPage(file: string) {
  const opened = openSync(file, 'r+')
  writeSync(opened, Buffer.alloc(4096), 0, 4096, 0)
  closeSync(opened)
}
