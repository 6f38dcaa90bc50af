import type { Connection } from '../store/sql.js'
import { type PostgresConnection, STATEMENT_MS } from './connection.js'
import { explainPostgres } from './errors.js'
import type { PostgresConnections } from './pool.js'
import type { PreparedStatements } from './prepared.js'

/**
 * Transactions with settings that end with the transaction. Behind a pooler in transaction mode, a setting of the session
 * would apply to the transactions of others.
 */
export function createTransactions(options: {
  connections: PostgresConnections
  schema: string
  statements: PreparedStatements
}) {
  const { connections, schema, statements } = options
  const begin = `begin; ${settings(schema, 'custom')}`

  return async function transact<T>(work: (trx: Connection) => Promise<T>): Promise<T> {
    const client = await explained(() => connections.acquire())
    try {
      await explained(() => client.query(begin))
      const result = await work(connectionOver(client, statements))
      await explained(() => client.query('commit'))
      return result
    } catch (error) {
      // If this fails too, the connection is broken, and the server rolls back by itself.
      await client.query('rollback').catch(() => {})
      throw error
    } finally {
      client.release()
    }
  }
}

/** PostgreSQL's parameters, by number. */
export const placeholder: Connection['placeholder'] = (number) => `$${number}`

function connectionOver(client: PostgresConnection, statements: PreparedStatements): Connection {
  return {
    placeholder,
    query: ({ text, values }) =>
      explained(() => client.query(text, values, statements.use(client.session, text)?.name)),
  }
}

/** Runs `work` with errors for callers. */
export async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explainPostgres(error)
  }
}

/**
 * The settings of a transaction: it finds our tables by name, ends when it takes too long, and commits to disk, whatever
 * the defaults of the role or the database. A stronger default stays. Plans of prepared statements are `custom`, made
 * for their values each time, unless they are good for any values and so may be `kept`.
 */
export function settings(schema: string, plans: 'kept' | 'custom'): string {
  const values = {
    search_path: `'"${schema}"'`,
    statement_timeout: `'${STATEMENT_MS}'`,
    // A suspended process loses its transaction before those who wait for its rows give up.
    idle_in_transaction_session_timeout: `'2000'`,
    lock_timeout: `'4000'`,
    // Every statement has an index that returns its rows in order. While statistics are older than the data (a backlog of
    // 100,000 within a minute), the planner prefers to read a whole table, or to sort all due rows.
    enable_seqscan: `'off'`,
    enable_bitmapscan: `'off'`,
    enable_hashjoin: `'off'`,
    enable_mergejoin: `'off'`,
    plan_cache_mode: plans === 'kept' ? `'auto'` : `'force_custom_plan'`,
    synchronous_commit: `case when current_setting('synchronous_commit') in ('off', 'local')
      then 'on' else current_setting('synchronous_commit') end`,
  }
  return `select ${Object.entries(values)
    .map(([name, value]) => `set_config('${name}', ${value}, true)`)
    .join(', ')}`
}
