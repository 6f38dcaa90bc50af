import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, jest } from '@jest/globals'
import { findSqlite, type SqliteDriverName } from '../../lib/sqlite/drivers.js'
import { isAbandoned, newLeaseToken } from '../../lib/store/leases/leases.js'
import { temporaryFolder } from '../support/clean-up.js'
import { claimed, EVERY_TOPIC, handling, leasedEntries } from '../support/conformance/lab.js'
import { DRIVERS, openedAt, storeAt } from '../support/engines/sqlite-drivers.js'
import { eventOf } from '../support/events.js'
import { EVAL_TYPESCRIPT } from '../support/processes/processes.js'

// The promises of every store are in store-conformance.test.ts; these are promises of SQLite only.

describe.each(DRIVERS)('the SQLite store on %s', (driver) => {
  it('gives the work of a process that died to the next one at once', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store } = await openedAt(path, driver)
    await handling(store, EVERY_TOPIC)
    await store.accept([eventOf('s1')])
    await store.close()
    const child = spawnSync(process.execPath, [
      ...EVAL_TYPESCRIPT,
      `require(${JSON.stringify(join(__dirname, '../support/engines/claim-and-die.ts'))})`,
      path,
      driver,
    ])
    expect(child.signal).toBe('SIGKILL')
    const again = await openedAt(path, driver)
    expect(await claimed(again.store)).toMatchObject({ lapses: 0 })
    expect(await leasedEntries(again.store, { limit: 1 })).toMatchObject([{ attempt: 1, lapses: 0 }])
  })

  it('C16 gives the same error for a damaged file at every try, leaves it unchanged, and opens the backup that replaces it', async () => {
    const folder = temporaryFolder()
    const [path, backup] = [join(folder, 'm.db'), join(folder, 'backup.db')]
    const kept = await openedAt(backup, driver)
    await kept.store.accept([eventOf('s1')])
    await kept.store.close()
    const bytes = Buffer.from('this is not a database'.repeat(100))
    writeFileSync(path, bytes)
    const { store } = storeAt(path, driver)
    const refusal = { code: 'store_corrupt', message: expect.stringContaining(path) }
    for (let tries = 0; tries < 2; tries++) await expect(store.open()).rejects.toMatchObject(refusal)
    expect(readFileSync(path).equals(bytes)).toBe(true)
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

  it('G200 of another load of the package in this process is not abandoned, also on another thread', async () => {
    let other: typeof import('../../lib/store/leases/leases.js') | undefined
    jest.isolateModules(() => {
      other = require('../../lib/store/leases/leases.js')
    })
    const tokens = [newLeaseToken(), other?.newLeaseToken(), await tokenOfThread()] as string[]
    expect(new Set(tokens).size).toBe(3)
    expect(tokens.map(isAbandoned)).toEqual([false, false, false])
    expect(tokens.map((token) => other?.isAbandoned(token))).toEqual([false, false, false])
  })
})

/** A lease token of the package on a thread of this process. */
function tokenOfThread(): Promise<string> {
  const load = (file: string) => `require(${JSON.stringify(join(__dirname, file))})`
  const code = `
    ${load('../support/processes/load-typescript.cjs')}
    const { newLeaseToken } = ${load('../../lib/store/leases/leases.ts')}
    require('node:worker_threads').parentPort.postMessage(newLeaseToken())`
  return new Promise((resolve, reject) => {
    new Worker(code, { eval: true }).on('message', resolve).on('error', reject)
  })
}

describe('the SQLite store on a library whose SQLite must not share a file', () => {
  it('refuses a second instance on the file while the first is open', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const { store } = await openedAt(path, 'libsql')
    const { store: second } = storeAt(path, 'libsql')
    await expect(second.open()).rejects.toMatchObject({ code: 'store_in_use' })
    await store.accept([eventOf('s1')])
    await store.close()
    await second.open()
    expect(await second.listEntries({})).toHaveLength(1)
  })
})
