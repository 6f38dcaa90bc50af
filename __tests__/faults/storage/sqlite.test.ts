import '../../support/machine/failing-disk.js'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { child, DRIVERS, openedAt, storeAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { canMount, smallDisk } from '../../support/machine/small-disk.js'
import { canTrace } from '../../support/machine/system-calls.js'

const hasProc = existsSync('/proc/self/fd')

const canLimit = hasProc && spawnSync('prlimit', ['--version']).status === 0

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

  it('C20 names what is wrong with the path, and opens once it is right', async () => {
    const folder = temporaryFolder()
    const at = (name: string) => join(folder, name)
    const cases: Record<string, [message: string, make: () => void, mend: () => void]> = {
      'nowhere/m.db': [
        `the folder ${at('nowhere')} does not exist: make it first`,
        () => {},
        () => mkdirSync(at('nowhere')),
      ],
      'folder.db': [
        'it is a folder: name a file in it',
        () => mkdirSync(at('folder.db')),
        () => rmdirSync(at('folder.db')),
      ],
      'file/m.db': [
        `${at('file')} is not a folder`,
        () => writeFileSync(at('file'), ''),
        () => rmSync(at('file')),
      ],
      'link.db': [
        `the folder ${at('later')} does not exist: make it first`,
        () => symlinkSync(at('later/m.db'), at('link.db')),
        () => mkdirSync(at('later')),
      ],
      'circle.db': [
        'its symbolic links lead back to it',
        () => symlinkSync(at('circle.db'), at('circle.db')),
        () => rmSync(at('circle.db')),
      ],
      'm.db': [
        `the file ${at('m.db-lock')} beside it, which is always empty, has other content`,
        () => writeFileSync(at('m.db-lock'), 'x'.repeat(5_000)),
        () => rmSync(at('m.db-lock')),
      ],
    }
    for (const [name, [message, make, mend]] of Object.entries(cases)) {
      make()
      const { store } = storeAt(at(name), driver)
      const refusal = {
        code: 'store_unavailable',
        message: expect.stringContaining(`Cannot open the SQLite file ${at(name)}: ${message}`),
      }
      await expect(store.open()).rejects.toMatchObject(refusal)
      await expect(store.counts()).rejects.toMatchObject(refusal)
      mend()
      if (name === 'file/m.db') mkdirSync(at('file'))
      await store.open()
      await store.accept([eventOf('s1')])
    }
  })

  it('C20 opens after a failed migration, although that left a connection', async () => {
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
    const again = await openedAt(path, driver)
    expect(await again.store.counts()).toMatchObject({ subscriptions: 1 })
  })
})

describe.each(DRIVERS)('a file-size limit (%s)', (driver) => {
  const whenLimited = canLimit ? it : it.skip
  whenLimited(
    'C21 stops only writes, is named in the error, and needs no action after it is lifted',
    async () => {
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
    },
  )
})

describe('C22 a file system that', () => {
  it.each(['EPERM', 'EISDIR', 'EINVAL', 'EACCES', 'EBADF', 'ENOTSUP', 'ENOSYS'])(
    'that answers %s when a folder is synced can still hold a store',
    async (code) => {
      disk.folderSyncFails = code
      const { store } = storeAt(join(temporaryFolder(), 'm.db'))
      await store.open()
      await store.accept([eventOf('s1')])
      expect(await store.counts()).toMatchObject({ subscriptions: 1 })
    },
  )

  it('that reports an I/O error when a folder is synced cannot hold a store', async () => {
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
  it.each(['there', 'not created yet'])('C23 (%s) is synced where SQLite writes its WAL', async (when) => {
    const folder = temporaryFolder()
    const [elsewhere, link] = [join(folder, 'elsewhere'), join(folder, 'link.db')]
    mkdirSync(elsewhere)
    const real = join(elsewhere, 'm.db')
    symlinkSync(real, link)
    if (when === 'there') {
      const first = await openedAt(real, driver)
      await first.store.close()
    }
    const { store } = await openedAt(link, driver)
    const before = statSync(`${real}-wal`).size
    await store.accept([eventOf('s1')])
    expect(statSync(`${real}-wal`).size).toBeGreaterThan(before)
    expect(readdirSync(folder).sort()).toEqual(['elsewhere', 'link.db'])
    // One descriptor is SQLite's, the other is the package's.
    if (hasProc) expect(filesOpenIn(folder).filter((file) => file === `${real}-wal`)).toHaveLength(2)
  })
})

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
