/**
 * Runs trials of one kind in a process of its own. It prints a line when it has begun, and a line of JSON for each seed:
 * `node --require load-typescript.cjs --eval "require('./trial.ts')" kills sqlite 1 2 3`.
 */
import { join } from 'node:path'
import { cleanUp, temporaryFolder } from '../../__tests__/support/clean-up.js'

/** A trial of one seed gives figures, and what did not hold. `createStore` gives the address of an empty database. */
export type Trial = (
  seed: number,
  createStore: () => Promise<string>,
) => Promise<{ broken: readonly string[] }>

/** Each loads its trial alone: the one of power cuts replaces functions of `node:fs`. */
const TRIALS: Record<string, () => Promise<Trial>> = {
  bodies: async () => (await import('./trials/bodies.js')).bodies,
  'power-cuts': async () => (await import('./trials/power-cuts.js')).powerCuts,
  kills: async () => (await import('./trials/kills.js')).kills,
}

async function main([name, engine, ...seeds]: string[]): Promise<number> {
  const load = TRIALS[String(name)]
  if (!load || !engine || seeds.length === 0) throw new Error(`there is no trial ${name} ${engine} ${seeds}`)
  const trial = await load()
  const stores = await openStores(engine)
  console.log(`${name} on ${engine}`)
  let hasHeld = true
  for (const seed of seeds.map(Number)) {
    const found = await findingsOf(seed, () => trial(seed, stores.create))
    console.log(JSON.stringify(found))
    hasHeld &&= found.broken.length === 0
  }
  await stores.close()
  return hasHeld ? 0 : 1
}

/** A trial that fails, or cannot clean up, has not held. */
async function findingsOf(seed: number, run: () => ReturnType<Trial>) {
  const failures: string[] = []
  const note = (error: unknown) =>
    void failures.push(`it could not go on: ${error instanceof Error ? error.stack : error}`)
  const found = await run().catch(note)
  await cleanUp().catch(note)
  return { seed, ...found, broken: [...(found?.broken ?? []), ...failures] }
}

/** Databases of one engine, for the trials that take one. */
async function openStores(engine: string) {
  if (engine === 'sqlite')
    return { create: async () => `sqlite:${join(temporaryFolder(), 'm.db')}`, async close() {} }
  const { startPostgres } = await import('../../__tests__/support/engines/postgres.js')
  const server = await startPostgres({ lives: 'file' })
  return { create: () => server.createDatabase(), close: () => server.close() }
}

main(process.argv.slice(1)).then(
  (code) => process.exit(code),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
