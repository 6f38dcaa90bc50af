import { randomBytes } from 'node:crypto'
import type { PostgresConnection } from './connection.js'
import { postgresCode } from './errors.js'

/**
 * A connection prepares a statement when it has run it this many times, as PostgreSQL's JDBC driver does: a connection
 * that ends soon gains nothing.
 */
const PREPARE_AFTER = 5

/** A statement. With a `literal`, `$1` in its text stands for it. */
export interface Call {
  text: string
  literal?: string
}

/**
 * Prepared statements by name, which a message of several statements can execute: a third of PostgreSQL's CPU for a batch
 * of deliveries was for parsing and planning the same statements. A pooler in transaction mode, or an app that resets the
 * connections of its pool, may lose them. Then statements are sent as texts until the process restarts.
 */
export function createPreparedStatements() {
  // Unlike those of another store that shares the pool.
  const prefix = `marketplace_webhooks_${randomBytes(4).toString('hex')}_`
  const names = new Map<string, string>()
  const uses = new WeakMap<object, Map<string, number>>()
  let areKept = true

  function nameOf(text: string): string {
    const name = names.get(text) ?? `${prefix}${names.size + 1}`
    names.set(text, name)
    return name
  }

  return {
    /**
     * The text that runs a statement. `send` sends a text and waits until it has run, in the same transaction.
     */
    async call(
      { session }: PostgresConnection,
      { text, literal }: Call,
      send: (text: string) => Promise<unknown>,
    ): Promise<string> {
      const counts = uses.get(session) ?? new Map<string, number>()
      uses.set(session, counts)
      const count = counts.get(text) ?? 0
      if (!areKept || count < PREPARE_AFTER) {
        counts.set(text, count + 1)
        return literal === undefined ? text : text.replaceAll('$1', () => literal)
      }
      const name = nameOf(text)
      if (count === PREPARE_AFTER) {
        await send(`prepare ${name} as ${text}`)
        counts.set(text, count + 1)
      }
      return literal === undefined ? `execute ${name}` : `execute ${name}(${literal})`
    },

    /** From now on statements are sent as texts. */
    stop() {
      areKept = false
    },
  }
}

/** Whether a prepared statement does not exist (26000), or a migration has changed its columns (0A000). */
export function hasLostStatement(error: unknown): boolean {
  return /^(26000|0A000)$/.test(postgresCode(error))
}
