import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { withDeadline } from '../waiting.js'
import { endsConnection } from './errors.js'

/** What is asked of a pool of `pg` (node-postgres 8.16 or newer), by shape: its types are no dependency. */
export interface PostgresPool {
  /** Lends a connection; `callback` gets it, or the error. */
  connect(callback: (error: Error | undefined, client: PostgresClient | undefined) => void): void
  /** Reports idle connections that broke. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Ends the report. */
  off(event: 'error', listener: (error: Error) => void): unknown
  options?: { max?: number }
}

/** What is asked of a connection of such a pool. */
export interface PostgresClient {
  /** Runs a statement, or several without values. */
  query(query: {
    text: string
    values?: unknown[]
    types?: { getTypeParser(oid: number): (value: string) => unknown }
  }): Promise<unknown>
  /** With an error or true the connection is destroyed instead of being used again. */
  release(destroy?: Error | boolean): void
  /** Reports `notification` and `error`. */
  on(event: string, listener: (message: unknown) => void): unknown
  /** Ends the report. */
  off(event: string, listener: (message: unknown) => void): unknown
}

export function isPool(value: object): value is PostgresPool {
  return ['connect', 'on', 'off'].every((name) => name in value)
}

/** A connection on loan. Every call ends in bounded time; once one has failed to, the connection is not used again. */
export interface PostgresConnection {
  query(text: string, values?: readonly unknown[]): Promise<unknown[]>
  onNotification(listener: (message: { channel: string; payload?: string }) => void): void
  onLost(listener: () => void): void
  /** Gives it back; with `destroy` nobody gets it again. */
  release(destroy?: boolean): void
}

/** For a free connection, or a new one; a network that swallows packets must not hold a delivery for ever. */
const CONNECT_MS = 3 * SECOND
/** The database is told to give up before we do, so that it does not go on with what nobody waits for. */
export const STATEMENT_MS = 5 * SECOND
const REPLY_MS = STATEMENT_MS + SECOND

export interface PostgresConnections {
  /** How many there may be at once, as far as that is known. */
  max: number
  acquire(): Promise<PostgresConnection>
  /** Lets go of all; the next `acquire` begins anew. */
  close(): Promise<void>
}

/** Connections from an app's own pool, or from one of ours when given an address. */
export function createConnections(
  from: string | PostgresPool,
  clock: Clock,
  max: number,
): PostgresConnections {
  let opening: Promise<PostgresPool> | undefined
  const answeredAt = new WeakMap<PostgresClient, number>()
  // A pool that is ended never answers those who wait for a connection of it.
  const waiting = new Set<() => void>()
  let silentAt = 0

  // An idle connection that breaks is reported here, and would end the process if nobody listened.
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
        // At once: the end of a new connection may come in one packet with its beginning, and an error that nobody
        // listens for ends the process. No promise comes in time.
        // Nor may a pool of another make throw into the driver.
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
      // Should it come after all in this very moment, it is given back.
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
    // A connection on loan reports its end to nobody else.
    listen('error', (error) => {
      broken = error as Error
    })

    return {
      isSuspect: (answeredAt.get(client) ?? Number.POSITIVE_INFINITY) <= silentAt,
      async query(text, values) {
        // Nobody waits a second time for what has failed to answer, be it the rollback.
        if (broken) throw broken
        try {
          const query = { text, types: NUMBERS_AS_NUMBERS, ...(values && { values: [...values] }) }
          const result = await withDeadline(client.query(query), REPLY_MS, clock, () => {
            silentAt = clock.monotonic()
            return noAnswer(REPLY_MS)
          })
          answeredAt.set(client, clock.monotonic())
          // Of several statements in one text, the last one's.
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
          // The pool has taken it back by itself.
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
  /** Where one connection has fallen silent, those that lay idle meanwhile may have too, and each would cost as long. */
  isSuspect: boolean
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('lost')
}

/** Whether the database answered and can be asked again on the same connection; else the connection is gone or unfit. */
function isAnswer(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && !endsConnection(error)
}

// Texts stay texts, whatever parsers the app has set: 20 int8, 21 int2, 23 int4, 1700 numeric (a sum of int8).
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

// A variable, so that neither TypeScript nor a bundler asks for a library that is optional.
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
