import { type Clock, SECOND } from '../base/clock.js'
import { withDeadline } from '../base/waiting.js'
import { endsConnection, hasLostStatement } from './errors.js'

/** A connection of a pool of `pg`, by shape. */
export interface PostgresClient {
  /** Runs a statement, or several without values. */
  query(query: {
    text: string
    values?: unknown[]
    /** The driver prepares the statement under this name, and runs it by name from then on. */
    name?: string
    types?: { getTypeParser(oid: number): (value: string) => unknown }
  }): Promise<unknown>
  /** Whether statements are sent before the answers of those before them: option `pipeline` of `pg` 8.23 or newer. */
  pipeline?: boolean
  /** Returns the connection to its pool; with an error or true it is destroyed. */
  release(destroy?: Error | boolean): void
  /** Reports `notification` and `error`. */
  on(event: string, listener: (message: unknown) => void): unknown
  /** Removes a listener. */
  off(event: string, listener: (message: unknown) => void): unknown
}

/** A statement, or several without values. With a `name` the driver prepares it, once for the connection. */
export interface Statement {
  text: string
  values?: readonly unknown[] | undefined
  name?: string | undefined
}

/** A borrowed connection. Every query ends in bounded time. After one that did not answer, the connection is destroyed. */
export interface PostgresConnection {
  /** Whether statements may be sent before the answers of those before them. */
  isPipelined: boolean
  /** With a `name` the driver prepares the statement, once for the connection. */
  query(text: string, values?: readonly unknown[], name?: string): Promise<unknown[]>
  /** Runs statements whose rows nobody needs. In a pipeline they take one round trip, and those after an error fail too. */
  queryAll(statements: readonly Statement[]): Promise<void>
  onNotification(listener: (message: { channel: string; payload?: string }) => void): void
  onLost(listener: () => void): void
  /** Returns it to its pool; with `destroy` it is closed instead. */
  release(destroy?: boolean): void
}

/** The longest statement. The database gives up before this process does, so that it does no useless work. */
export const STATEMENT_MS = 5 * SECOND
const REPLY_MS = STATEMENT_MS + SECOND

/** A borrowed connection, as its pool sees it. */
export interface Loan extends PostgresConnection {
  /** Whether the connection has been idle since before another one failed to answer or had lost its statements: it may do the same. */
  isDoubtful: boolean
}

/** Returns a function that wraps a connection, which a pool has lent, for as long as it is borrowed. */
export function createLoans(clock: Clock) {
  const answeredAt = new WeakMap<PostgresClient, number>()
  /** When a connection last did not answer in time, or had lost its statements. */
  let failedAt = 0

  return function lend(client: PostgresClient): Loan {
    const listeners: [event: string, listener: (message: unknown) => void][] = []
    let broken: Error | undefined
    function listen(event: string, listener: (message: unknown) => void) {
      listeners.push([event, listener])
      client.on(event, listener)
    }
    // The pool does not report errors of a borrowed connection.
    listen('error', (error) => {
      broken = error as Error
    })

    const isPipelined = client.pipeline === true
    const send = ({ text, values, name }: Statement) =>
      client.query({
        text,
        types: NUMBERS_AS_NUMBERS,
        ...(values && { values: [...values] }),
        ...(name && { name }),
      })

    /** What `work` sends and receives, in bounded time. */
    async function answered<T>(work: () => Promise<T>): Promise<T> {
      // A connection that did not answer once is not used again, not even for the rollback.
      if (broken) throw broken
      try {
        const result = await withDeadline(work(), REPLY_MS, clock, () => {
          failedAt = clock.monotonic()
          return noAnswer(REPLY_MS)
        })
        answeredAt.set(client, clock.monotonic())
        return result
      } catch (error) {
        if (hasLostStatement(error)) failedAt = clock.monotonic()
        if (hasLostStatement(error) || !isAnswer(error)) broken = asError(error)
        throw error
      }
    }

    async function query(text: string, values?: readonly unknown[], name?: string) {
      const result = await answered(() => send({ text, values, name }))
      // The result of the last statement, where the text has several.
      const last: unknown = Array.isArray(result) ? result.at(-1) : result
      return (last as { rows?: unknown[] }).rows ?? []
    }

    return {
      isPipelined,
      isDoubtful: (answeredAt.get(client) ?? Number.POSITIVE_INFINITY) <= failedAt,
      query,
      async queryAll(statements) {
        if (!isPipelined) {
          for (const { text, values, name } of statements) await query(text, values, name)
          return
        }
        await answered(async () => {
          const ended = await Promise.allSettled(statements.map(send))
          const failed = ended.find((each) => each.status === 'rejected')
          if (failed) throw failed.reason
        })
      },
      onNotification: (listener) => listen('notification', listener as (message: unknown) => void),
      onLost(listener) {
        listen('error', listener)
        listen('end', listener)
      },
      release(destroy = false) {
        try {
          for (const [event, listener] of listeners.splice(0)) client.off(event, listener)
          client.release(broken ?? destroy)
        } catch {
          // The pool has removed the connection by itself.
        }
      },
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('lost')
}

/** Whether the error is an answer of the database (it has an SQLSTATE), so that the connection can be used again. */
function isAnswer(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && !endsConnection(error)
}

// Numbers and texts, whatever parsers the app has set: 20 int8, 21 int2, 23 int4, 1700 numeric (a sum of int8).
const NUMERIC = new Set([20, 21, 23, 1700])
const NUMBERS_AS_NUMBERS = {
  getTypeParser: (oid: number) => (NUMERIC.has(oid) ? Number : (value: string) => value),
}

export function noAnswer(ms: number): Error {
  return new Error(`no answer from the database within ${ms} ms`)
}
