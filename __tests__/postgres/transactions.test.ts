import { expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { createLoans, type PostgresConnection } from '../../lib/postgres/connection.js'
import { createTransactions } from '../../lib/postgres/transactions.js'
import { sql } from '../../lib/store/sql/sql.js'
import { gate } from '../support/until.js'

const STATEMENT = sql`select ${1}`

it('a statement whose transaction could not begin fails by the reason of that, not by its own', async () => {
  const { transact, read } = transactions({
    queryAll: async () => {
      throw new Error('a setting is refused')
    },
    query: async () => {
      throw new Error('the transaction is aborted')
    },
  })
  await expect(transact((trx) => STATEMENT.execute(trx))).rejects.toThrow('a setting is refused')
  await expect(read((db) => STATEMENT.execute(db))).rejects.toThrow('a setting is refused')
})

it('a read waits for no end of its transaction, and only then returns its connection; a write waits', async () => {
  const end = gate()
  const { transact, read, released } = transactions({
    query: async (text) => {
      if (text === 'commit') await end.opened
      return []
    },
  })
  await read((db) => STATEMENT.execute(db))
  let isWritten = false
  const written = transact((trx) => STATEMENT.execute(trx)).then(() => {
    isWritten = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect([released(), isWritten]).toEqual([0, false])
  end.open()
  await written
  await new Promise((resolve) => setImmediate(resolve))
  expect(released()).toBe(2)
})

it('without a pipeline one statement is sent after the answer to the other, and the end after all', async () => {
  const sent: string[] = []
  let underWay = 0
  let most = 0
  const lend = createLoans(systemClock, { hold() {} })
  const acquire = async () =>
    lend({
      async query({ text }) {
        sent.push(text.replace(/.*begin;.*/s, 'begin'))
        most = Math.max(most, ++underWay)
        await new Promise((resolve) => setImmediate(resolve))
        underWay--
        if (text === 'select 1') throw Object.assign(new Error('refused'), { code: '22P02' })
        return { rows: [] }
      },
      release: () => sent.push('release'),
      on() {},
      off() {},
    })
  const connections = { acquire, works: async () => {}, close: async () => {} }
  const { transact } = createTransactions({ connections, schema: 'public', isNamed: true })
  const statement = (n: number) => sql.raw(`select ${n}`)
  const several = Array.from({ length: 10 }, (_, i) => i + 1)
  await expect(transact((trx) => Promise.all(several.map((n) => statement(n).execute(trx))))).rejects.toThrow(
    'refused',
  )
  const all = ['begin', ...several.map((n) => `select ${n}`), 'rollback', 'release']
  expect([sent.splice(0), most]).toEqual([all, 1])
  const failing = transact(async (trx) => {
    for (const n of [2, 3]) trx.leave(statement(n).execute(trx))
    throw new Error('the work fails')
  })
  await expect(failing).rejects.toThrow('the work fails')
  expect([sent, most]).toEqual([['begin', 'select 2', 'select 3', 'rollback', 'release'], 1])
})

/** Transactions over connections with a pipeline, which answer as the test says. */
function transactions(answers: Partial<Pick<PostgresConnection, 'query' | 'queryAll'>>) {
  let released = 0
  const connection: PostgresConnection = {
    isPipelined: true,
    query: async () => [],
    queryAll: async () => {},
    ...answers,
    onNotification() {},
    onLost() {},
    release() {
      released++
    },
  }
  const connections = {
    acquire: async () => connection,
    works: async () => {},
    close: async () => {},
  }
  return {
    ...createTransactions({ connections, schema: 'public', isNamed: true }),
    released: () => released,
  }
}
