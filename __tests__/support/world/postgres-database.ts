import pg from 'pg'
import { createPostgresEngine } from '../../../lib/postgres/engine.js'
import type { Allowance } from '../../../lib/store/accepting/allowance.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import { createConnector, type SharedDatabase } from './database.js'

/**
 * An empty database of a PostgreSQL server, for several instances, with the time of their world: statements that ask for
 * the server's time get that of a sequence, which is set before each statement. The world's time stands still until the
 * server has answered.
 */
export async function createSharedPostgres(
  time: VirtualClock,
  address: string,
  most?: Allowance,
): Promise<SharedDatabase> {
  const clock = new pg.Client(address)
  await clock.connect()
  await clock.query(`create schema world;
    create sequence world.ms maxvalue 9000000000000000;
    create function world.now() returns timestamptz language sql volatile
      as 'select to_timestamp(last_value / 1000.0) from world.ms'`)
  let setTo = 0
  let setting: Promise<unknown> = Promise.resolve()
  function setClock() {
    const now = Math.round(time.now())
    if (now !== setTo) setting = setting.then(() => clock.query("select setval('world.ms', $1)", [now]))
    setTo = now
    return setting
  }

  class Client extends pg.Client {
    // The package passes objects and wants promises.
    override query = ((query: { text: string }) => {
      const text = query.text.replaceAll('clock_timestamp()', 'world.now()')
      return time.standStillFor(setClock().then(() => super.query({ ...query, text })))
    }) as never
  }
  // Connections are shared, and none is closed by a real timer.
  const pool = new pg.Pool({ connectionString: address, max: 10, idleTimeoutMillis: 0, Client })
  const { connect } = pool
  const shared = Object.assign(pool, {
    connect(callback: Parameters<typeof connect>[0]) {
      void time.standStillFor(
        new Promise<void>((resolve) =>
          connect.call(pool, (...result) => {
            resolve()
            callback(...result)
          }),
        ),
      )
    },
  })

  return {
    connect: createConnector(time, (wire, ofProcess) => {
      const { announceIn: _network, ...engine } = createPostgresEngine({
        connection: shared as never,
        schema: 'marketplace_webhooks',
        maxConnections: 10,
        clock: ofProcess,
      })
      return createSqlStore({ ...engine, ...wire }, ofProcess, most && { most })
    }),
    async close() {
      await pool.end()
      await clock.end()
    },
  }
}
