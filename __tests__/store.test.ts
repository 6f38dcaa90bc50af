import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { newId } from '../lib/ids.js'
import { systemClock } from '../lib/schedule.js'
import { isAbandoned, newLeaseToken } from '../lib/store/lease-token.js'
import { createSqlStore } from '../lib/store/sql-store.js'
import { createSqliteEngine } from '../lib/store/sqlite.js'
import type { SqliteDriverName } from '../lib/store/sqlite-drivers.js'
import { type NewEvent, type ReadFinish, type Store, subscriptionKey } from '../lib/store/store.js'

const hasNodeSqlite = process.getBuiltinModule?.('node:sqlite' as 'node:fs') !== undefined
const drivers: SqliteDriverName[] = hasNodeSqlite ? ['node:sqlite', 'libsql'] : ['libsql']
const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

describe.each(drivers)('the SQLite store on %s', (driver) => {
  it('keeps an event and owes a read of its subscription', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1')])
    expect(await store.counts()).toMatchObject({ pending: 1, subscriptions: 1, wanted: 1 })
    const claim = await store.claimRead({ leaseMs: 1_000, except: [], lane: 'new' })
    expect(claim).toMatchObject({
      id: 's1',
      wanted: 1,
      done: 0,
      subscription: { businessUid: 'b-s1', record: null },
    })
  })

  it('keeps an event once, however often it is handed over', async () => {
    const { store } = await open(driver)
    const once = event('s1')
    await store.accept([once])
    await store.accept([once, event('s2')])
    expect(await store.counts()).toMatchObject({ pending: 2 })
  })

  it('counts every event of one subscription in one batch, and leases it once', async () => {
    const { store } = await open(driver)
    await Promise.all(Array.from({ length: 50 }, () => store.accept([event('s1')])))
    const claim = await store.claimRead({ leaseMs: 60_000, except: [], lane: 'new' })
    expect(claim).toMatchObject({ wanted: 50 })
    expect(await store.claimRead({ leaseMs: 60_000, except: [], lane: 'new' })).toBeUndefined()
  })

  it('reads a subscription again that was wanted during its read', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1')])
    const first = await claimNew(store)
    await store.accept([event('s1')])
    expect(await store.finishRead(first, found('purchased'))).toBe(true)
    const second = await until(() => store.claimRead({ leaseMs: 1_000, except: [], lane: 'known' }))
    expect(second).toMatchObject({ wanted: 2, done: 1 })
  })

  it('hands an abandoned read to the next, and lets the late one change nothing', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1')])
    const late = await store.claimRead({ leaseMs: 1, except: [], lane: 'new' })
    const next = await until(() => store.claimRead({ leaseMs: 60_000, except: [], lane: 'new' }))
    expect(next).toMatchObject({ lapses: 1 })
    expect(await store.finishRead(late as never, found('purchased'))).toBe(false)
    expect(await store.renewRead(late as never, 1_000)).toBe(false)
    expect((await store.subscriptionsOf('b-s1'))[0]).toMatchObject({ state: null })
    expect(await store.finishRead(next, found('suspended'))).toBe(true)
    expect((await store.subscriptionsOf('b-s1'))[0]).toMatchObject({ state: 'suspended' })
  })

  it('writes a change together with the read that showed it', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1')])
    const id = newId(Date.now())
    const seen: unknown[] = []
    await store.finishRead(await claimNew(store), {
      ...found('purchased'),
      change: {
        id,
        key: subscriptionKey('s1'),
        payload(subscriptions) {
          seen.push(...subscriptions.map((each) => each.state))
          return '{"to":"purchased"}'
        },
      },
    })
    expect(seen).toEqual(['purchased'])
    expect(await store.listEntries({ kind: 'change' })).toMatchObject([{ id, payload: { to: 'purchased' } }])
  })

  it('does not claim for a business that is being read', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1')])
    expect(await store.claimRead({ leaseMs: 1_000, except: ['b-s1'], lane: 'new' })).toBeUndefined()
  })

  it('lets a notice correct a business that the platform has refused, and never one that it has shown', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1', 'forged')])
    const refused = { settled: false, failure: 'token_refused', progress: null, nextInMs: 60_000 }
    await store.finishRead(await claimNew(store), refused)
    await store.accept([event('s1')])
    await store.finishRead(await claimNew(store), found('purchased'))
    await store.accept([event('s1', 'forged')])
    expect(await store.subscriptionsOf('forged')).toEqual([])
    expect(await store.subscriptionsOf('b-s1')).toHaveLength(1)
  })

  it('hands out the entries of one key one after the other', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1'), event('s1'), event('s2')])
    const first = await store.claimEntries({ limit: 10, leaseMs: 60_000, kinds: ['event'] })
    expect(first.map((entry) => entry.subscriptionUid)).toEqual(['s1', 's2'])
    expect(await store.claimEntries({ limit: 10, leaseMs: 60_000, kinds: ['event'] })).toEqual([])
    await store.finishEntries(first.map(({ id, leaseToken }) => ({ id, leaseToken, result: { to: 'done' } })))
    const second = await store.claimEntries({ limit: 10, leaseMs: 60_000, kinds: ['event'] })
    expect(second.map((entry) => entry.subscriptionUid)).toEqual(['s1'])
  })

  it('holds back what stands behind an entry that is to be tried again, and nothing else', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1'), event('s1'), event('s2'), event('s2')])
    const [s1, s2] = await store.claimEntries({ limit: 10, leaseMs: 60_000, kinds: ['event'] })
    await store.finishEntries([
      { ...leaseOf(s1), result: { to: 'retry', inMs: 60_000, error: 'no' } },
      { ...leaseOf(s2), result: { to: 'dead', error: 'no' } },
    ])
    const next = await store.claimEntries({ limit: 10, leaseMs: 60_000, kinds: ['event'] })
    expect(next.map((entry) => entry.subscriptionUid)).toEqual(['s2'])
  })

  it('replays a dead entry from its first attempt', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1')])
    const [entry] = await store.claimEntries({ limit: 1, leaseMs: 60_000, kinds: ['event'] })
    await store.finishEntries([{ ...leaseOf(entry), result: { to: 'dead', error: 'no' } }])
    expect(await store.replayEntry(leaseOf(entry).id)).toBe(true)
    expect(await store.replayEntry('no such entry')).toBe(false)
    expect(await store.claimEntries({ limit: 1, leaseMs: 1, kinds: ['event'] })).toMatchObject([
      { attempt: 1 },
    ])
  })

  it('skips what nobody handles, and nothing that somebody does', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1'), { ...event('s2'), name: 'application/installed' }])
    expect(
      await store.skipEntries({ limit: 10, kinds: ['event'], exceptNames: ['application/installed'] }),
    ).toBe(1)
    const left = await store.claimEntries({ limit: 10, leaseMs: 1, kinds: ['event'] })
    expect(left.map((entry) => entry.name)).toEqual(['application/installed'])
  })

  it('finds everything again when it is opened anew', async () => {
    const { store, path } = await open(driver)
    await store.accept([event('s1')])
    await store.close()
    const again = await open(driver, path)
    expect(await again.store.counts()).toMatchObject({ pending: 1, wanted: 1 })
  })

  it('hands on at once what a process left behind when it died', async () => {
    const { store, path } = await open(driver)
    await store.accept([event('s1')])
    await store.close()
    const child = spawnSync(process.execPath, [
      '--import',
      'tsx',
      join(__dirname, 'support/claim-and-die.ts'),
      path,
      driver,
    ])
    expect(child.signal).toBe('SIGKILL')
    const again = await open(driver, path)
    expect(await again.store.claimRead({ leaseMs: 60_000, except: [], lane: 'new' })).toMatchObject({
      lapses: 1,
    })
    const entries = await again.store.claimEntries({ limit: 1, leaseMs: 60_000, kinds: ['event'] })
    expect(entries).toMatchObject([{ attempt: 2, lapses: 1 }])
  })

  it('prunes what is over and keeps what is pending', async () => {
    const { store } = await open(driver)
    await store.accept([event('s1'), event('s2')])
    const [entry] = await store.claimEntries({ limit: 1, leaseMs: 60_000, kinds: ['event'] })
    await store.finishEntries([{ ...leaseOf(entry), result: { to: 'done' } }])
    expect(await store.prune({ doneMs: -1_000, changesMs: 0, deadMs: 0 })).toBe(1)
    expect(await store.counts()).toMatchObject({ pending: 1 })
  })

  it('refuses a damaged file with a clear error, and leaves it as it is', async () => {
    const path = join(temporaryFolder(), 'damaged.db')
    const bytes = Buffer.from('this is no database, but somebody may want it back'.repeat(100))
    writeFileSync(path, bytes)
    const store = createSqlStore(createSqliteEngine({ path, clock: systemClock, driver }))
    await expect(store.open()).rejects.toMatchObject({
      code: 'store_corrupt',
      message: expect.stringContaining(path),
    })
    expect(readFileSync(path).equals(bytes)).toBe(true)
  })

  it('says what to do when the folder does not exist', async () => {
    const path = join(temporaryFolder(), 'nowhere', 'm.db')
    const store = createSqlStore(createSqliteEngine({ path, clock: systemClock, driver }))
    await expect(store.open()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(path),
    })
    expect(existsSync(path)).toBe(false)
  })
})

