import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import Database from 'libsql'
import { systemClock } from '../../../lib/base/clock.js'
import { restoreBackup } from '../../../lib/restore.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { notice } from '../../support/events.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'
import { jsonLines, runCli, settingsFor, startCli } from '../../support/processes/cli.js'
import { childSettings, loadReceiver } from '../../support/receiving/receiver-process.js'
import {
  CLIENT,
  createScene,
  DELIVERY_SECRET,
  deliver,
  openMarketplace,
  startPlatform,
} from '../../support/scene.js'
import { until } from '../../support/until.js'

describe('C65 the restoration of a backup, by the words of the page', () => {
  it('after a kill that left a WAL has everything of the backup, nothing of the WAL, and loses nothing', async () => {
    const { platform, env, file, backup, before } = await backedUp()
    const receiver = loadReceiver(childSettings(platform, `sqlite:${file}`, { works: false }))
    await receiver.begin()
    const after: string[] = []
    for (let i = 0; i < 40; i++) after.push((await deliver(receiver.target(), notice('b1', `t${i}`))).id)
    receiver.signal('SIGKILL')
    await receiver.ended
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(40_000)

    const { formerPath } = await restore(env, backup)
    expect(await entriesOf(platform, file)).toEqual(before)
    // The former database still has all that was acknowledged.
    const former = await entriesOf(platform, formerPath)
    expect([...before, ...after].filter((id) => !former.includes(id))).toEqual([])
    // The backup can be restored again, and the restored file has no name of a part of it.
    expect(readdirSync(dirname(file)).filter((name) => /restoring|-journal/.test(name))).toEqual([])
    expect(await runCli(['restore', backup], { env })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/now has the content .*The former database is .*Start the app/s),
    })
  }, 60_000)

  it('can be undone by restoring the former database, which has what was in its WAL', async () => {
    const { platform, env, file, backup, before } = await backedUp()
    const receiver = loadReceiver(childSettings(platform, `sqlite:${file}`, { works: false }))
    await receiver.begin()
    const { id } = await deliver(receiver.target(), notice('b1', 'later'))
    receiver.signal('SIGKILL')
    await receiver.ended
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(0)
    const { formerPath } = await restore(env, backup)
    await restore(env, formerPath)
    expect(await entriesOf(platform, file)).toEqual(expect.arrayContaining([...before, id]))
  }, 60_000)

  it('replaces a file that is not a database any more, and keeps it as it is', async () => {
    const { platform, env, file, backup, before } = await backedUp()
    const damaged = 'no database '.repeat(1_000)
    writeFileSync(file, damaged)
    const { formerPath } = await restore(env, backup)
    expect(readFileSync(formerPath, 'utf8')).toBe(damaged)
    expect(await entriesOf(platform, file)).toEqual(before)
  }, 60_000)

  it('says where the rest of a database is whose file is gone', async () => {
    const { env, file, backup } = await backedUp()
    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
    writeFileSync(`${file}-wal`, 'the rest')
    const { formerPath } = await restore(env, backup)
    expect(readFileSync(formerPath, 'utf8')).toBe('the rest')
  }, 60_000)

  it('leaves an emptied database and its WAL at their path if one of them cannot be moved', async () => {
    const { platform, file, backup } = await backedUp()
    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
    writeFileSync(file, '')
    writeFileSync(`${file}-wal`, 'the rest')
    const now = Date.UTC(2030, 0, 1)
    const formerPath = `${file}.before-restore-2030-01-01T00-00-00.000Z`
    mkdirSync(join(`${formerPath}-wal`, 'in the way'), { recursive: true })
    const { baseUrl, authUrl } = platform
    const restored = restoreBackup(
      {
        app: CLIENT,
        platform: { baseUrl, authUrl },
        deliverySecrets: DELIVERY_SECRET,
        store: `sqlite:${file}`,
        clock: { ...systemClock, now: () => now },
      },
      backup,
    )
    await expect(restored).rejects.toThrow(/Cannot restore .*The database was not changed/)
    expect(statSync(file).size).toBe(0)
    expect(readFileSync(`${file}-wal`, 'utf8')).toBe('the rest')
    expect(existsSync(formerPath)).toBe(false)
  }, 60_000)

  it('leaves no copy of the customers, also if the one before was interrupted at any step', async () => {
    const { platform, env, file, backup, before } = await backedUp()
    enlarge(backup, 60_000)
    const left = () => readdirSync(dirname(file)).filter((name) => name.includes('restoring'))
    const running = startCli(['restore', backup], { env })
    await until('the copy is opened', () => left().some((name) => name.endsWith('-lock')))
    running.signal('SIGINT')
    await running.ended
    expect(left().length).toBeGreaterThan(1)
    // What an interruption leaves while the copy takes the place of the database.
    const whole = `${file}.0a1b2c3d.restoring`
    copyFileSync(backup, whole)
    // It may be restored itself: then it stays, as every backup does.
    await restore(env, whole)
    expect(left()).toEqual([basename(whole)])
    // Another backup whose name begins as those of the copies.
    const beside = join(dirname(file), 'm')
    copyFileSync(backup, beside)
    await restore(env, beside)
    expect(left()).toEqual([])
    expect(await entriesOf(platform, file)).toEqual(before)
  }, 60_000)

  it('of a large database can be used by the process that restored it', async () => {
    const { env, file, backup } = await backedUp()
    enlarge(backup, 60_000)
    for (const store of [`sqlite:${file}`, `sqlite:${join(temporaryFolder(), 'new.db')}`])
      expect(await restore({ ...env, MARKETPLACE_STORE: store }, backup)).toMatchObject({
        subscriptions: 60_006,
      })
  }, 60_000)

  it('is refused while a process uses the database, which is not touched', async () => {
    const { platform, env, file, backup } = await backedUp()
    const marketplace = openMarketplace(platform, { store: `sqlite:${file}`, worker: false })
    await marketplace.start()
    const names = readdirSync(dirname(file))
    const refused = await runCli(['restore', backup, '--json'], { env })
    expect(refused).toMatchObject({ code: 3, stdout: '' })
    expect(jsonLines(refused.stderr)).toMatchObject([
      { error: { code: 'store_in_use', fix: expect.stringContaining('Stop every process') } },
    ])
    expect(readdirSync(dirname(file))).toEqual(names)
    expect((await marketplace.health()).status).toBe('ok')
  }, 60_000)

  it('is refused for what is not a backup of this app, and the database is as it was', async () => {
    const { env, file, backup } = await backedUp()
    const folder = dirname(backup)
    const other = join(folder, 'other.db')
    const foreign = new Database(other)
    foreign.exec('create table subscriptions (a)')
    foreign.close()
    const damaged = join(folder, 'damaged.db')
    writeFileSync(damaged, readFileSync(backup).fill(0xa5, 8_192, 40_000))
    const text = join(folder, 'text.db')
    writeFileSync(text, 'no database '.repeat(1_000))
    const link = join(folder, 'itself.db')
    copyFileSync(file, link)
    const before = readFileSync(file)

    const cases: [backup: string, code: number, error: string, message: RegExp][] = [
      [join(folder, 'missing.db'), 2, 'argument_invalid', /there is no such file/],
      [folder, 2, 'argument_invalid', /it is not a file/],
      [file, 2, 'argument_invalid', /it is the database itself/],
      [other, 3, 'restore_failed', /not a backup of this package/],
      [damaged, 3, 'restore_failed', /damaged/],
      [text, 3, 'restore_failed', /damaged, or not a database/],
    ]
    for (const [given, code, error, message] of cases) {
      const refused = await runCli(['restore', given, '--json'], { env })
      expect({ given, code: refused.code }).toEqual({ given, code })
      expect(jsonLines(refused.stderr)).toMatchObject([
        { error: { code: error, message: expect.stringMatching(message) } },
      ])
    }
    const ofOther = await runCli(['restore', backup, '--json'], {
      env: { ...env, MARKETPLACE_CLIENT_ID: 'another-app' },
    })
    expect(ofOther.code).toBe(3)
    expect(ofOther.stderr).toContain('store_of_another_app')
    const postgres = await runCli(['restore', backup], {
      env: { ...env, MARKETPLACE_STORE: 'postgres://app@127.0.0.1:1/app' },
    })
    expect(postgres).toMatchObject({ code: 2, stderr: expect.stringContaining('pg_restore') })
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(readdirSync(dirname(file)).filter((name) => !name.startsWith(basename(file)))).toEqual([])
    expect(readdirSync(dirname(file)).filter((name) => name.includes('restor'))).toEqual([])
  }, 90_000)
})

