import '../../support/machine/failing-disk.js'
import { closeSync, ftruncateSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import { MINUTE } from '../../../lib/base/clock.js'
import { sql } from '../../../lib/store/sql/sql.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { EVERY_TOPIC, handling } from '../../support/conformance/lab.js'
import { child, DRIVERS, openedAt, storeAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { diskAfterPowerCut } from '../../support/machine/power-cut.js'
import { canTrace, readTrace } from '../../support/machine/system-calls.js'
import { until } from '../../support/until.js'

const REFUSED = { code: 'store_unavailable', message: expect.stringContaining('sync') }
const ALONE = { leaseMs: MINUTE, topics: EVERY_TOPIC, exceptKeys: [] }

afterEach(() => {
  disk.syncsFail = false
  disk.release()
})

describe('C60 a sync that fails', () => {
  it('refuses the delivery that waits behind it, and accepts one that is committed after the file was made sound', async () => {
    const { store } = await opened()
    disk.hold()
    const first = settled(store.recordAction(actionOf('first')))
    await until('the first sync is under way', () => disk.waiting === 1)
    const second = settled(store.accept([eventOf('s2')]))
    await until('the second is committed', async () => (await store.listEntries({})).length === 2)
    // Only this sync fails: the kernel has reported the lost pages.
    disk.failWaiting()
    expect(await first).toMatchObject(REFUSED)
    // The third makes the file sound, and the fourth is committed right after that.
    const others = [store.recordAction(actionOf('third')), store.accept([eventOf('s4')])]
    expect(await second).toMatchObject(REFUSED)
    await Promise.all(others)
  })

  it('refuses what was committed before it and asks for a sync only after the file was made sound', async () => {
    const { engine } = await opened()
    const mark = engine.mark()
    await insert('before')
    disk.hold()
    const failing = settled(engine.durable(mark))
    await until('the sync is under way', () => disk.waiting === 1)
    disk.failWaiting()
    expect(await failing).toMatchObject(REFUSED)
    const later = engine.mark()
    await insert('after')
    await engine.durable(later)
    await expect(engine.durable(mark)).rejects.toMatchObject(REFUSED)

    async function insert(value: string) {
      await engine.write(async (trx) => {
        await sql`create table if not exists t (a text)`.execute(trx)
        await sql`insert into t values (${value})`.execute(trx)
      })
    }
  })

  it('is a problem of the store, whichever call has asked for it, until a later write is on disk', async () => {
    const { store } = await opened()
    disk.syncsFail = true
    await expect(store.recordAction(actionOf('a'))).rejects.toMatchObject(REFUSED)
    expect(await store.problem?.()).toMatch(/Cannot sync/)
    expect(await store.problem?.()).toMatch(/Cannot sync/)
    disk.syncsFail = false
    await until('writing works again', async () => (await store.problem?.()) === null)
    await store.accept([eventOf('s1')])
  })
})

describe.each(DRIVERS)(
  'C60 pages that the kernel has dropped from memory too after a failed sync (%s)',
  (driver) => {
    it('are left out when the file is made sound', async () => {
      const path = join(temporaryFolder(), 'm.db')
      const { store } = await openedAt(path, driver)
      for (let i = 0; i < 5; i++) await store.accept([eventOf(`before-${i}`)])
      const synced = readFileSync(`${path}-wal`)
      disk.syncsFail = true
      for (let i = 0; i < 2; i++) {
        await expect(store.accept([eventOf(`lost-${i}`)])).rejects.toMatchObject(REFUSED)
        if (i > 0) break
        const wal = openSync(`${path}-wal`, 'r+')
        ftruncateSync(wal, synced.length)
        closeSync(wal)
      }
      disk.syncsFail = false
      for (let i = 0; i < 5; i++) await store.accept([eventOf(`after-${i}`)])
      expect(await store.listEntries({})).toHaveLength(10)
      await store.close()
      const again = await openedAt(path, driver)
      expect(await again.store.listEntries({})).toHaveLength(10)
    })
  },
)

describe('C61 a process that opens a file after the sync of another process has failed', () => {
  it('writes the WAL to disk again before it accepts a delivery', async () => {
    const { store, path } = await opened()
    disk.syncsFail = true
    await expect(store.accept([eventOf('s1')])).rejects.toMatchObject(REFUSED)
    disk.syncsFail = false
    disk.written = 0
    // The other process still runs, so the WAL has its commits.
    if (DRIVERS.includes('node:sqlite')) await storeAt(path, 'node:sqlite').store.open()
    else await store.accept([eventOf('s2')])
    expect(disk.written).toBeGreaterThan(4_096)
  })
})

describe.each(DRIVERS)('C62 a checkpoint that cannot sync the database (%s)', (driver) => {
  const whenTraced = canTrace() ? it : it.skip
  whenTraced(
    'is a problem of the store until the file was made sound',
    async () => {
      const lines = await child('checkpoints fail', driver, (path) => [
        ...['strace', '-f', '-qq', '-o', '/dev/null', '-P', path, '-e', 'trace=fsync,fdatasync'],
        ...['-e', 'inject=fsync,fdatasync:error=EIO:when=1'],
      ])
      expect(lines).toEqual([{ problem: expect.stringMatching(/I\/O error/) }, { problem: null }])
    },
    60_000,
  )
})

describe.each(DRIVERS)('C60 a power cut after syncs that failed (%s)', (driver) => {
  const whenTraced = canTrace() ? it : it.skip
  whenTraced.each([1, 2])(
    'loses nothing that was acknowledged, at whatever acknowledgement it comes (%i)',
    async (first) => {
      const folder = temporaryFolder()
      const trace = join(folder, 'trace')
      let path = ''
      const lines = await child('syncs fail', driver, (file) => {
        path = file
        return [
          ...['strace', '-f', '-qq', '-y', '-xx', '-s', '2000000', '-o', trace],
          ...['', '-wal', '.acks'].flatMap((end) => ['-P', file + end]),
          ...['-e', 'trace=pwrite64,write,ftruncate,fsync,fdatasync'],
          ...['-e', `inject=fdatasync:error=EIO:when=${first}+4`],
        ]
      })
      expect(lines).toMatchObject([{ codes: ['store_unavailable'] }])
      const power = diskAfterPowerCut()
      const acknowledged: string[] = []
      for (const call of readTrace(trace)) {
        if (call.file !== `${path}.acks`) {
          power.apply(call)
          continue
        }
        acknowledged.push(call.data.toString().trim())
        const image = join(folder, `image-${acknowledged.length}.db`)
        power.write(path, image)
        expect({ after: acknowledged.at(-1), missing: missingIn(image, acknowledged) }).toEqual({
          after: acknowledged.at(-1),
          missing: [],
        })
      }
      expect(acknowledged.length).toBeGreaterThan(10)
    },
    60_000,
  )

  function missingIn(path: string, ids: readonly string[]): string[] {
    const database = new Database(path)
    try {
      expect(database.prepare('pragma quick_check').all()).toEqual([{ quick_check: 'ok' }])
      const rows = database.prepare('select id from journal').all() as { id: string }[]
      const kept = new Set(rows.map(({ id }) => id))
      return ids.filter((id) => !kept.has(id))
    } finally {
      database.close()
    }
  }
})

it('C95 a claim whose sync fails is returned: no handler was called, so nothing becomes suspect and nothing counts', async () => {
  const { clock, jump } = jumpingClock()
  const { store } = await openedAt(join(temporaryFolder(), 'm.db'), undefined, clock)
  await handling(store, EVERY_TOPIC)
  await store.accept([eventOf('s1')])
  disk.syncsFail = true
  for (let i = 0; i < 6; i++)
    await expect(store.claimLanes({ ...ALONE, limit: 10, entryLimit: 10 })).rejects.toMatchObject(REFUSED)
  disk.syncsFail = false
  const [lane] = await store.claimLanes({ ...ALONE, limit: 10, entryLimit: 10 })
  expect(lane).toMatchObject({ lapses: 0, entries: [{ attempt: 1 }] })
  jump(2 * MINUTE)
  expect(await store.dueSuspect({ ...ALONE, kinds: ['lane'] })).toBe('lane')

  // Now the lease of a process that ended has run out.
  disk.syncsFail = true
  for (let i = 0; i < 6; i++) {
    await expect(store.claimSuspectLane(ALONE)).rejects.toMatchObject(REFUSED)
    jump(2 * MINUTE)
  }
  disk.syncsFail = false
  expect(await store.claimSuspectLane(ALONE)).toMatchObject({ lapses: 0, entries: [{ attempt: 1 }] })
})

async function opened() {
  const path = join(temporaryFolder(), 'm.db')
  const { store, engine } = await openedAt(path)
  return { store, engine, path }
}

function actionOf(id: string) {
  return { id, name: 'backup', businessUid: null, payload: '{}' }
}

/** The error of a promise, or undefined. */
function settled(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error) => error,
  )
}
