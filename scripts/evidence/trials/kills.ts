import { join } from 'node:path'
import { temporaryFolder } from '../../../__tests__/support/clean-up.js'
import { startPostgres } from '../../../__tests__/support/engines/postgres.js'
import { type Lineage, liveAndDie } from '../kills/lineage.js'

/** A lineage on one engine: how often it is killed. */
const KILLS = 50

/** Kills real processes on the built package, on a SQLite file or a PostgreSQL server. */
export async function* kills(
  engine: string,
  seeds: readonly number[],
): AsyncGenerator<Lineage & { seed: number }> {
  const postgres = engine === 'postgres' ? await startPostgres() : undefined
  for (const seed of seeds) {
    const store = postgres
      ? await postgres.createDatabase()
      : `sqlite:${join(temporaryFolder(), 'marketplace.db')}`
    yield { seed, ...(await liveAndDie({ store, seed, kills: KILLS })) }
  }
}
