import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { withDeadline } from '../waiting.js'
import { endsConnection } from './errors.js'

/** A pool of `pg` (node-postgres 8.16 or newer), by shape, so that its types are not a dependency. */
export interface PostgresPool {
  /** Lends a connection; `callback` receives it, or the error. */
  connect(callback: (error: Error | undefined, client: PostgresClient | undefined) => void): void
  /** Reports idle connections that broke. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Removes a listener. */
  off(event: 'error', listener: (error: Error) => void): unknown
  options?: { max?: number }
}

/** A connection of such a pool. */
export interface PostgresClient {
  /** Runs a statement, or several without values. */
  query(query: {
    text: string
    values?: unknown[]
    types?: { getTypeParser(oid: number): (value: string) => unknown }
  }): Promise<unknown>
  /** Returns the connection to its pool; with an error or true it is destroyed. */
  release(destroy?: Error | boolean): void
  /** Reports `notification` and `error`. */
  on(event: string, listener: (message: unknown) => void): unknown
  /** Removes a listener. */
  off(event: string, listener: (message: unknown) => void): unknown
}

export function isPool(value: object): value is PostgresPool {
  return ['connect', 'on', 'off'].every((name) => name in value)
}

/** A borrowed connection. Every query ends in bounded time. After one that did not answer, the connection is destroyed. */
export interface PostgresConnection {
  query(text: string, values?: readonly unknown[]): Promise<unknown[]>
  onNotification(listener: (message: { channel: string; payload?: string }) => void): void
  onLost(listener: () => void): void
  /** Returns it to its pool; with `destroy` it is closed instead. */
  release(destroy?: boolean): void
}

/** The longest wait for a connection: a network that drops packets must not hold a delivery for ever. */
const CONNECT_MS = 3 * SECOND
/** The longest statement. The database gives up before this process does, so that it does no work in vain. */
export const STATEMENT_MS = 5 * SECOND
const REPLY_MS = STATEMENT_MS + SECOND

export interface PostgresConnections {
  /** The most connections at once, as far as that is known. */
  max: number
  acquire(): Promise<PostgresConnection>
  /** Closes all connections. The next `acquire` opens the pool again. */
  close(): Promise<void>
}

/** Connections from a pool of the app's own, or from a pool of ours when given an address. */
export function createConnections(
  from: string | PostgresPool,
  clock: Clock,
  max: number,
): PostgresConnections {
  let opening: Promise<PostgresPool> | undefined
  const answeredAt = new WeakMap<PostgresClient, number>()
  /** Rejects the callers that wait for a connection, which a closed pool never does. */
  const waiting = new Set<() => void>()
  let silentAt = 0

  // Without a listener, the error of a broken idle connection ends the process.
  const ignore = () => {}

  async function openPool(): Promise<PostgresPool> {
    const pool = typeof from === 'string' ? await createPool(from, max) : from
    pool.on('error', ignore)
    return pool
  }

  function pool(): Promise<PostgresPool> {
    const current = opening ?? openPool()
    opening = current
    return current.catch((error) => {
      if (opening === current) opening = undefined
      throw error
    })
  }

  async function connect(): Promise<Loan> {
    const source = await pool()
    let giveUp = () => {}
    const connecting = new Promise<Loan>((resolve, reject) => {
      giveUp = () => reject(new Error('the connections are being closed'))
      waiting.add(giveUp)
      source.connect((error, client) => {
        // Listeners are added at once, without a promise: a new connection may end in the packet in which it begins, and an
        // error without a listener ends the process. A throw must not reach the driver of the app's own pool.
        try {
          if (client && waiting.has(giveUp)) resolve(lend(client))
          else if (client) client.release(true)
          else reject(error)
        } catch (odd) {
          reject(odd)
        }
      })
    })
    try {
      return await withDeadline(connecting, CONNECT_MS, clock, () => noAnswer(CONNECT_MS))
    } catch (error) {
      // A connection that comes in this moment is destroyed.
      connecting.then((loan) => loan.release(true)).catch(() => {})
      throw error
    } finally {
      waiting.delete(giveUp)
    }
  }

  function lend(client: PostgresClient): Loan {
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

    return {
      isSuspect: (answeredAt.get(client) ?? Number.POSITIVE_INFINITY) <= silentAt,
      async query(text, values) {
        // A connection that did not answer once is not used again, not even for the rollback.
        if (broken) throw broken
        try {
          const query = { text, types: NUMBERS_AS_NUMBERS, ...(values && { values: [...values] }) }
          const result = await withDeadline(client.query(query), REPLY_MS, clock, () => {
            silentAt = clock.monotonic()
            return noAnswer(REPLY_MS)
          })
          answeredAt.set(client, clock.monotonic())
          // The result of the last statement, where the text has several.
          const last: unknown = Array.isArray(result) ? result.at(-1) : result
          return (last as { rows?: unknown[] }).rows ?? []
        } catch (error) {
          if (!isAnswer(error)) broken = asError(error)
          throw error
        }
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

  return {
    max: (typeof from === 'string' ? undefined : from.options?.max) ?? max,

    async acquire() {
      for (;;) {
        const loan = await connect()
        if (!loan.isSuspect) return loan
        loan.release(true)
      }
    },

    async close() {
      const closing = opening
      opening = undefined
      const opened = await closing?.catch(() => undefined)
      for (const giveUp of waiting) giveUp()
      if (isOwn(opened)) await opened.end()
      else opened?.off('error', ignore)
    },
  }

  function isOwn(opened: PostgresPool | undefined): opened is OwnPool {
    return opened !== undefined && opened !== from
  }
}

interface Loan extends PostgresConnection {
  /** Idle since before another connection did not answer, so it may not answer either. */
  isSuspect: boolean
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('lost')
}

/** Whether the error is an answer of the database, so that the connection can be used again. */
function isAnswer(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && !endsConnection(error)
}

// Numbers and texts, whatever parsers the app has set: 20 int8, 21 int2, 23 int4, 1700 numeric (a sum of int8).
const NUMERIC = new Set([20, 21, 23, 1700])
const NUMBERS_AS_NUMBERS = {
  getTypeParser: (oid: number) => (NUMERIC.has(oid) ? Number : (value: string) => value),
}

function noAnswer(ms: number): Error {
  return new Error(`no answer from the database within ${ms} ms`)
}

type OwnPool = PostgresPool & { end(): Promise<void> }

async function createPool(connectionString: string, max: number): Promise<OwnPool> {
  const { Pool } = await importPg()
  return new Pool({
    connectionString,
    max,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    application_name: 'marketplace-webhooks',
  })
}

// A variable, so that neither TypeScript nor a bundler resolves the optional library.
async function importPg(): Promise<{ Pool: new (options: object) => OwnPool }> {
  const name = 'pg'
  try {
    const module = await import(/* webpackIgnore: true */ /* @vite-ignore */ name)
    return module.default ?? module
  } catch (error) {
    throw new MarketplaceError('store_driver_missing', 'Cannot open PostgreSQL: `npm install pg`', {
      cause: error,
    })
  }
}
