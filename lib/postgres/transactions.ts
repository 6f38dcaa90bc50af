import type { Script, Step } from '../store/dialect.js'
import type { Connection } from '../store/sql.js'
import { type PostgresConnection, STATEMENT_MS } from './connection.js'
import { explainPostgres } from './errors.js'
import type { PostgresConnections } from './pool.js'

/**
 * Transactions with settings that end with the transaction. Behind a pooler in transaction mode, a setting of the session
 * would apply to the transactions of others.
 */
export function createTransactions(connections: PostgresConnections, schema: string) {
  const begin = `begin; ${settings(schema)}`

  return async function transact<T>(work: (trx: Connection) => Promise<T>): Promise<T> {
    const client = await explained(() => connections.acquire())
    try {
      await explained(() => client.query(begin))
      const result = await work(connectionOver(client))
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

function connectionOver(client: PostgresConnection): Connection {
  return { placeholder, query: ({ text, values }) => explained(() => client.query(text, values)) }
}

/**
 * Runs a script as one transaction. A message contains the statements up to the first that answers. It has literals
 * instead of parameters: a message of several statements has no parameters, and behind a pooler a prepared statement may
 * be missing from the next connection.
 */
export function createScripts(connections: PostgresConnections, schema: string) {
  const begin = `begin; ${settings(schema)}`

  return async function runScript<T>(script: Script<T>): Promise<T> {
    return explained(async () => {
      const connection = await connections.acquire()
      let message = begin
      const send = async () => {
        const text = message
        message = ''
        return connection.query(text)
      }
      try {
        let next = script.next([])
        while (!next.done) {
          message += `${message && '; '}${withLiterals(next.value)}`
          next = script.next(next.value.answers ? await send() : [])
        }
        message += `${message && '; '}commit`
        await send()
        return next.value
      } catch (error) {
        // If this fails too, the connection is broken, and the server rolls back by itself.
        await connection.query('rollback').catch(() => {})
        throw error
      } finally {
        connection.release()
      }
    })
  }
}

/** In place of a parameter: the rows of a step, as JSON. */
export const ROWS = Symbol('rows')

function withLiterals({ query, rows }: Step): string {
  if (query.values.length === 0) return query.text
  // Without `$` nothing ends the literal early, and ASCII is the same in every encoding. JSON.stringify leaves no NUL.
  const json = JSON.stringify(rows).replace(
    /[$\u007f-\uffff]/g,
    (odd) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return query.text.replace(/\$\d+/g, () => `$$${json}$$`)
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explainPostgres(error)
  }
}

/**
 * The settings of a transaction: it finds our tables by name, ends when it takes too long, and commits to disk, whatever
 * the defaults of the role or the database. A stronger default stays.
 */
function settings(schema: string): string {
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
    synchronous_commit: `case when current_setting('synchronous_commit') in ('off', 'local')
      then 'on' else current_setting('synchronous_commit') end`,
  }
  return `select ${Object.entries(values)
    .map(([name, value]) => `set_config('${name}', ${value}, true)`)
    .join(', ')}`
}
