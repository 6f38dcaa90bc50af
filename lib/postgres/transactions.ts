import { createHash } from 'node:crypto'
import type { Connection, Query } from '../store/sql/sql.js'
import { createLeft, IS_OVER, type Transaction } from '../store/sql/transaction.js'
import { type PostgresConnection, STATEMENT_MS, type Statement } from './connection.js'
import { explainPostgres } from './errors.js'
import type { PostgresConnections } from './pool.js'

/**
 * Transactions with settings that end with the transaction. Behind a pooler in transaction mode, a setting of the session
 * would apply to the transactions of others.
 *
 * Each connection prepares a statement once, under a name made from its text: up to a third of PostgreSQL's CPU is for
 * parsing the same statements. `isNamed: false` is for poolers that lose them.
 */
export function createTransactions(options: {
  connections: PostgresConnections
  schema: string
  isNamed: boolean
}) {
  const { connections, schema, isNamed } = options
  /** The name of the lock that `holdWrites` takes alone. */
  const writes = `hashtextextended('${schema} writes', 0)`
  const shareWrites = `pg_advisory_xact_lock_shared(${writes})`
  const search = `select ${settings({ ...limits(schema), ...PLANNER })}`
  const searchAndShare = `${search}, ${shareWrites}`
  const share = `select ${settings(limits(schema))}, ${shareWrites}`
  const names = new Map<string, string>()

  /**
   * The name under which the driver prepares a statement. One without parameters gets no name, because PostgreSQL would keep
   * its first plan. The schema is part of the name, because a pool of the app's own may serve several stores.
   */
  function nameOf({ text, values }: Query): string | undefined {
    return isNamed && values.length > 0 ? nameFor(text) : undefined
  }

  function nameFor(text: string): string {
    const name = names.get(text) ?? hashOf(`${schema} ${text}`)
    names.set(text, name)
    return name
  }

  const named = (each: Query): Statement => ({ text: each.text, values: each.values, name: nameOf(each) })

  async function withConnection<T>(work: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    const connection = await explained(() => connections.acquire())
    try {
      return await work(connection)
    } catch (error) {
      // If this fails too, the connection is broken, and the server rolls back by itself.
      await connection.query('rollback').catch(() => {})
      throw error
    } finally {
      connection.release()
    }
  }

  /** In a pipeline the settings have a name too, because parsing them takes longer than making them. */
  function beginning({ isPipelined }: PostgresConnection, text: string): Statement[] {
    if (!isNamed || !isPipelined) return [{ text: `begin; ${text}` }]
    return [{ text: 'begin' }, { text, values: [], name: nameFor(text) }]
  }

  /**
   * Begins a transaction, whose statements run in the order of the calls. In a pipeline none waits for the answer to the one before:
   * while deliveries keep the event loop busy, each answer takes one of its turns.
   */
  function begin(connection: PostgresConnection) {
    /** The answer to the last statement, or the first error of all before it. */
    let last: Promise<unknown> = connection.queryAll(beginning(connection, search))
    let isOver = false
    const left = createLeft()
    function send(text: string, values?: readonly unknown[], name?: string) {
      const answer = connection.query(text, values, name)
      const inOrder = last.then(() => answer)
      for (const each of [last, answer, inOrder]) each.catch(() => {})
      last = inOrder
      return inOrder
    }
    const trx: Transaction = {
      placeholder,
      query: (each) =>
        explained(() =>
          isOver ? Promise.reject(new Error(IS_OVER)) : send(each.text, each.values, nameOf(each)),
        ),
      leave: left.leave,
    }

    return {
      async run<T>(work: (trx: Transaction) => Promise<T>): Promise<T> {
        try {
          return await work(trx)
        } finally {
          isOver = true
        }
      },
      /** Rolls back if one of the statements has failed, or fails yet. */
      async commit() {
        left.throwFailed()
        await explained(() => send('commit'))
        await left.answered()
      },
    }
  }

  return {
    /** Resolves when the transaction is committed. The commit is sent when `work` ends. */
    transact: <T>(work: (trx: Transaction) => Promise<T>): Promise<T> =>
      withConnection(async (connection) => {
        const { run, commit } = begin(connection)
        const result = await run(work)
        await commit()
        return result
      }),

    /** As `transact`, for queries that only read: nobody waits until the transaction has ended. */
    async read<T>(work: (db: Connection) => Promise<T>): Promise<T> {
      const connection = await explained(() => connections.acquire())
      try {
        return await begin(connection).run(work)
      } finally {
        // After an error, `commit` rolls back.
        const ended = connection.query('commit').catch(() => {})
        ended.finally(() => connection.release())
      }
    },

    /** Runs queries whose rows nobody needs. Where the driver has a pipeline, they take one round trip together. */
    writeAll(queries: readonly Query[]): Promise<void> {
      const text = queries.every(({ keepsPlan }) => keepsPlan) ? share : searchAndShare
      return withConnection((connection) =>
        explained(() =>
          // After an error, `commit` rolls back.
          connection.queryAll([...beginning(connection, text), ...queries.map(named), { text: 'commit' }]),
        ),
      )
    },

    /** Waits for the `writeAll` under way, and lets new ones wait until the transaction ends. */
    async holdWrites(trx: Connection) {
      await trx.query({ text: `select pg_advisory_xact_lock(${writes})`, values: [] })
    },
  }
}

/** PostgreSQL's parameters, by number. */
export const placeholder: Connection['placeholder'] = (number) => `$${number}`

function hashOf(text: string): string {
  return `marketplace_webhooks_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
}

/** Runs `work` with errors for callers. */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explainPostgres(error)
  }
}

/**
 * The settings of every transaction: it finds our tables by name, ends when it takes too long, and commits to disk,
 * whatever the defaults of the role or the database. A stronger default stays.
 */
function limits(schema: string) {
  return {
    search_path: `'"${schema}"'`,
    statement_timeout: `'${STATEMENT_MS}'`,
    // A suspended process loses its transaction before those who wait for its rows give up.
    idle_in_transaction_session_timeout: `'2000'`,
    lock_timeout: `'4000'`,
    synchronous_commit: `case when current_setting('synchronous_commit') in ('off', 'local')
      then 'on' else current_setting('synchronous_commit') end`,
  }
}

/**
 * The settings for statements that search: each is planned each time it runs, because a plan that was made while a table
 * was small may read all of it once it is large.
 */
const PLANNER = {
  // Every statement has an index that returns its rows in order. While statistics are older than the data (a backlog of
  // 100,000 within a minute), the planner prefers to read a whole table, or to sort all due rows.
  enable_seqscan: `'off'`,
  enable_bitmapscan: `'off'`,
  enable_hashjoin: `'off'`,
  enable_mergejoin: `'off'`,
  plan_cache_mode: `'force_custom_plan'`,
}

function settings(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => `set_config('${name}', ${value}, true)`)
    .join(', ')
}
