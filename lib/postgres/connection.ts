import { type Clock, SECOND } from '../base/clock.js'
import { withDeadline } from '../base/waiting.js'
import { endsConnection, hasLostStatement } from './errors.js'
import type { Unanswered } from './unanswered.js'

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
  /** The process of the server that serves the connection. */
  processID?: number | null
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

/** A borrowed connection. Every query ends in bounded time. One that did not answer is not used again until it has. */
export interface PostgresConnection {
  /** Whether statements are sent before the answers of those before them. */
  isPipelined: boolean
  /** Statements run in the order of the calls. With a `name` the driver prepares the statement, once for the connection. */
  query(text: string, values?: readonly unknown[], name?: string): Promise<unknown[]>
  /** Runs statements whose rows nobody needs. In a pipeline they take one round trip, and those after an error fail too. */
  queryAll(statements: readonly Statement[]): Promise<void>
  onNotification(listener: (message: { channel: string; payload?: string }) => void): void
  onLost(listener: () => void): void
  /** Returns it to its pool, if it did not answer once it has; with `destroy` it is closed instead, at once. */
  release(destroy?: boolean): void
}

/** The longest statement. The database gives up one before this process does, so that it does no useless work. */
export const STATEMENT_MS = 5 * SECOND
/** How long the answer may take, of one statement or of all in a round trip. */
const REPLY_MS = STATEMENT_MS + SECOND
/** How long a connection may take to answer that is asked only whether it does. */
const PING_MS = SECOND

/** A borrowed connection, as its pool sees it. */
export interface Loan extends PostgresConnection {
  /**
   * Whether the connection can be used. One that has been idle since before another one failed may do the same: it is asked
   * if that one did not answer, and not used if that one had lost its statements.
   */
  isUsable(): Promise<boolean>
}

/**
 * Returns a function that wraps a connection, which a pool has lent, for as long as it is borrowed. `hold` takes over those
 * that did not answer.
 */
export function createLoans(clock: Clock, { hold }: { hold(connection: Unanswered): void }) {
  const answeredAt = new WeakMap<PostgresClient, number>()
  /** When a connection last did not answer in time. */
  let silentAt = 0
  /** When a connection last had lost its statements. */
  let lostAt = 0

  return function lend(client: PostgresClient): Loan {
    const listeners: [event: string, listener: (message: unknown) => void][] = []
    let broken: Error | undefined
    /** What was sent, and was not answered in time. */
    let unanswered: Promise<unknown> | undefined
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
    async function answered<T>(work: () => Promise<T>, ms = REPLY_MS): Promise<T> {
      // A connection that did not answer is not used any more, not even for the rollback.
      if (broken) throw broken
      try {
        const sent = work()
        const result = await withDeadline(sent, ms, clock, () => {
          silentAt = clock.monotonic()
          unanswered = sent
          return noAnswer(ms)
        })
        answeredAt.set(client, clock.monotonic())
        return result
      } catch (error) {
        if (hasLostStatement(error)) lostAt = clock.monotonic()
        if (hasLostStatement(error) || !isAnswer(error)) broken = asError(error)
        throw error
      }
    }

    /** Without a pipeline a statement waits for the answer to the one before. */
    let before: Promise<unknown> = Promise.resolve()
    function inTurn<T>(work: () => Promise<T>): Promise<T> {
      if (isPipelined) return work()
      const done = before.then(work, work)
      before = done
      return done
    }

    async function query(text: string, values?: readonly unknown[], name?: string) {
      const result = await inTurn(() => answered(() => send({ text, values, name })))
      // The result of the last statement, where the text has several.
      const last: unknown = Array.isArray(result) ? result.at(-1) : result
      return (last as { rows?: unknown[] }).rows ?? []
    }

    function giveBack(destroy: Error | boolean) {
      try {
        for (const [event, listener] of listeners.splice(0)) client.off(event, listener)
        client.release(destroy)
      } catch {
        // The pool has removed the connection by itself.
      }
    }

    /** Waits for the answer, and leaves the transaction. Rejects when the connection has ended. */
    async function settled(answer: Promise<unknown>) {
      await answer.catch((error) => {
        if (!isAnswer(error)) throw error
      })
      await send({ text: 'rollback' })
      answeredAt.set(client, clock.monotonic())
    }

    return {
      isPipelined,
      async isUsable() {
        const usedAt = answeredAt.get(client) ?? Number.POSITIVE_INFINITY
        if (usedAt <= lostAt) return false
        if (usedAt > silentAt) return true
        return answered(() => send({ text: 'select 1' }), PING_MS).then(
          () => true,
          () => false,
        )
      },
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
        if (destroy || !unanswered) return giveBack(broken ?? destroy)
        hold({
          pid: client.processID ?? undefined,
          answered: settled(unanswered),
          release: (isDestroyed) => giveBack(isDestroyed && (broken ?? true)),
        })
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
  return Object.assign(new Error(`no answer from the database within ${ms} ms`), { code: 'ETIMEDOUT' })
}
