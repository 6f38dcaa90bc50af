import { type Clock, SECOND } from '../base/clock.js'
import { MarketplaceError, messageOf } from '../base/errors.js'
import { createLine } from '../base/line.js'
import { withDeadline } from '../base/waiting.js'
import { requireInstalled } from '../store/sql/installed.js'
import {
  createLoans,
  type Loan,
  noAnswer,
  type PostgresClient,
  type PostgresConnection,
} from './connection.js'
import { catchParserErrors, type PgReader } from './errors.js'
import { createUnanswered } from './unanswered.js'

/**
 * A pool of `pg` (node-postgres 8.16 or newer), by shape, so that its types are not a dependency. With `pipeline: true`
 * (8.23 or newer) a batch of deliveries takes one round trip instead of one for each statement.
 */
export interface PostgresPool {
  /** Lends a connection; `callback` receives it, or the error. */
  connect(callback: (error: Error | undefined, client: PostgresClient | undefined) => void): void
  /** Reports idle connections that broke. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Removes a listener. */
  off(event: 'error', listener: (error: Error) => void): unknown
  /** The options of the pool. */
  options?: {
    /** The most connections at once. */
    max?: number
  }
}

/** The longest wait for a connection: a network that drops packets must not hold a delivery for ever. */
const CONNECT_MS = 3 * SECOND

export interface PostgresConnections {
  acquire(): Promise<PostgresConnection>
  /** Tells of a connection that works. Over it the server is asked about those that did not answer. */
  works(connection: PostgresConnection): Promise<void>
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
  // A setting of the environment is a text, which `pg` takes too.
  const most = Number((typeof from === 'string' ? undefined : from.options?.max) ?? max)
  const unanswered = createUnanswered(clock)
  const lend = createLoans(clock, unanswered)
  /** Rejects the callers that wait for a connection, which a closed pool never does. */
  const waiting = createLine<() => void>()

  // Without a listener, the error of a broken idle connection ends the process.
  const ignore = () => {}

  async function openPool(): Promise<PostgresPool> {
    unanswered.open()
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
    let leave = () => {}
    let hasLeft = false
    const connecting = new Promise<Loan>((resolve, reject) => {
      leave = waiting.add(() => reject(new Error('the connections are being closed')))
      source.connect((error, client) => {
        // Listeners are added at once, without a promise: a new connection may end in the packet in which it begins, and an
        // error without a listener ends the process. A throw must not reach the driver of the app's own pool.
        try {
          if (client && !hasLeft) resolve(lend(client))
          else if (client) client.release()
          else reject(error)
        } catch (odd) {
          reject(odd)
        }
      })
    })
    try {
      return await withDeadline(connecting, CONNECT_MS, clock, () => noAnswer(CONNECT_MS))
    } catch (error) {
      // A connection that arrives at this moment is for another caller.
      connecting.then((loan) => loan.release()).catch(() => {})
      throw connectError(error, unanswered.count())
    } finally {
      hasLeft = true
      leave()
    }
  }

  /** A failure is the connection's, so its next query shows it. */
  const works = (connection: PostgresConnection) => unanswered.ask(connection).catch(() => {})

  return {
    async acquire() {
      for (;;) {
        const loan = await connect()
        if (!(await loan.isUsable())) {
          loan.release(true)
          continue
        }
        await works(loan)
        const held = unanswered.count()
        if (held < most - 1) return loan
        // What it is wanted for may wait as the others do, and then nobody could ask about them.
        loan.release()
        throw noneFree(held)
      }
    },
    works,

    async close() {
      const closing = opening
      opening = undefined
      const opened = await closing?.catch(() => undefined)
      for (const giveUp of waiting.values()) giveUp()
      unanswered.close()
      if (isOwn(opened)) await opened.end()
      else opened?.off('error', ignore)
    },
  }

  function isOwn(opened: PostgresPool | undefined): opened is OwnPool {
    return opened !== undefined && opened !== from
  }
}

/**
 * The error of a connection that was not lent. If the wait for a place was too long, while connections without an answer keep
 * theirs, nothing is wrong with the network, as the driver would say. Any other error keeps its code, by which it is tried again.
 */
export function connectError(error: unknown, held: number): unknown {
  return held === 0 || !/^(timeout exceeded|no answer)/.test(messageOf(error)) ? error : noneFree(held)
}

function noneFree(held: number): Error {
  const why = `the database has not answered ${held} of them, which keep their places`
  return new Error(`no connection is free: ${why}. Perhaps its commits wait for a disk or a standby`)
}

type OwnPool = PostgresPool & { end(): Promise<void> }

async function createPool(connectionString: string, max: number): Promise<OwnPool> {
  const { Pool, Client } = requirePg()
  return new Pool({
    connectionString,
    max,
    connectionTimeoutMillis: CONNECT_MS,
    pipeline: true,
    application_name: 'marketplace-webhooks',
    Client: class extends Client {
      constructor(config: object) {
        super(config)
        catchParserErrors(this.connection)
      }
    },
  })
}

interface Pg {
  Pool: new (options: object) => OwnPool
  Client: new (config: object) => { connection?: PgReader }
}

function requirePg(): Pg {
  try {
    return requireInstalled('pg') as Pg
  } catch (error) {
    throw new MarketplaceError('store_driver_missing', 'Cannot open PostgreSQL: `npm install pg`', {
      cause: error,
    })
  }
}
