import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { rememberPlace } from '../../../lib/sqlite/file/place.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { DRIVERS, openedAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf, notice } from '../../support/events.js'
import { createScene, openMarketplace, type Scene } from '../../support/scene.js'
import { until } from '../../support/until.js'

describe('C63 a SQLite file that is lost while the app runs', () => {
  const losses: Record<string, [lose: (folder: string) => void, message: RegExp]> = {
    'removed with all files beside it': [(folder) => rmSync(folder, { recursive: true }), /it was removed/],
    removed: [(folder) => rmSync(join(folder, 'm.db')), /it was removed .* Put the same file back/],
    renamed: [(folder) => moveIn(folder, 'm.db', 'n.db'), /it was removed or moved/],
    'moved with its folder': [
      (folder) => renameSync(folder, `${folder}-away`),
      /it was removed or moved away/,
    ],
    'replaced by a copy': [replaceByCopy, /it was replaced .* Restart this process/],
    'left without its WAL': [
      (folder) => rmSync(join(folder, 'm.db-wal')),
      /m\.db-wal was removed .* SIGTERM/,
    ],
    'left without its index': [
      (folder) => rmSync(join(folder, 'm.db-shm')),
      /m\.db-shm was removed .* SIGTERM/,
    ],
    'left without its lock': [
      (folder) => rmSync(join(folder, 'm.db-lock')),
      /m\.db-lock was removed .* SIGTERM/,
    ],
  }

  it.each(Object.entries(losses))(
    '(%s) refuses the next delivery, and says so at once',
    async (_what, [lose, message]) => {
      const { scene, folder } = await startedScene()
      lose(folder)
      const { ready, problems } = await scene.marketplace.readiness()
      const problem = { code: 'store_write_failed', message: expect.stringMatching(message) }
      expect(problems).toMatchObject([problem])
      expect(ready).toBe(false)
      expect(await scene.marketplace.health()).toMatchObject({
        status: 'failing',
        problems: expect.arrayContaining([expect.objectContaining(problem)]),
      })
      const { status, body } = await scene.deliver(notice('b1', 's2'))
      expect([status, body.code]).toEqual([503, 'delivery_not_accepted'])
      // What was known is still answered.
      expect(await scene.marketplace.isEntitled('nobody')).toBe(false)
    },
  )

  it.each([
    ['file', (folder: string) => [join(folder, 'm.db'), join(folder, 'm.db-away')]],
    ['folder', (folder: string) => [folder, `${folder}-away`]],
  ] as const)('works again without a restart when the same %s is put back', async (_what, paths) => {
    const { scene, folder, file } = await startedScene()
    const [from, to] = paths(folder) as [string, string]
    renameSync(from, to)
    expect((await scene.deliver(notice('b1', 's2'))).status).toBe(503)
    renameSync(to, from)
    const { status, id } = await scene.deliver(notice('b1', 's3'))
    expect(status).toBe(200)
    await until('it is ready', async () => (await scene.marketplace.readiness()).ready)
    expect(await scene.marketplace.health()).not.toMatchObject({ status: 'failing' })
    await scene.marketplace.close()
    const again = openMarketplace(scene.platform, { store: `sqlite:${file}`, worker: false })
    expect((await again.journal.list()).map((entry) => entry.id)).toContain(id)
  })

  it('is noticed where a link in its path leads elsewhere', async () => {
    const folder = temporaryFolder()
    for (const release of ['1', '2']) mkdirSync(join(folder, release))
    symlinkSync(join(folder, '1'), join(folder, 'current'))
    const { store } = await openedAt(join(folder, 'current', 'm.db'))
    await store.accept([eventOf('s1')])
    rmSync(join(folder, 'current'))
    symlinkSync(join(folder, '2'), join(folder, 'current'))
    await expect(store.accept([eventOf('s2')])).rejects.toMatchObject({ code: 'store_unavailable' })
  })

  it('is not looked for where a file has another inode each time, which is said once', () => {
    const path = join(temporaryFolder(), 'm.db')
    for (const end of ['', '-wal']) writeFileSync(path + end, '')
    let warnings = 0
    // The descriptor of a terminal or pipe stands for a file with another identity.
    const place = rememberPlace(path, path, { database: 0, wal: 0, index: 0 }, () => void warnings++)
    rmSync(path)
    expect([warnings, place.fault(true), place.hasDatabase()]).toEqual([1, undefined, true])
  })
})

describe.each(DRIVERS)('C63 the end of a process whose SQLite file was lost (%s)', (driver) => {
  it('keeps what was acknowledged when only the WAL was deleted', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store } = await openedAt(path, driver)
    await store.accept([eventOf('s1')])
    rmSync(`${path}-wal`)
    await store.close()
    const again = await openedAt(path, driver)
    expect(await again.store.listEntries({})).toHaveLength(1)
  })

  it('makes and deletes no file of the database that has taken its place', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'm.db')
    const { store } = await openedAt(path, driver)
    await store.accept([eventOf('s1')])
    for (const end of ['', '-wal']) {
      renameSync(path + end, join(folder, `old.db${end}`))
      writeFileSync(path + end, 'of another database')
    }
    await store.close()
    for (const end of ['', '-wal']) expect(readFileSync(path + end, 'utf8')).toBe('of another database')
  })
})

function moveIn(folder: string, from: string, to: string) {
  renameSync(join(folder, from), join(folder, to))
}

function replaceByCopy(folder: string) {
  copyFileSync(join(folder, 'm.db'), join(folder, 'copy'))
  moveIn(folder, 'copy', 'm.db')
}

async function startedScene(): Promise<{ scene: Scene; folder: string; file: string }> {
  const folder = join(temporaryFolder(), 'data')
  mkdirSync(folder)
  const file = join(folder, 'm.db')
  const scene = await createScene({ store: `sqlite:${file}` })
  await scene.marketplace.start()
  expect((await scene.deliver(notice('b1', 's1'))).status).toBe(200)
  return { scene, folder, file }
}
