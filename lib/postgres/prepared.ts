import { randomBytes } from 'node:crypto'
import { type Clock, SECOND } from '../clock.js'
import { postgresCode } from './errors.js'

/**
 * A connection prepares a statement when it has run it this many times, as PostgreSQL's JDBC driver does: a connection
 * that ends soon gains nothing.
 */
const PREPARE_AFTER = 5
/** The most statements with a name. This package has fewer, but a list has a text for each combination of its filters. */
const MAX_NAMES = 200
/** A plan made while a table was small may read all of it once it is large. */
const PLANS_LAST_MS = SECOND

/** A statement on a connection that often runs it. */
export interface Prepared {
  /** The same on every connection, because a pooler may give one the statements of another. */
  name: string
  /** For the user of the statement: whether this connection has prepared it. */
  isReady: boolean
}

interface Session {
  statements: Map<string, Prepared & { runs: number }>
  /** When its plans were made. */
  plannedAt: number
}

/**
 * Names for the statements that a connection often runs. Up to a third of PostgreSQL's CPU is for parsing and planning the
 * same statements. A pooler in transaction mode, or an app that resets the connections of its pool, may lose them: then
 * all are sent as texts until the process restarts.
 */
export function createPreparedStatements(clock: Clock) {
  // Unlike those of another store that shares the pool.
  const prefix = `marketplace_webhooks_${randomBytes(4).toString('hex')}_`
  const names = new Map<string, string>()
  const sessions = new WeakMap<object, Session>()
  let areKept = true

  return {
    /** Counts a run of a statement on a connection. Undefined: it is sent as text. */
    use(session: object, text: string): Prepared | undefined {
      const name = areKept ? nameOf(text) : undefined
      if (name === undefined) return undefined
      const { statements } = stateOf(session)
      const statement = statements.get(text) ?? { name, isReady: false, runs: 0 }
      statements.set(text, statement)
      return ++statement.runs > PREPARE_AFTER ? statement : undefined
    },

    /** Whether the connection is to forget its plans: once a second. */
    arePlansOld(session: object): boolean {
      const state = stateOf(session)
      const now = clock.monotonic()
      if (!areKept || now - state.plannedAt < PLANS_LAST_MS) return false
      state.plannedAt = now
      return true
    },

    /** From now on statements are sent as texts. */
    stop() {
      areKept = false
    },
  }

  function stateOf(session: object): Session {
    const state = sessions.get(session) ?? { statements: new Map(), plannedAt: clock.monotonic() }
    sessions.set(session, state)
    return state
  }

  function nameOf(text: string): string | undefined {
    const known = names.get(text)
    if (known !== undefined || names.size === MAX_NAMES) return known
    const name = `${prefix}${names.size + 1}`
    names.set(text, name)
    return name
  }
}

export type PreparedStatements = ReturnType<typeof createPreparedStatements>

/**
 * Whether a connection does not have a prepared statement (26000), has it already because a pooler gave it to another
 * connection of ours (42P05), or a migration has changed its columns (0A000).
 */
export function hasLostStatement(error: unknown): boolean {
  return /^(26000|42P05|0A000)$/.test(postgresCode(error))
}
