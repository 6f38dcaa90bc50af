import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { type Clock, HOUR, systemClock } from '../../lib/base/clock.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import { copyTables } from '../../lib/store/sql/copy/copy.js'
import { BATCH, COPIED_TABLES } from '../../lib/store/sql/copy/tables.js'
import type { Engine } from '../../lib/store/sql/engine.js'
import type { Query } from '../../lib/store/sql/sql.js'
import { sql } from '../../lib/store/sql/sql.js'
import { createSqlStore } from '../../lib/store/sql-store.js'
import { engineFor } from '../../lib/store-option.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import {
  ENGINE_NAMES,
  ENGINES,
  type EngineName,
  type TestEngine,
  useEngine,
} from '../support/engines/engines.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { NUMBERS } from '../support/scenes/many-subscriptions.js'

describe.each(ENGINE_NAMES)('the copied columns on %s', (name) => {
  const engine = useEngine(name)

  it('are all columns of the tables, apart from the number of an entry', async () => {
    const store = await openStoreWithSql(await engine.freshAddress())
    const rows = await store.engine.read((db) => store.engine.columns.execute(db))
    const inDatabase = rows.filter(
      ({ table }) =>
        table !== 'store_owner' && table !== 'platform_facts' && !table.startsWith('marketplace_'),
    )
    const copied = COPIED_TABLES.flatMap(({ name: table, columns }) =>
      Object.keys(columns).map((column) => `${table}.${column}`),
    )
    expect(inDatabase.map((each) => `${each.table}.${each.name}`).sort()).toEqual(
      [...copied, 'journal.seq'].sort(),
    )
  })

  it('C196 a copy reads and writes a bounded number of rows and bytes at a time, each way', async () => {
    const large = await engine.freshAddress()
    await filled(large)
    const other = join(temporaryFolder(), 'other.db')
    await limited(
      await engineFor(large, systemClock),
      createSqliteEngine({ path: other, clock: systemClock }),
    )
    const back = await engineFor(await engine.freshAddress(), systemClock)
    await limited(createSqliteEngine({ path: other, clock: systemClock }), back)
  }, 60_000)

  it('C196 writes nothing twice when the answer to its commit is lost, and counts what is there', async () => {
    const { from, to } = await scene()
    let lost = 0
    const twice: Engine = {
      ...to,
      async write(work) {
        await to.write(work)
        lost++
        return to.write(work)
      },
    }
    expect(await copied(from, twice)).toMatchObject({ pending: 3, lanes: 3 })
    expect(lost).toBe(2)
    const { sql: ask } = await openStoreWithSql(addressOf(to))
    expect(await ask('select count(*) as count from journal')).toEqual([{ count: 4 }])
  })

  it('C198 refuses, and writes nothing, when the source changes meanwhile, or a row does not arrive', async () => {
    for (const change of ['an entry ends', 'a row is lost'] as const) {
      const { from, to } = await scene()
      const changing: Engine = {
        ...from,
        async read(work) {
          const result = await from.read(work)
          if (!isPage(result)) return result
          if (change === 'an entry ends')
            await from.write((trx) =>
              sql.raw("update journal set status = 'done' where id = 'id-1'").execute(trx),
            )
          else result.pop()
          return result
        },
      }
      await expect(copied(changing, to)).rejects.toMatchObject({
        code: 'copy_failed',
        message: expect.stringMatching(
          /the source has changed meanwhile.*: [23] pending were copied, and [23] are there\. As long as the copy has not ended, the target has nothing of it, and no app opens it/,
        ),
      })
      const { sql: ask } = await openStoreWithSql(addressOf(to))
      expect(await ask('select count(*) as count from journal')).toEqual([{ count: 0 }])
    }
  })

  it('C196 goes on when a row of the source takes longer than a transaction of the target may pause', async () => {
    const { from, to } = await scene()
    let tries = 0
    const slow: Engine = {
      ...from,
      async read(work) {
        const result = await from.read(work)
        // PostgreSQL ends the transaction of an app that pauses for 2 s.
        if (isPage(result)) await new Promise((resolve) => setTimeout(resolve, 2_500))
        return result
      },
    }
    const counted: Engine = {
      ...to,
      write: (work) =>
        to.write((trx) => {
          tries++
          return work(trx)
        }),
    }
    expect(await copied(slow, counted)).toMatchObject({ pending: 3 })
    expect(tries).toBe(2)
  })

  const addresses = new Map<Engine, string>()
  const addressOf = (of: Engine) => addresses.get(of) as string

  /** A source with three pending entries in three lanes, and an empty target. */
  async function scene() {
    const [source, target] = [await engine.freshAddress(), await engine.freshAddress()]
    await filled(source, 3, 10)
    const [from, to] = [await engineFor(source, systemClock), await engineFor(target, systemClock)]
    addresses.set(to, target)
    return { from, to }
  }
})

