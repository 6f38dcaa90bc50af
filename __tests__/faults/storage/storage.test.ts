import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { ENGINE_NAMES, type EngineName, useEngine } from '../../support/engines/engines.js'
import { engine, sqlAt } from '../../support/engines/one-postgres.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { startProxy } from '../../support/engines/tcp-proxy.js'
import { notice } from '../../support/events.js'
import { canMount, smallDisk } from '../../support/machine/small-disk.js'
import { createScene, type Scene } from '../../support/scene.js'
import { OUR_ITEM } from '../../support/settings.js'
import { until } from '../../support/until.js'

describe('C5 PostgreSQL that is stopped as by a power cut during deliveries', () => {
  it.each(['on', 'off'])(
    "has everything that it acknowledged, with the role's default synchronous_commit=%s",
    async (mode) => {
      const store = await engine.freshAddress()
      const server = engine.server()
      // PostgreSQL writes its log much later unless a commit waits for that, so a commit that does not wait is
      // certainly lost.
      await server.sql(`alter system set wal_writer_delay = '10s'`)
      await server.sql(`alter system set wal_writer_flush_after = '1GB'`)
      server.signal('SIGHUP')
      await server.sql(`alter role marketplace set synchronous_commit = ${mode}`)
      onCleanUp(() => server.sql('alter role marketplace reset synchronous_commit'))
      const scene = await createScene({ store, worker: false })
      await scene.marketplace.start()
      const acknowledged: string[] = []

      for (let round = 0; round < 2; round++) {
        const enough = acknowledged.length + 150
        let isDown = false
        const senders = Array.from({ length: 4 }, async (_, sender) => {
          for (let i = 0; !isDown; i++) {
            const { status, id } = await scene.deliver(notice('b1', `s${round}-${sender}-${i}`))
            if (status === 200) acknowledged.push(id)
          }
        })
        await until('enough deliveries are acknowledged', () => acknowledged.length >= enough)
        await server.stop('immediate')
        isDown = true
        await Promise.all(senders)
        await server.start()
      }

      const rows = await sqlAt<{ id: string }>(store, 'select id from marketplace_webhooks.journal')
      const kept = new Set(rows.map(({ id }) => id))
      expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
      await until(
        'the marketplace continues by itself',
        async () => (await scene.deliver(notice('b1', 'last'))).status === 200,
      )
    },
  )
})

