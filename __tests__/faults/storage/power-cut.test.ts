import '../../support/machine/failing-disk.js'
import '../../support/machine/synced-disk.js'
import fs, { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import express from 'express'
import Database from 'libsql'
import { copyStore, restoreBackup } from '../../../lib/index.js'
import { findSqlite } from '../../../lib/sqlite/drivers.js'
import { connect } from '../../../lib/sqlite/file/file.js'
import { sql } from '../../../lib/store/sql/sql.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { DRIVERS, openedAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf, notice } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { recordDisk } from '../../support/machine/synced-disk.js'
import { dumpOf, load, RELEASES } from '../../support/releases/load.js'
import { platformOf, RELEASE_ADDRESSES, RELEASE_APP } from '../../support/releases/platform.js'
import { createScene, deliver, openMarketplace, serve, startPlatform } from '../../support/scene.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../../support/settings.js'
import { until } from '../../support/until.js'

afterEach(() => {
  disk.syncsFail = false
  disk.release()
})

const TITLE = 'C375 a power cut, after which the disk has only what was synced'

describe(`${TITLE}, at a reply`, () => {
  it('loses no delivery with a 200, whichever share a sync', async () => {
    const recorded = recordDisk(temporaryFolder())
    const marketplace = openMarketplace(await startPlatform(), {
      store: `sqlite:${join(recorded.folder, 'm.db')}`,
      worker: false,
    })
    await marketplace.start()
    const acknowledged: string[] = []
    const lost: unknown[] = []
    const app = express()
    app.use((_req, res, next) => {
      const { end } = res
      res.end = ((...given: Parameters<typeof end>) => {
        if (res.statusCode === 200) {
          acknowledged.push(JSON.parse(String(given[0])).id)
          lost.push(...lostBy(recorded, acknowledged))
        }
        return end.apply(res, given)
      }) as typeof end
      next()
    })
    app.use('/hooks', marketplace.router)
    const target = marketplace.webhooks.targetUrl(`${await serve(app)}/hooks`)
    for (let burst = 1; burst < 6; burst++)
      await Promise.all(
        Array.from({ length: burst }, (_, i) => deliver(target, notice('b1', `s${burst}-${i}`))),
      )
    expect([lost, acknowledged.length]).toEqual([[], 15])
  })
})

describe(`${TITLE}, while an app works`, () => {
  it('leaves the tables and the owner of a store that has opened, and all of an older one', async () => {
    for (const release of [undefined, ...RELEASES]) {
      const folder = temporaryFolder()
      const path = join(folder, 'm.db')
      if (release !== undefined) await load(dumpOf(release, 'SQLite'), `sqlite:${path}`)
      const recorded = recordDisk(folder)
      const [before] = release === undefined ? [] : rowsIn(path, 'select count(*) as entries from journal')
      const platform = { ...RELEASE_ADDRESSES, fetch: platformOf({}) }
      const options = { store: `sqlite:${path}`, worker: false, app: RELEASE_APP, platform }
      await openMarketplace(platform, options).start()
      for (const { folder, of } of recorded.cut())
        expect([of, rowsIn(join(folder, 'm.db'), COUNTS)]).toEqual([
          of,
          [{ entries: 0, ...before, owners: 1 }],
        ])
    }
  }, 60_000)

  it('does not undo the claim of an entry whose handler is called', async () => {
    const recorded = recordDisk(temporaryFolder())
    const { marketplace, deliver } = await createScene({ store: `sqlite:${join(recorded.folder, 'm.db')}` })
    const claims: object[] = []
    marketplace.onAny(({ id }) => {
      const claimed = `select count(*) as held from lanes join journal on journal.key = lanes.key
        where journal.id = '${id}' and lease_token is not null`
      for (const { folder } of recorded.cut()) claims.push(...rowsIn(join(folder, 'm.db'), claimed))
    })
    await marketplace.start()
    for (const uid of ['s1', 's2', 's3']) await deliver(notice('b1', uid))
    await until('each is handled', () => claims.length >= 12)
    expect(new Set(claims.map((row) => JSON.stringify(row)))).toEqual(new Set(['{"held":1}']))
  })

  it('undoes no restoration that has resolved, and leaves the former database or the restored one until then', async () => {
    const { found, before, after } = await restoredBesideCuts()
    expect(new Set(found)).toEqual(new Set([String(before), String(after)]))
  }, 60_000)

  it('is never a mixture of the restored with the former database, also where no file can have two names', async () => {
    const { link } = fs.promises
    onCleanUp(() => Object.assign(fs.promises, { link }))
    fs.promises.link = () => Promise.reject(Object.assign(new Error('no links'), { code: 'EPERM' }))
    const { found, before, after } = await restoredBesideCuts()
    expect(new Set(found)).toEqual(new Set([String(before), 'none', String(after)]))
  }, 60_000)

  it('undoes no copy that has resolved, and half a copy is nothing', async () => {
    const { left, after } = await backedUp()
    const recorded = recordDisk(left)
    const at = (name: string) => `sqlite:${join(left, name)}`
    let begun = 0
    await copyStore(at('m.db'), at('copy.db'), {
      actor: 'ada',
      onProgress() {
        for (const { folder } of recorded.cut()) {
          begun++
          expect(rowsIn(join(folder, 'copy.db'), COUNTS)).toEqual([{ entries: 0, owners: 1 }])
        }
      },
    })
    expect(begun).toBeGreaterThan(0)
    for (const { folder, of } of recorded.cut())
      expect([of, idsIn(folder, 'copy.db').slice(0, 32)]).toEqual([of, after])
  }, 60_000)

  /** Restores a backup, and returns which entries an app finds after a power cut at each new name of a file. */
  async function restoredBesideCuts() {
    const { platform, left, backup, before, after } = await backedUp()
    const recorded = recordDisk(left)
    const found: string[] = []
    const library = await findSqlite()
    recorded.onNamed(() => {
      for (const { folder } of recorded.cut()) {
        if (!existsSync(join(folder, 'm.db'))) {
          found.push('none')
          continue
        }
        // As an app opens it: only then a WAL beside it counts.
        connect(library, join(folder, 'm.db')).close()
        found.push(String(idsIn(folder)))
      }
    })
    const { formerPath } = await restoreBackup(
      {
        store: `sqlite:${join(left, 'm.db')}`,
        deliverySecrets: DELIVERY_SECRET,
        app: { ...CLIENT, purchasableUid: OUR_ITEM, codeName: 'ours' },
        platform: { baseUrl: platform.baseUrl, authUrl: platform.authUrl },
      },
      backup,
    )
    for (const { folder, of } of recorded.cut())
      expect({ of, former: idsIn(folder, basename(String(formerPath))), now: idsIn(folder) }).toEqual({
        of,
        former: after,
        now: before,
      })
    return { found, before, after }
  }

  /**
   * A database with 32 deliveries in the folder `left`, as after a power cut, and a backup with the first of them. Its WAL
   * has little, so a mixture of it with the backup is damaged.
   */
  async function backedUp() {
    const platform = await startPlatform()
    const recorded = recordDisk(temporaryFolder())
    const store = `sqlite:${join(recorded.folder, 'm.db')}`
    const backup = join(temporaryFolder(), 'backup.db')
    const first = await opened()
    await first.sent('s1')
    await first.marketplace.backup(backup)
    await Promise.all(Array.from({ length: 30 }, (_, i) => first.sent(`t${i}`)))
    await first.marketplace.close()
    const second = await opened()
    await second.sent('s2')
    const left = String(recorded.cut()[0]?.folder)
    await second.marketplace.close()
    const [before, after] = [idsIn(dirname(backup), 'backup.db'), idsIn(recorded.folder)]
    expect([before.length, after.length]).toEqual([1, 32])
    return { platform, left, backup, before, after }

    async function opened() {
      const marketplace = openMarketplace(platform, { store, worker: false })
      const url = await serve(express().use('/hooks', marketplace.router))
      const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
      return { marketplace, sent: (uid: string) => deliver(target, notice('b1', uid)) }
    }
  }
})

describe.each(DRIVERS)(`${TITLE} (%s)`, (driver) => {
  it('undoes no call that has resolved, also beside others that commit, and after syncs that failed', async () => {
    const { recorded, store, engine } = await recordedStore()
    const done: string[] = []
    const lost: unknown[] = []
    const noted = async (id: string, call: Promise<unknown>) => {
      await call
      done.push(id)
      lost.push(...lostBy(recorded, done))
    }
    async function round(n: number) {
      const calls: Promise<void>[] = []
      for (let i = 0; i < 3; i++) {
        const event = eventOf(`s${n}-${i}`)
        calls.push(noted(event.id, store.accept([event])))
        const action = { ...ACTION, id: `action-${n}-${i}` }
        calls.push(noted(action.id, store.recordAction(action)))
        // Some are committed while an earlier sync runs.
        await new Promise((resolve) => setImmediate(resolve))
      }
      return Promise.allSettled(calls)
    }
    for (let n = 0; n < 3; n++) await round(n)
    disk.syncsFail = true
    expect((await round(3)).filter(({ status }) => status === 'fulfilled')).toEqual([])
    disk.syncsFail = false
    for (let n = 4; n < 6; n++) await round(n)
    disk.hold()
    const first = noted('first', store.recordAction({ ...ACTION, id: 'first' }))
    await until('its sync runs', () => disk.waiting === 1)
    const event = eventOf('during-it')
    const second = noted(event.id, store.accept([event]))
    await until('the other is committed', async () => (await store.getEntry(event.id)) !== undefined)
    disk.release()
    await Promise.all([first, second])
    expect([lost, done.length]).toEqual([[], 32])

    disk.hold()
    const third = noted('third', store.recordAction({ ...ACTION, id: 'third' }))
    await until('its sync runs', () => disk.waiting === 1)
    const mark = engine.mark()
    await engine.write((trx) => sql`create table during_a_sync (a)`.execute(trx))
    disk.release()
    await third
    // The sync that has ended began before this commit.
    await engine.durable(mark)
    const made = `select count(*) as made from sqlite_schema where name = 'during_a_sync'`
    for (const { folder, of } of recorded.cut())
      expect([of, rowsIn(join(folder, 'm.db'), made)]).toEqual([of, [{ made: 1 }]])
    const erased = await store.erase('b1', { ...ACTION, id: 'erasure' })
    expect(erased.rows).toBeGreaterThan(0)
    const events = done.filter((id) => !/^(first|third|action)/.test(id))
    for (const { folder, of } of recorded.cut())
      expect([of, idsIn(folder).filter((id) => events.includes(id))]).toEqual([of, []])
  }, 60_000)

  it('loses nothing when the WAL was moved into the database, began anew, and when the store is closed', async () => {
    const { recorded, store, path } = await recordedStore()
    const payload = JSON.stringify('x'.repeat(300_000))
    const done: string[] = []
    for (let i = 0; i < 36; i++) {
      const event = { ...eventOf(`s${i}`), payload }
      await store.accept([event])
      done.push(event.id)
      // The 32nd commit begins a checkpoint.
      await until('no checkpoint runs', () => !recorded.isMoving())
      if (i > 30) requireEntries(recorded, done)
    }
    await store.close()
    expect(existsSync(`${path}-wal`)).toBe(false)
    requireEntries(recorded, done)
  }, 60_000)

  it('leaves under the name of a backup nothing or all of it, and all once backup has resolved', async () => {
    const { recorded, store } = await recordedStore()
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      const event = eventOf(`s${i}`)
      await store.accept([event])
      ids.push(event.id)
    }
    let named = 0
    recorded.onNamed(() => {
      for (const image of recorded.cut()) {
        if (!existsSync(join(image.folder, 'backup.db'))) continue
        named++
        expect({ of: image.of, ids: idsIn(image.folder, 'backup.db') }).toEqual({ of: image.of, ids })
      }
    })
    await store.backup(join(recorded.folder, 'backup.db'))
    expect(named).toBeGreaterThan(0)
    for (const image of recorded.cut()) {
      expect({ of: image.of, ids: idsIn(image.folder, 'backup.db') }).toEqual({ of: image.of, ids })
      const again = await openedAt(join(image.folder, 'backup.db'), driver)
      expect(await again.store.listEntries({})).toHaveLength(5)
    }
  }, 60_000)

  async function recordedStore() {
    const recorded = recordDisk(temporaryFolder())
    const path = join(recorded.folder, 'm.db')
    return { recorded, path, ...(await openedAt(path, driver)) }
  }
})

/** Requires that each image of a power cut that comes now is a sound database with these entries. */
function requireEntries(recorded: ReturnType<typeof recordDisk>, ids: readonly string[]) {
  expect(lostBy(recorded, ids)).toEqual([])
}

function lostBy(recorded: ReturnType<typeof recordDisk>, ids: readonly string[]) {
  return recorded.cut().flatMap(({ folder, of }) => {
    const kept = new Set(idsIn(folder))
    const missing = ids.filter((id) => !kept.has(id))
    return missing.length > 0 ? [{ of, missing }] : []
  })
}

const ACTION = { name: 'a', businessUid: null, payload: '{}' }

const COUNTS =
  'select (select count(*) from journal) as entries, (select count(*) from store_owner) as owners'

function idsIn(folder: string, name = 'm.db'): string[] {
  const rows = rowsIn(join(folder, name), 'select id from journal order by seq') as { id: string }[]
  return rows.map(({ id }) => id)
}

function rowsIn(path: string, text: string): object[] {
  const database = new Database(path, { fileMustExist: true })
  try {
    // A quick check does not compare indexes with their tables, in which a mixture differs.
    expect(database.prepare('pragma integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    return database.prepare(text).all() as object[]
  } finally {
    database.close()
  }
}
