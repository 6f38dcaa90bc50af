/**
 * Runs trials of one kind in a process of its own, and prints a line of JSON for each seed:
 * `node --require load-typescript.cjs --eval "require('./trial.ts')" kills sqlite 1 2 3`.
 */
import { cleanUp } from '../../__tests__/support/clean-up.js'

/** What a trial of one seed gives: figures, and what did not hold. */
interface Trial {
  broken: readonly string[]
}

/** Each loads its trial alone: the one of power cuts replaces functions of `node:fs`. */
const TRIALS: Record<
  string,
  () => Promise<(engine: string, seeds: readonly number[]) => AsyncIterable<Trial>>
> = {
  bodies: async () => (await import('./trials/bodies.js')).bodies,
  'power-cuts': async () => (await import('./trials/power-cuts.js')).powerCuts,
  kills: async () => (await import('./trials/kills.js')).kills,
}

async function main([name, engine, ...seeds]: string[]): Promise<number> {
  const load = TRIALS[String(name)]
  if (!load || !engine || seeds.length === 0) throw new Error(`there is no trial ${name} ${engine} ${seeds}`)
  const trial = await load()
  let hasHeld = true
  try {
    for await (const figures of trial(engine, seeds.map(Number))) {
      console.log(JSON.stringify(figures))
      hasHeld &&= figures.broken.length === 0
    }
  } finally {
    await cleanUp()
  }
  return hasHeld ? 0 : 1
}

main(process.argv.slice(1)).then(
  (code) => process.exit(code),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