describe.each(ENGINE_NAMES)('C7 while the disk of %s is full', (engineName) => {
  const { freshAddress } = engineName === 'SQLite' ? useEngine(engineName) : engine
  const promise = 'nothing is acknowledged, questions are answered, and it recovers without a restart'

  it(`${promise}: as the database reports it`, async () => {
    const { store, sql } = await openStoreWithSql(await freshAddress())
    const scene = await createScene({ store: storeOption(store) })
    const limits: Record<EngineName, [full: string, free: string]> = {
      SQLite: ['pragma max_page_count = 1', 'pragma max_page_count = 1000000'],
      PostgreSQL: [
        `create function full_disk() returns trigger language plpgsql as
          $$ begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
          create trigger full_disk before insert on journal execute function full_disk()`,
        'drop trigger full_disk on journal',
      ],
    }
    const [full, free] = limits[engineName]
    await endures(scene, { fill: () => sql(full), free: () => sql(free) })
  })

  const really = `${promise}: a real disk of some megabytes`
  if (!canMount()) {
    it.skip(`${really} (NOT TESTED: no file system may be mounted here)`, () => {})
    return
  }

  it(really, async () => {
    const { folder, fill, free } = smallDisk(engineName === 'SQLite' ? 2 : 16)
    const scene = await createScene({
      store: engineName === 'SQLite' ? `sqlite:${join(folder, 'm.db')}` : await databaseIn(folder),
    })
    await endures(scene, { fill, free })
  })

  async function databaseIn(folder: string): Promise<string> {
    const server = engine.server()
    await server.sql(`create tablespace small location '${folder}'`)
    onCleanUp(() => server.sql('drop tablespace small'))
    await server.sql('create database small owner marketplace tablespace small')
    onCleanUp(() => server.sql('drop database small with (force)'))
    return server.url('small')
  }

  async function endures(
    { platform, marketplace, deliver }: Scene,
    room: { fill(): unknown; free(): unknown },
  ) {
    const { uid } = platform.purchase({ business_uid: 'b1', purchasable_uid: OUR_ITEM, payment: 'succeeded' })
    await until('the buyer has access', () => marketplace.isEntitled('b1'))
    await room.fill()
    // The rest of the last page accepts some more.
    const refused = await until('the disk is full', async () => {
      const reply = await deliver(notice('b1', uid))
      return reply.status !== 200 && reply
    })
    expect([refused.status, refused.body.code]).toEqual([503, 'delivery_not_accepted'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    for (let i = 0; i < 3; i++) {
      expect(await marketplace.isEntitled('b1')).toBe(true)
      expect(await marketplace.isEntitled('nobody')).toBe(false)
    }

    await room.free()
    const id = await until('deliveries are accepted again', async () => {
      const reply = await deliver(notice('b1', uid))
      return reply.status === 200 && reply.id
    })
    expect((await marketplace.journal.list({ kind: 'event', limit: 1 }))[0]?.id).toBe(id)
    platform.paymentIssue(uid)
    await until('the change is seen', async () => !(await marketplace.isEntitled('b1')))
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
  }
})

describe('C11 a connection to PostgreSQL that is lost', () => {
  it.each(['after', 'before'] as const)(
    'right %s the server receives the COMMIT of a delivery: the delivery is tried again, and stored once',
    async (when) => {
      const address = await engine.freshAddress()
      const proxy = await startProxy({ to: engine.server().port })
      const { marketplace, deliver } = await createScene({ store: proxy.through(address), worker: false })
      await marketplace.start()
      const struck = when === 'after' ? proxy.cutAfter(/commit/i) : proxy.cutBefore(/commit/i)
      const { status, id } = await deliver(notice('b1', 's1'))
      await struck
      expect(status).toBe(200)
      const rows = await sqlAt(
        address,
        `select journal.id, subscription_uid from marketplace_webhooks.journal
          join marketplace_webhooks.subscriptions using (subscription_uid)`,
      )
      expect(rows).toEqual([{ id, subscription_uid: 's1' }])
    },
  )
})

describe('C16 a file that is damaged, or not a database', () => {
  it.each(['no database', 'cut short', 'overwritten in the middle', 'its first bytes changed'])(
    '(%s) gives a clear error, and is neither repaired nor replaced',
    async (damage) => {
      const path = join(temporaryFolder(), 'm.db')
      await written(path)
      const bytes = damaged(readFileSync(path), damage)
      writeFileSync(path, bytes)
      const { marketplace, deliver } = await createScene({ store: `sqlite:${path}` })
      await expect(marketplace.start()).rejects.toMatchObject({
        code: 'store_corrupt',
        message: expect.stringContaining(path),
      })
      expect((await deliver(notice('b1', 's1'))).status).toBe(503)
      expect(await marketplace.isEntitled('b1')).toBe(false)
      expect(await marketplace.explain('b1')).toMatchObject({ known: false, reason: 'store_unavailable' })
      expect(await marketplace.health()).toMatchObject({ status: 'failing' })
      await marketplace.close()
      // SQLite sets the mark of WAL mode and its counter, in the first 100 bytes, before it can read the file.
      expect(readFileSync(path).subarray(100).equals(bytes.subarray(100))).toBe(true)
    },
  )

  async function written(path: string) {
    const { marketplace, deliver } = await createScene({ store: `sqlite:${path}`, worker: false })
    for (let i = 0; i < 40; i++) await deliver(notice('b1', `s${i}`))
    await marketplace.close()
  }

  function damaged(bytes: Buffer, damage: string): Buffer {
    if (damage === 'no database') return Buffer.from('somebody may want this back\n'.repeat(200))
    if (damage === 'cut short') return bytes.subarray(0, bytes.length / 2)
    const copy = Buffer.from(bytes)
    // All pages after the first, because the root page of a tree depends on the version.
    if (damage === 'overwritten in the middle') copy.fill(0xa5, 4_096)
    else copy.fill(0, 0, 16)
    return copy
  }
})
