import { EventEmitter } from 'node:events'
import pg from 'pg'
import type { PostgresClient } from '../../../lib/postgres/connection.js'
import type { PostgresPool } from '../../../lib/postgres/pool.js'
import { onCleanUp } from '../clean-up.js'

/**
 * A pooler in transaction mode: each transaction, or single statement, goes to another of `size` connections, and
 * settings of a session are lost between them. Notifications never arrive. Without a pipeline a connection takes one statement at
 * a time.
 */
export function createTransactionPooler(connectionString: string, size = 3): PostgresPool {
  const servers = Array.from({ length: size }, () => {
    const client = new pg.Client({ connectionString })
    client.on('error', () => {})
    return { client, connected: client.connect(), turn: Promise.resolve() }
  })
  onCleanUp(() => Promise.all(servers.map(({ client }) => client.end())))
  let next = 0

  /** Takes a server connection for one transaction; the next transaction waits until `done`. */
  async function take() {
    const server = servers[next++ % size] as (typeof servers)[0]
    const before = server.turn
    let done = () => {}
    server.turn = new Promise((resolve) => {
      done = resolve
    })
    await server.connected
    await before
    await server.client.query('discard all')
    return { client: server.client, done }
  }

  function connect(): PostgresClient {
    const events = new EventEmitter()
    let pinned: Awaited<ReturnType<typeof take>> | undefined
    let isBusy = false
    return {
      async query(query) {
        if (isBusy) throw new Error('a statement before the answer to the one before it')
        isBusy = true
        try {
          return await run(query)
        } finally {
          isBusy = false
        }
      },
      release() {
        // Like a pooler, whose client left within a transaction.
        if (pinned) pinned.client.query('rollback').then(pinned.done, pinned.done)
        pinned = undefined
      },
      on: (event, listener) => events.on(event, listener),
      off: (event, listener) => events.off(event, listener),
    }

    async function run(query: Parameters<PostgresClient['query']>[0]) {
      pinned ??= await take()
      const { client, done } = pinned
      if (/^begin\b/.test(query.text)) return client.query(query as pg.QueryConfig)
      const isOver = /^(commit|rollback)$/.test(query.text) || !(await inTransaction(client))
      try {
        return await client.query(query as pg.QueryConfig)
      } finally {
        if (isOver) {
          pinned = undefined
          done()
        }
      }
    }
  }

  const events = new EventEmitter()
  return {
    connect: (callback) => callback(undefined, connect()),
    on: (event, listener) => events.on(event, listener),
    off: (event, listener) => events.off(event, listener),
  }
}

/** The status in the server's last ReadyForQuery: T in a transaction, E in a failed one. */
async function inTransaction(client: pg.Client): Promise<boolean> {
  return (client as unknown as { getTransactionStatus(): string | null }).getTransactionStatus() !== 'I'
}