describe('C66 after a restoration', () => {
  it('every subscription is read within ten minutes, as a regular read', async () => {
    const { platform, env, file, backup, uids } = await backedUp()
    // The events of these changes are in no journal.
    for (const uid of uids.slice(0, 2)) platform.cancel(uid)
    expect(await restore(env, backup)).toMatchObject({ subscriptions: uids.length })
    const { clock, jump } = jumpingClock()
    const marketplace = openMarketplace(platform, { store: `sqlite:${file}`, clock })
    await marketplace.start()
    expect(await marketplace.isEntitled('b0')).toBe(true)
    expect(await marketplace.health()).toMatchObject({ status: 'ok' })
    jump(600_000)
    await until('what the platform shows is the answer', async () => {
      const answers = await Promise.all(uids.map((_, i) => marketplace.isEntitled(`b${i}`)))
      return JSON.stringify(answers) === JSON.stringify(uids.map((_, i) => i > 1))
    })
  }, 60_000)

  it('by other tools, the command refresh --all does the same', async () => {
    const { env, uids } = await backedUp()
    const all = await runCli(['refresh', '--all', '--within', '1', '--json'], { env })
    expect(all).toMatchObject({ code: 0, stderr: '' })
    expect(jsonLines(all.stdout)).toEqual([{ subscriptions: uids.length, withinMinutes: 1 }])
    for (const args of [['refresh'], ['refresh', 'b1', '--all'], ['refresh', '--all', '--within', '0']])
      expect(await runCli(args, { env })).toMatchObject({ code: 2 })
  }, 60_000)
})