describe('C199 the times of a copy', () => {
  const engines: Record<EngineName, TestEngine> = {
    SQLite: ENGINES.SQLite(),
    PostgreSQL: ENGINES.PostgreSQL(),
  }

  it.each(ENGINE_NAMES)(
    'are those of the target on %s, when the clock of the source is ahead',
    async (name) => {
      const path = join(temporaryFolder(), 'ahead.db')
      const ahead: Clock = { ...systemClock, now: () => systemClock.now() + 10 * HOUR }
      const source = createSqliteEngine({ path, clock: ahead })
      const now = ahead.now()
      await withTables(source, [
        `insert into journal (id, kind, name, topic, key, status, attempts, received_at, due_at, payload)
        values ('a', 'change', '', 'change', 'changes:b', 'pending', 1, ${now - HOUR}, ${now + HOUR}, '{}')`,
        `insert into lanes (key, topic, due_at, lapses) values ('changes:b', 'change', ${now + HOUR}, 0)`,
        `insert into lanes (key, topic, due_at, lapses, lease_token) values ('other', 'change', ${now + HOUR}, 0, 'a/1/b/1')`,
        `insert into handlers (topic, seen_at, rescued_at) values ('change', ${now - HOUR}, null)`,
        `insert into subscriptions (subscription_uid, business_uid, generation, settled_generation, urgency, unread, verifying,
        lapses, created_at, read_at, refresh_at, install_at, install_arrived_at, progress)
        values ('s', 'b', 2, 1, 1, 0, 0, 0, ${now - HOUR}, ${now - HOUR}, ${now + HOUR}, 5, 6, '{"refusedAt":7}')`,
      ])
      const to = await engines[name].freshAddress()
      await copied(createSqliteEngine({ path, clock: ahead }), await engineFor(to, systemClock))
      const { sql: ask } = await openStoreWithSql(to)
      const real = Date.now()
      const near = (time: unknown, wanted: number) =>
        expect(Math.abs(Number(time) - wanted)).toBeLessThan(10_000)
      const [entry] = await ask<Record<string, number>>(
        "select received_at, due_at from journal where id = 'a'",
      )
      near(entry?.received_at, real - HOUR)
      near(entry?.due_at, real + HOUR)
      const [waiting, leased] = await ask<Record<string, number>>('select due_at from lanes order by key')
      near(waiting?.due_at, real + HOUR)
      near(leased?.due_at, real)
      const [topic] = await ask<Record<string, number | null>>('select seen_at, rescued_at from handlers')
      near(topic?.seen_at, real - HOUR)
      expect(topic?.rescued_at).toBeNull()
      const [row] = await ask<Record<string, number>>('select * from subscriptions')
      near(row?.read_at, real - HOUR)
      near(row?.refresh_at, real + HOUR)
      expect(row).toMatchObject({ install_at: 5, install_arrived_at: 6, progress: '{"refusedAt":7}' })
    },
    60_000,
  )
})

/** Whether these are rows of the journal. */
function isPage(result: unknown): result is unknown[] {
  return Array.isArray(result) && result.length > 0 && 'payload' in (result[0] as object)
}

function copied(from: Engine, to: Engine) {
  const action = { id: 'copy-1', name: 'copy', businessUid: null, payload: '{}' }
  return copyTables({ from, to, action, onProgress() {} }).finally(async () => {
    await from.close()
    await to.close()
  })
}

/** Copies with a watch over the rows of each query and the values of each statement. */
async function limited(from: Engine, to: Engine) {
  let [rows, bytes] = [0, 0]
  const noted = <Work>(call: (work: (db: never) => Work) => Work) =>
    ((work: (db: { query(query: Query): Promise<unknown[]> }) => Work) =>
      call(((db: { query(query: Query): Promise<unknown[]> }) =>
        work({
          ...db,
          async query(query) {
            const found = await db.query(query)
            rows = Math.max(rows, found.length)
            const sizes = [...query.values, ...found.flatMap((row) => Object.values(row as object))]
            bytes = Math.max(
              bytes,
              sizes.reduce<number>((sum, value) => sum + String(value).length, 0),
            )
            return found
          },
        })) as never)) as never
  const { pending } = await copied(
    { ...from, read: noted(from.read as never) },
    { ...to, write: noted(to.write as never) },
  )
  expect(pending).toBe(1_500)
  expect(rows).toBe(BATCH)
  expect(bytes).toBeGreaterThan(900_000)
  expect(bytes).toBeLessThan(3_000_000)
}

/** Pending entries, each in a lane of its own, with payloads of `bytes`. */
async function filled(address: string, count = 1_500, bytes = 20_000) {
  const { sql: ask, store } = await openStoreWithSql(address)
  await ask(`insert into journal (id, kind, name, topic, key, status, attempts, received_at, payload)
    ${NUMBERS(count)} select 'id-' || n, 'event', 'x', 'event:x', 'lane ' || n, 'pending', 0, 1,
      '"${'x'.repeat(bytes)}"' from numbers`)
  await ask('insert into lanes (key, topic, due_at, lapses) select key, topic, 1, 0 from journal')
  await store.close()
}

/** Runs statements in a database with tables, which is closed then. */
async function withTables(engine: Engine, statements: readonly string[]) {
  const store = createSqlStore(engine)
  onCleanUp(() => store.close())
  await store.open()
  for (const statement of statements) await engine.write((trx) => sql.raw(statement).execute(trx))
  await store.close()
}
