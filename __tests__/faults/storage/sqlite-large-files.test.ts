import '../../support/machine/failing-disk.js'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import { createPostgresEngine } from '../../../lib/postgres/engine.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { child, DRIVERS, openedAt, storeAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf } from '../../support/events.js'
import { canMount, smallDisk } from '../../support/machine/small-disk.js'

describe.each(DRIVERS)('a backup (%s)', (driver) => {
  it('C27 is made during deliveries, opens as a store, and replaces nothing', async () => {
    const folder = temporaryFolder()
    const { store } = await openedAt(join(folder, 'm.db'), driver)
    for (let i = 0; i < 20; i++) await store.accept([eventOf(`s${i}`)])
    const target = join(folder, "it's a backup.db")
    const backup = store.backup(target)
    const meanwhile = Promise.all(Array.from({ length: 50 }, (_, i) => store.accept([eventOf(`t${i}`)])))
    await backup
    await meanwhile
    await expect(store.backup(target)).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringContaining('exists already'),
    })
    const copy = await openedAt(target, driver)
    const { subscriptions } = await copy.store.counts()
    expect(subscriptions).toBeGreaterThanOrEqual(20)
    expect(subscriptions).toBeLessThanOrEqual(70)
    expect((await store.counts()).subscriptions).toBe(70)
  })

  it('C27 that fails reports why and leaves no incomplete file', async () => {
    const folder = temporaryFolder()
    const { store } = await openedAt(join(folder, 'm.db'), driver)
    await expect(store.backup(join(folder, 'nowhere', 'b.db'))).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringContaining('does not exist: make it first'),
    })
    await store.accept([eventOf('s1')])
    expect(readdirSync(folder).filter((name) => !name.startsWith('m.db'))).toEqual([])
  })

  const whenMountable = canMount() ? it : it.skip
  whenMountable('C27 onto a full disk reports that and leaves no incomplete file', async () => {
    const { store } = storeAt(join(temporaryFolder(), 'm.db'), driver)
    await store.open()
    await store.accept([{ ...eventOf('s1'), payload: JSON.stringify('x'.repeat(500_000)) }])
    const { folder, fill } = smallDisk(2)
    fill()
    await expect(store.backup(join(folder, 'b.db'))).rejects.toMatchObject({
      code: 'backup_failed',
      message: expect.stringContaining('the disk is full'),
    })
    expect(readdirSync(folder)).toEqual(['ballast'])
  })

  it('C27 does not keep the process alive after the copy', async () => {
    expect(await child('end with a thread', driver)).toEqual([{ done: true }])
  })
})

it('C27 a backup of PostgreSQL fails with the name of the tool for it', async () => {
  const engine = createPostgresEngine({
    connection: 'postgres://nobody@127.0.0.1:1/nothing',
    schema: 'of_the_app',
    maxConnections: 2,
    clock: systemClock,
  })
  await expect(engine.backup('b.dump')).rejects.toMatchObject({
    code: 'backup_failed',
    message: expect.stringMatching(/pg_dump .*--schema=of_the_app/),
  })
})
