import '../support/machine/failing-disk.js'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { findSqlite, type SqliteDriverName } from '../../lib/sqlite/drivers.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import { isAbandoned, newLeaseToken } from '../../lib/store/leases/leases.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { claimOne, EVERY_TOPIC, handling, leasedEntries } from '../support/conformance/lab.js'
import { eventOf } from '../support/events.js'
import { disk } from '../support/machine/failing-disk.js'
import { EVAL_TYPESCRIPT } from '../support/processes/processes.js'

// The promises of every store are in store-conformance.test.ts; these are promises of SQLite only.

const hasNodeSqlite = process.getBuiltinModule?.('node:sqlite' as 'node:fs') !== undefined
const drivers: SqliteDriverName[] = hasNodeSqlite ? ['node:sqlite', 'libsql'] : ['libsql']

afterEach(() => {
  disk.syncsFail = false
})

describe.each(drivers)('the SQLite store on %s', (driver) => {
  it('gives the work of a process that died to the next one at once', async () => {
    const { store, path } = await open(driver)
    await handling(store, EVERY_TOPIC)
    await store.accept([event('s1')])
    await store.close()
    const child = spawnSync(process.execPath, [
      ...EVAL_TYPESCRIPT,
      `require(${JSON.stringify(join(__dirname, '../support/engines/claim-and-die.ts'))})`,
      path,
      driver,
    ])
    expect(child.signal).toBe('SIGKILL')
    const again = await open(driver, path)
    expect(await claimOne(again.store, { leaseMs: 60_000, except: [], urgencies: [1, 2] })).toMatchObject({
      lapses: 0,
    })
    expect(await leasedEntries(again.store, { limit: 1 })).toMatchObject([{ attempt: 1, lapses: 0 }])
  })

  it('C6 stores nothing durably while the disk cannot be synced, and continues when it can', async () => {
    const { store, path } = await open(driver)
    await store.accept([event('s1')])
    disk.syncsFail = true
    for (const refused of [store.accept([event('s2')]), store.accept([event('s3')])]) {
      await expect(refused).rejects.toMatchObject({ code: 'store_unavailable' })
    }
    await expect(store.accept([event('s4')])).rejects.toMatchObject({ code: 'store_unavailable' })
    disk.syncsFail = false
    const last = event('s5')
    await store.accept([last])
    const before = await store.listEntries({})
    expect(before.map(({ id }) => id)).toContain(last.id)
    await store.close()
    expect(await (await open(driver, path)).store.listEntries({})).toEqual(before)
  })

  it('C16 refuses a damaged file with a clear error, and leaves it unchanged', async () => {
    const path = join(temporaryFolder(), 'damaged.db')
    const bytes = Buffer.from('this is not a database, but somebody may want it back'.repeat(100))
    writeFileSync(path, bytes)
    await expect(storeAt(path, driver).open()).rejects.toMatchObject({
      code: 'store_corrupt',
      message: expect.stringContaining(path),
    })
    expect(readFileSync(path).equals(bytes)).toBe(true)
  })

  it('explains the next step when the folder does not exist', async () => {
    const path = join(temporaryFolder(), 'nowhere', 'm.db')
    await expect(storeAt(path, driver).open()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: `Cannot open the SQLite file ${path}: the folder ${dirname(path)} does not exist: make it first`,
    })
    expect(existsSync(path)).toBe(false)
  })

  it('explains the next step when its path is a folder', async () => {
    await expect(storeAt(temporaryFolder(), driver).open()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/it is a folder: name a file in it$/),
    })
  })

  it('C16 gives the same error for a damaged file at every try, and opens the backup that replaces it', async () => {
    const folder = temporaryFolder()
    const [path, backup] = [join(folder, 'm.db'), join(folder, 'backup.db')]
    const kept = await open(driver, backup)
    await kept.store.accept([event('s1')])
    await kept.store.close()
    writeFileSync(path, 'this is not a database'.repeat(100))
    const store = storeAt(path, driver)
    onCleanUp(() => store.close())
    await expect(store.open()).rejects.toMatchObject({ code: 'store_corrupt' })
    await expect(store.open()).rejects.toMatchObject({ code: 'store_corrupt' })
    renameSync(backup, path)
    await store.open()
    expect(await store.listEntries({})).toHaveLength(1)
  })
})

describe('the drivers of SQLite', () => {
  it('name the package to install when no library is installed', async () => {
    await expect(findSqlite('none' as SqliteDriverName)).rejects.toMatchObject({
      code: 'store_driver_missing',
      message: expect.stringContaining('npm install'),
    })
  })

  it.each(drivers)('open %s, with the version of its library', async (driver) => {
    const { open, version } = await findSqlite(driver)
    const connection = open(':memory:')
    onCleanUp(() => connection.close())
    expect(version[0]).toBe(3)
    expect(connection.all('select ? as a', [1])).toMatchObject([{ a: 1 }])
  })
})

describe('a lease token', () => {
  const [host] = newLeaseToken().split('/')
  const { pid: dead } = spawnSync('true')

  it.each([
    ['of this process', newLeaseToken(), false],
    ['of another living process', `${host}/${process.ppid}/another-life/1`, false],
    ['of another machine', `not-${host}/${dead}/another-life/1`, false],
    ['of a dead process', `${host}/${dead}/another-life/1`, true],
    ['of an earlier process with the same process id', `${host}/${process.pid}/another-life/1`, true],
  ])('%s is recognised as abandoned or not', (_whose, token, expected) => {
    expect(isAbandoned(token)).toBe(expected)
  })
})

describe('the SQLite store on a library whose SQLite must not share a file', () => {
  it('refuses a second instance on the file while the first is open', async () => {
    const { store, path } = await open('libsql')
    const second = storeAt(path, 'libsql')
    await expect(second.open()).rejects.toMatchObject({ code: 'store_in_use' })
    await store.accept([event('s1')])
    await store.close()
    await second.open()
    expect(await second.listEntries({})).toHaveLength(1)
    await second.close()
  })
})

function storeAt(path: string, driver: SqliteDriverName) {
  return createSqlStore(createSqliteEngine({ path, clock: systemClock, driver }))
}

async function open(driver: SqliteDriverName, path = join(temporaryFolder(), 'm.db')) {
  const store = storeAt(path, driver)
  await store.open()
  onCleanUp(() => store.close())
  return { store, path }
}

function event(subscriptionUid: string) {
  return eventOf(subscriptionUid, `b-${subscriptionUid}`)
}