describe.each(ENGINE_NAMES)('C66 refreshAll on %s', (name) => {
  const engine = useEngine(name)

  it('reads a few subscriptions within seconds, not spread over its ten minutes', async () => {
    const platform = await startPlatform()
    const uids = Array.from(
      { length: 8 },
      (_, i) => platform.purchase({ business_uid: `b${i}`, payment: 'succeeded' }).uid,
    )
    const marketplace = openMarketplace(platform, { store: await engine.freshAddress() })
    await marketplace.start()
    const entitled = async () => {
      const answers = await Promise.all(uids.map((_, i) => marketplace.isEntitled(`b${i}`)))
      return answers.filter(Boolean).length
    }
    // Unlike an event, this causes no further reads.
    for (const [i, uid] of uids.entries())
      await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: `b${i}` })
    await until('all are read', async () => (await entitled()) === 8)
    for (const uid of uids) platform.cancel(uid)
    expect(await marketplace.subscriptions.refreshAll()).toEqual({ subscriptions: 8 })
    await until('all are read again', async () => (await entitled()) === 0)
  }, 60_000)
})

/** A database with six subscriptions that were read, closed, and a backup of it in another folder. */
async function backedUp() {
  const platform = await startPlatform()
  const file = join(temporaryFolder(), 'm.db')
  const backup = join(temporaryFolder(), 'backup.db')
  const { baseUrl, authUrl } = platform
  const scene = await createScene({ store: `sqlite:${file}`, platform: { baseUrl, authUrl } })
  const uids = Array.from(
    { length: 6 },
    (_, i) => platform.purchase({ business_uid: `b${i}`, payment: 'succeeded' }).uid,
  )
  for (const [i, uid] of uids.entries()) await scene.deliver(notice(`b${i}`, uid))
  await until('all are read', async () => {
    const answers = await Promise.all(uids.map((_, i) => scene.marketplace.isEntitled(`b${i}`)))
    return answers.every(Boolean)
  })
  await scene.marketplace.settled()
  await scene.marketplace.backup(backup)
  const before = (await scene.marketplace.journal.list({ kind: 'event', limit: 1000 })).map(({ id }) => id)
  await scene.marketplace.close()
  return { platform, env: settingsFor(platform, `sqlite:${file}`), file, backup, uids, before }
}

/** Adds as many copies of a subscription to a database that no process uses. */
function enlarge(file: string, count: number) {
  const database = new Database(file)
  const columns = (database.prepare('pragma table_info(subscriptions)').all() as { name: string }[]).map(
    ({ name }) => name,
  )
  const values = columns.map((name) => (name === 'subscription_uid' ? `'copy-' || i` : name))
  database.exec(`insert into subscriptions (${columns})
    with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${count})
    select ${values} from numbers, (select * from subscriptions limit 1)`)
  database.close()
}

/** Restores by the command line, and returns what it reports. */
async function restore(env: ReturnType<typeof settingsFor>, backup: string) {
  const { code, stdout, stderr } = await runCli(['restore', backup, '--json'], { env })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [restored] = jsonLines<{ formerPath: string; subscriptions: number }>(stdout)
  if (!restored) throw new Error('the command reported nothing')
  return restored
}

async function entriesOf(platform: Awaited<ReturnType<typeof startPlatform>>, file: string) {
  const marketplace = openMarketplace(platform, { store: `sqlite:${file}`, worker: false })
  await marketplace.start()
  const entries = await marketplace.journal.list({ kind: 'event', limit: 1000 })
  await marketplace.close()
  return entries.map(({ id }) => id)
}
