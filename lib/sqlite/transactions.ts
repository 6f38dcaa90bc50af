import type { Clock } from '../base/clock.js'
import { sleep } from '../base/waiting.js'
import type { Write } from '../store/sql/dialect.js'
import type { Connection, Query } from '../store/sql/sql.js'
import { createLeft, IS_OVER, type Transaction } from '../store/sql/transaction.js'
import { placeholder, timesOf, valuesOf } from './dialect.js'
import type { SqliteConnection } from './drivers.js'
import { sqliteCode } from './errors.js'
import type { Mutex } from './mutex.js'
import type { SqliteTime } from './time.js'

interface TransactionsOptions {
  mutex: Mutex
  /** The connection to read with; throws when there is none. */
  readable(): SqliteConnection
  /** The connection to write with; rejects while earlier commits may not be on disk. */
  writable(): Promise<SqliteConnection>
  time(): SqliteTime
  beforeCommit(connection: SqliteConnection): void
  afterCommit(): void
  /** Turns an error of the library into the one for callers. */
  explain(error: unknown): unknown
  clock: Clock
}

/** Queries and transactions over the one connection of a file, one at a time. */
export function createTransactions(options: TransactionsOptions) {
  const { mutex, readable, writable, time, beforeCommit, afterCommit, explain, clock } = options

  function all({ text, values }: Query) {
    try {
      return readable().all(text, values)
    } catch (error) {
      throw explain(error)
    }
  }

  /**
   * After a statement of a transaction has failed none runs any more, also of those that did not wait for it: SQLite may have
   * rolled back by itself, and would commit the next one alone. So it would after `close`.
   */
  function untilOneFails() {
    const left = createLeft()
    let refusal: { error: unknown } | undefined
    const trx: Transaction = {
      placeholder,
      async query(each) {
        if (refusal) throw refusal.error
        try {
          return all(each)
        } catch (error) {
          refusal = { error }
          throw error
        }
      },
      leave: left.leave,
    }
    /** Throws the error of what has failed. */
    function throwFailed() {
      if (refusal) throw refusal.error
      left.throwFailed()
    }
    function close() {
      refusal = { error: new Error(IS_OVER) }
    }
    return { trx, throwFailed, close, answered: left.answered }
  }

  /** One transaction. `work` may return no promise, because one costs more than writing a row. */
  async function transact<T>(work: (trx: Transaction) => T | Promise<T>): Promise<T> {
    const unlock = await mutex.lock()
    try {
      // The transaction is immediate: a deferred one that becomes a writer fails at once, whatever the timeout.
      const current = await writable()
      await run('begin immediate', current)
      const { trx, throwFailed, close, answered } = untilOneFails()
      try {
        const result = work(trx)
        const done = result instanceof Promise ? await result : result
        throwFailed()
        close()
        await commit()
        await answered()
        return done
      } catch (error) {
        close()
        rollBack(current)
        throw error
      }
    } finally {
      unlock()
    }
  }

  /** Runs writes in one call: nothing else runs on the connection, or in this process, until they end. */
  function runWrites(writes: readonly Write[]) {
    const current = readable()
    const times = timesOf(time())
    try {
      for (const { query, rows } of writes)
        for (const row of rows) current.all(query.text, valuesOf(query, row, times))
    } catch (error) {
      throw explain(error)
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

  async function run(statement: string, on: SqliteConnection) {
    try {
      await retryWhileBusy(() => on.all(statement, []), 5_000, clock)
    } catch (error) {
      throw explain(error)
    }
  }

  /** Queries outside of a transaction: between two of them others may use the connection. */
  const reading: Connection = {
    placeholder,
    async query(each) {
      const unlock = await mutex.lock()
      try {
        return all(each)
      } finally {
        unlock()
      }
    },
  }

  return { reading, transact, writeAll: (writes: readonly Write[]) => transact(() => runWrites(writes)) }
}

/** Repeats `attempt` while SQLite is busy. Waits outside SQLite, so that the event loop continues. */
export async function retryWhileBusy<T>(attempt: () => T, patienceMs: number, clock: Clock): Promise<T> {
  const deadline = clock.monotonic() + patienceMs
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (sqliteCode(error) !== 'BUSY' || clock.monotonic() >= deadline) throw error
      await sleep(2 + Math.random() * 18, clock)
    }
  }
}

/**
 * Runs `work` in a transaction of a connection, and commits it, or rolls it back when `work` fails. Throws BUSY while
 * another one writes.
 */
export function inTransaction<T>(connection: SqliteConnection, work: () => T): T {
  connection.exec('begin immediate')
  try {
    const result = work()
    connection.exec('commit')
    return result
  } catch (error) {
    rollBack(connection)
    throw error
  }
}

/** Ends a transaction, unless there is none: after a full disk or an I/O error SQLite has rolled it back by itself. */
function rollBack(connection: SqliteConnection) {
  try {
    connection.exec('rollback')
  } catch {}
}
