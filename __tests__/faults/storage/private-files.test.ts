import { chmodSync, copyFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { temporaryFolder } from '../../support/clean-up.js'
import { notice } from '../../support/events.js'
import { runCli, settingsFor } from '../../support/processes/cli.js'
import { createScene, openMarketplace } from '../../support/scene.js'

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

function modesIn(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]),
  )
}