describe('a lease token', () => {
  const [host] = newLeaseToken().split('/')
  const { pid: dead } = spawnSync('true')

  it.each([
    ['of this process', newLeaseToken(), false],
    ['of another process that is alive', `${host}/${process.ppid}/another-life/1`, false],
    ['of another machine', `not-${host}/${dead}/another-life/1`, false],
    ['of a process that is gone', `${host}/${dead}/another-life/1`, true],
    ['of an earlier process with our process id', `${host}/${process.pid}/another-life/1`, true],
  ])('%s is told for abandoned or not', (_whose, token, expected) => {
    expect(isAbandoned(token)).toBe(expected)
  })
})

describe('the SQLite store on a library whose SQLite must not share a file', () => {
  it('refuses a second instance on the file while the first is open', async () => {
    const { store, path } = await open('libsql')
    const second = createSqlStore(createSqliteEngine({ path, clock: systemClock, driver: 'libsql' }))
    await expect(second.open()).rejects.toMatchObject({ code: 'store_in_use' })
    await store.accept([event('s1')])
    await store.close()
    await second.open()
    expect(await second.counts()).toMatchObject({ pending: 1 })
    await second.close()
  })
})

async function open(driver: SqliteDriverName, path = join(temporaryFolder(), 'm.db')) {
  const store = createSqlStore(createSqliteEngine({ path, clock: systemClock, driver }))
  await store.open()
  cleanUps.push(() => store.close())
  return { store, path }
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'marketplace-store-'))
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function event(subscriptionUid: string, businessUid = `b-${subscriptionUid}`): NewEvent {
  return {
    id: newId(Date.now()),
    kind: 'event',
    name: 'purchasable_subscription/update',
    key: subscriptionKey(subscriptionUid),
    businessUid,
    subscriptionUid,
    payload: '{}',
    issues: null,
    wanted: { what: 'subscription', subscriptionUid, businessUid, purchasableUid: 'p' },
  }
}

function found(state: string): ReadFinish {
  const record = { uid: 's1', business_uid: 'b-s1', purchasable_uid: 'p', purchase_state: state }
  return {
    found: { record, state, gone: null, confirmed: true },
    settled: true,
    failure: null,
    progress: null,
    nextInMs: 60_000,
  }
}

async function claimNew(store: Store) {
  return until(() => store.claimRead({ leaseMs: 60_000, except: [], lane: 'new' }))
}

function leaseOf(entry: { id: string; leaseToken: string } | undefined) {
  if (!entry) throw new Error('nothing was claimed')
  return { id: entry.id, leaseToken: entry.leaseToken }
}

async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 5_000
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    if (Date.now() > deadline) throw new Error('nothing came in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
