import { expect, it } from '@jest/globals'
import type { PostgresConnection } from '../../lib/postgres/connection.js'
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
    max: 1,
    acquire: async () => connection,
    works: async () => {},
    close: async () => {},
  }
  return {
    ...createTransactions({ connections, schema: 'public', isNamed: true }),
    released: () => released,
  }
}
