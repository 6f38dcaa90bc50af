import { describe, expect, it } from '@jest/globals'
import { type Connection, sql } from '../../../lib/store/sql/sql.js'
import { run } from '../../../lib/store/sql/writes.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'

describe.each(ENGINE_NAMES)('a transaction on %s', (engineName) => {
  const server = useEngine(engineName)

  async function opened() {
    const lab = await openStoreWithSql(await server.freshAddress())
    await lab.engine.write((trx) => sql`create table t (a integer unique)`.execute(trx))
    return { ...lab, values: async () => (await lab.sql<{ a: number }>('select a from t')).map(({ a }) => a) }
  }

  it('waits for the statements that its work has left to it', async () => {
    const { engine, values } = await opened()
    const { inserted } = await engine.write(async (trx) => {
      const inserted = sql<{ a: number }>`insert into t values (1) returning a`.execute(trx)
      trx.leave(inserted)
      trx.leave(sql`insert into t values (2)`.execute(trx))
      return { inserted }
    })
    expect([await inserted, await values()]).toEqual([[{ a: 1 }], [1, 2]])
  })

  it('rejects with the error of a statement that was left to it, and writes nothing', async () => {
    const { engine, values } = await opened()
    const written = engine.write(async (trx) => {
      trx.leave(sql`insert into t values (1)`.execute(trx))
      trx.leave(sql`insert into none values (1)`.execute(trx))
    })
    await expect(written).rejects.toThrow(/none/)
    expect(await values()).toEqual([])
  })

  it('rejects, and writes nothing, if what was left to it fails before it sends its statement', async () => {
    const { engine, values } = await opened()
    const written = engine.write(async (trx) => {
      await sql`insert into t values (1)`.execute(trx)
      trx.leave(Promise.reject(new Error('a fault of the code')))
    })
    await expect(written).rejects.toThrow('a fault of the code')
    expect(await values()).toEqual([])
  })

  it('rejects if an answer of what was left to it cannot be understood', async () => {
    const { engine } = await opened()
    const written = engine.write(async (trx) => {
      const understood = sql`insert into t values (1) returning a`.execute(trx).then(() => {
        throw new Error('no JSON')
      })
      trx.leave(understood)
    })
    await expect(written).rejects.toThrow('no JSON')
  })

  it('writes nothing that follows a failed statement, although the database may have left the transaction', async () => {
    const { engine, values } = await opened()
    const orRollback = sql.raw(engineName === 'SQLite' ? 'or rollback' : '')
    const written = engine.write(async (trx) => {
      await sql`insert into t values (1)`.execute(trx)
      const sent = [1, 2].map((a) => sql`insert ${orRollback} into t values (${a})`.execute(trx))
      await Promise.all(sent)
    })
    await expect(written).rejects.toThrow(/unique/i)
    expect(await values()).toEqual([])
  })

  it('runs no statement that is sent after its work has ended', async () => {
    const { engine, values } = await opened()
    const late = (trx: Connection) =>
      new Promise((resolve) => setImmediate(resolve)).then(() => sql`insert into t values (2)`.execute(trx))
    const { sent } = await engine.write(async (trx) => {
      await sql`insert into t values (1)`.execute(trx)
      return { sent: late(trx).catch((error) => error) }
    })
    expect(await sent).toMatchObject({ message: expect.stringContaining('the transaction has ended') })
    await expect(engine.write(async (trx) => trx.leave(late(trx)))).rejects.toThrow(
      'the transaction has ended',
    )
    expect(await values()).toEqual([1])
  })

  it('runs no statement that is sent after its work has failed', async () => {
    const { engine, values } = await opened()
    let late: Promise<unknown> = Promise.resolve()
    const written = engine.write(async (trx) => {
      late = new Promise((resolve) => setImmediate(resolve)).then(() =>
        sql`insert into t values (1)`.execute(trx),
      )
      trx.leave(late)
      throw new Error('the work fails')
    })
    await expect(written).rejects.toThrow('the work fails')
    await expect(late).rejects.toThrow('the transaction has ended')
    expect(await values()).toEqual([])
  })

  it('runs several writes in their order, and returns the rows of all', async () => {
    const { engine } = await opened()
    const write = (text: string) => ({
      query: { ...engine.compile(sql.raw(text)), keepsPlan: false },
      rows: [{}],
    })
    const rows = await engine.write((trx) =>
      run(
        { ...engine, queriesOf: ({ query }) => [query] },
        trx,
        write('insert into t values (1) returning a'),
        write('update t set a = a + 1 returning a'),
      ),
    )
    expect(rows).toEqual([{ a: 1 }, { a: 2 }])
  })
})
