import { jest } from '@jest/globals'
import { onCleanUp } from '../clean-up.js'
import { until } from '../until.js'
import { useEngine } from './engines.js'

export const engine = useEngine('PostgreSQL')

/** Waits until this many connections to the database listen. */
export async function listeners(count: number, address: string) {
  await until('the connections listen', async () => {
    const rows = await engine.server().sql(
      `select 1 from pg_stat_activity where datname = $1
        and (query like 'listen %' or query like '%pg_listening_channels%')`,
      [new URL(address).pathname.slice(1)],
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
