import { chmodSync, chownSync, copyFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { restoreFile } from '../../../lib/sqlite/backup/restore.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { notice } from '../../support/events.js'
import { runCli, settingsFor } from '../../support/processes/cli.js'
import { createScene, openMarketplace } from '../../support/scene.js'

const isRoot = process.getuid?.() === 0
const OTHER = 12_345
// Only root can make a file of a group to which it does not belong, and become another user.
const itAsRoot = isRoot ? it : it.skip

describe.each([
  ['gives every right', 0o000],
  ['takes every right', 0o777],
])('L66 while the umask %s, only the user may read', (_, umask) => {
  let before = 0
  beforeEach(() => {
    before = process.umask(umask)
  })
  afterEach(() => {
    process.umask(before)
  })

  it('the files of a database, at work, after a checkpoint and after a restart', async () => {
    const { folder, scene, store } = await atWork()
    const names = ['m.db', 'm.db-lock', 'm.db-shm', 'm.db-wal']
    expect(Object.keys(modesIn(folder))).toEqual(expect.arrayContaining(names))
    expect(new Set(Object.values(modesIn(folder)))).toEqual(new Set(['600']))
    // More than the pages at which a checkpoint begins.
    const text = 'x'.repeat(50_000)
    for (let i = 0; i < 120; i++) await scene.deliver({ ...notice('b1', `s${i}`), text })
    await scene.marketplace.close()
    const again = openMarketplace(scene.platform, { store, worker: false })
    await again.start()
    await again.subscriptions.track({ subscriptionUid: 's1', businessUid: 'b1' })
    expect(Object.keys(modesIn(folder))).toEqual(expect.arrayContaining(names))
    expect(new Set(Object.values(modesIn(folder)))).toEqual(new Set(['600']))
  }, 60_000)

  it('a backup, its restoration, and an export', async () => {
    const { folder, scene, file } = await atWork()
    const backups = temporaryFolder()
    chmodSync(backups, 0o700)
    const backup = join(backups, 'backup.db')
    await scene.marketplace.backup(backup)
    expect(modesIn(backups)).toEqual({ 'backup.db': '600' })
    await scene.marketplace.close()

    const env = settingsFor(scene.platform, `sqlite:${file}`)
    // As a copy from another machine may be.
    const open = join(backups, 'open.db')
    copyFileSync(backup, open)
    chmodSync(open, 0o666)
    for (const present of [true, false]) {
      if (!present) for (const name of readdirSync(folder)) rmSync(join(folder, name))
      expect(await runCli(['restore', open], { env })).toMatchObject({ code: 0 })
      const modes = modesIn(folder)
      expect([modes['m.db'], new Set(Object.values(modes))]).toEqual(['600', new Set(['600'])])
    }
    expect(statSync(open).mode & 0o777).toBe(0o666)
    const out = join(backups, 'b1.json')
    expect(await runCli(['export', 'b1', '--out', out], { env })).toMatchObject({ code: 0 })
    expect(statSync(out).mode & 0o777).toBe(0o600)
  }, 60_000)

  it('a backup of a database in memory', async () => {
    const { marketplace, deliver } = await createScene({ store: 'sqlite::memory:', worker: false })
    await deliver(notice('b1', 's0'))
    const backups = temporaryFolder()
    chmodSync(backups, 0o700)
    await marketplace.backup(join(backups, 'backup.db'))
    expect(modesIn(backups)).toEqual({ 'backup.db': '600' })
  })

  it('a database that a command creates', async () => {
    const folder = temporaryFolder()
    chmodSync(folder, 0o700)
    const { platform } = await createScene({ worker: false })
    const env = settingsFor(platform, `sqlite:${join(folder, 'm.db')}`)
    expect(await runCli(['migrate'], { env })).toMatchObject({ code: 0 })
    expect(modesIn(folder)).toMatchObject({ 'm.db': '600', 'm.db-lock': '600' })
  }, 60_000)
})

describe('L66 a database that a group may use', () => {
  it('keeps its mode, and the files beside it get it too', async () => {
    const { folder, scene, file, store } = await atWork()
    await scene.marketplace.close()
    for (const name of readdirSync(folder)) if (name !== 'm.db') rmSync(join(folder, name))
    chmodSync(file, 0o660)
    const again = openMarketplace(scene.platform, { store, worker: false })
    await again.start()
    await again.subscriptions.track({ subscriptionUid: 's1', businessUid: 'b1' })
    expect(modesIn(folder)).toMatchObject({ 'm.db-lock': '660', 'm.db-shm': '660', 'm.db-wal': '660' })
    expect(new Set(Object.values(modesIn(folder)))).toEqual(new Set(['660']))
  })

  it('keeps its mode and its owner when a backup replaces it', async () => {
    const { file, env, backup } = await backedUp()
    chmodSync(file, 0o660)
    if (isRoot) chownSync(file, OTHER, OTHER)
    const { uid, gid } = statSync(file)
    expect(await runCli(['restore', backup], { env })).toMatchObject({ code: 0 })
    expect(accessOf(file)).toEqual({ mode: '660', uid, gid })
    expect(statSync(backup).mode & 0o777).toBe(0o600)
  }, 60_000)

  itAsRoot(
    'gives no other group its rights, if the process may not give the group',
    async () => {
      const { folder, file, backup } = await backedUp()
      for (const path of [
        folder,
        dirname(backup),
        backup,
        ...readdirSync(folder).map((name) => join(folder, name)),
      ])
        chownSync(path, OTHER, 0)
      chownSync(file, OTHER + 1, OTHER + 1)
      chmodSync(file, 0o666)
      process.seteuid?.(OTHER)
      try {
        await restoreFile({ path: file, backup, clock: systemClock, prepare: async () => {}, onStep() {} })
      } finally {
        process.seteuid?.(0)
      }
      expect(accessOf(file)).toMatchObject({ mode: '606', uid: OTHER })
    },
    60_000,
  )
})

/** A marketplace over a new file that has accepted a delivery. */
async function atWork() {
  const folder = temporaryFolder()
  // The umask is for the files.
  chmodSync(folder, 0o700)
  const file = join(folder, 'm.db')
  const store = `sqlite:${file}`
  const scene = await createScene({ store, worker: false })
  await scene.deliver(notice('b1', 's0'))
  return { folder, file, store, scene }
}

/** The same, closed, and a backup of it in another folder. */
async function backedUp() {
  const { folder, file, store, scene } = await atWork()
  const backup = join(temporaryFolder(), 'backup.db')
  await scene.marketplace.backup(backup)
  await scene.marketplace.close()
  return { folder, file, backup, env: settingsFor(scene.platform, store) }
}

function accessOf(file: string) {
  const { mode, uid, gid } = statSync(file)
  return { mode: (mode & 0o777).toString(8), uid, gid }
}

function modesIn(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]),
  )
}
