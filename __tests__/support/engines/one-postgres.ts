import { jest } from '@jest/globals'
import pg from 'pg'
import { onCleanUp } from '../clean-up.js'
import { until } from '../until.js'
import { useEngine } from './engines.js'

export const engine = useEngine('PostgreSQL')

/** The name of the database at this address. */
export const databaseOf = (address: string): string => new URL(address).pathname.slice(1)

/** Runs SQL as a superuser in the database at this address. */
export function sqlAt<Row = Record<string, unknown>>(address: string, text: string, params?: unknown[]) {
  return engine.server().sql<Row>(text, params, databaseOf(address))
}

/** A connection of the driver to the tables at this address, which ends after the test. */
export async function connectedTo(address: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: address })
  onCleanUp(() => client.end())
  await client.connect()
  await client.query('set search_path = marketplace_webhooks')
  return client
}

/** Ends every connection to the database at this address. */
export function terminateAll(address: string) {
  return sqlAt(
    address,
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`,
  )
}

/** Waits until this many connections to the database listen. */
export async function listeners(count: number, address: string) {
  await until('the connections listen', async () => {
    const rows = await sqlAt(
      address,
      `select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and (query like 'listen %' or query like '%pg_listening_channels%')`,
    )
    return rows.length >= count
  })
}

/** Collects the warnings of the process from now on. */
export function heedWarnings(): [message: unknown, options?: { code?: string }][] {
  const spy = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onCleanUp(() => spy.mockRestore())
  return spy.mock.calls as never
}
