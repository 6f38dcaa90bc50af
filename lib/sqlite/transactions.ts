import type { Clock } from '../clock.js'
import type { Connection } from '../store/sql.js'
import type { SqliteConnection } from './drivers.js'
import { retryWhileBusy } from './errors.js'
import type { Turns } from './turns.js'

interface TransactionsOptions {
  turns: Turns
  /** The connection to read with; throws when there is none. */
  readable(): SqliteConnection
  /** The connection to write with; rejects while what was committed is not known to be safe. */
  writable(): Promise<SqliteConnection>
  beforeCommit(connection: SqliteConnection): void
  afterCommit(): void
  /** Turns what the library threw into what callers should see. */
  explain(error: unknown): unknown
  clock: Clock
}

/** Queries and transactions over the one connection of a file: callers take turns. */
export function createTransactions(options: TransactionsOptions) {
  const { turns, readable, writable, beforeCommit, afterCommit, explain, clock } = options

  const connection: Connection = {
    placeholder: () => '?',
    async query({ text, values }) {
      try {
        return readable().all(text, values)
      } catch (error) {
        throw explain(error)
      }
    },
  }

  /** One transaction, in its turn. `work` may do all of it in one go: a promise takes longer than a row. */
  async function transact<T>(work: (connection: Connection) => T | Promise<T>): Promise<T> {
    const passTurn = await turns.take()
    try {
      // Never deferred: a transaction that turns from reader to writer fails at once, whatever the timeout.
      await run('begin immediate', await writable())
      try {
        const result = work(connection)
        const done = result instanceof Promise ? await result : result
        await commit()
        return done
      } catch (error) {
        rollBack()
        throw error
      }
    } finally {
      passTurn()
    }
  }

  async function commit() {
    const current = readable()
    try {
      beforeCommit(current)
    } catch (error) {
      throw explain(error)
    }
    await run('commit', current)
    afterCommit()
  }

  // SQLite may have rolled back by itself (a full disk, an I/O error); then there is nothing left to undo.
  function rollBack() {
    try {
      readable().exec('rollback')
    } catch {}
  }

  async function run(statement: string, on: SqliteConnection) {
    try {
      await retryWhileBusy(() => on.all(statement, []), 5_000, clock)
    } catch (error) {
      throw explain(error)
    }
  }

  /** Outside of a transaction: every query takes its own turn. */
  const reading: Connection = {
    ...connection,
    async query(query) {
      const passTurn = await turns.take()
      try {
        return await connection.query(query)
      } finally {
        passTurn()
      }
    },
  }

  return { reading, transact }
}
