/** Runs the worlds of `detection.ts` with one sabotage: `--require load-typescript.cjs --eval "require(…)" '{…}'`. */
import type { FaultName } from '../months/faults.js'
import type { LifeName } from '../second-oracle/lives/lives.js'
import { changeSource } from './change-source.js'
import type { Broken } from './promises.js'
import type { SourceChange } from './sabotage.js'

export interface JudgeRequest {
  /** The words of the sabotage. */
  what: string
  source: SourceChange | undefined
  fault: FaultName | undefined
  /** The short lives, in this order. Without it all of them. */
  lives?: readonly LifeName[] | undefined
  /** How many worlds of seconds follow the short lives. */
  worlds: number
  /** How many worlds of hours with `fault` follow these. */
  months: number
}

/** The first finding of each oracle in one world. */
export interface Judged {
  /** The arguments of `npm run simulate` that repeat the world, without the sabotage. */
  world: string
  first?: string | undefined
  second?: string | undefined
  /** Why the world could not go on. */
  failed?: string
}

/** As in `npm test`. */
const MONTHS_LAST_MS = 8 * 3_600_000

void run(JSON.parse(process.argv[1] as string) as JudgeRequest)

async function run({ what, source, fault, lives, worlds, months }: JudgeRequest) {
  if (source) changeSource(source)
  // These load the package, so they come after the change.
  await import('../months/disk.js')
  await import('../simulation/quick-construction.js')
  const { SABOTAGED_CALLS } = await import('./sabotaged-calls.js')
  const { LIFE_NAMES, live } = await import('../second-oracle/lives/lives.js')
  const { LIVES_EVERY, simulate } = await import('../simulation/run.js')
  const { liveThrough } = await import('../months/world.js')
  const { createDatabase } = await import('./database.js')
  const sabotage = SABOTAGED_CALLS.find((each) => each.what === what) ?? {}
  const database = await createDatabase()

  // Only the second oracle judges lives, so one that it finds broken is enough.
  for (const name of lives ?? LIFE_NAMES) {
    const { second } = await judged(`--life ${name}`, async () => {
      const [found] = await live(name, database, sabotage)
      return { second: found && `${found.heading}: ${found.message}` }
    })
    if (second) break
  }
  for (let world = 0; world < worlds; world++) {
    // These seeds have no life.
    const seed = world * LIVES_EVERY + 1
    await judged(`--seed ${seed}`, async () => {
      const { broken, ofFirst } = await simulate(seed, database, { sabotage, isFirstAway: true })
      // A difference that only the second sees also keeps the first waiting.
      const isOfSecond = ({ promised, message }: Broken) =>
        promised === 'equal' && broken.some((each) => each.message.endsWith(message.slice(2)))
      return findings([...ofFirst.filter((each) => !isOfSecond(each)), ...broken])
    })
  }
  for (let seed = 1; fault && seed <= months; seed++)
    await judged(`--months --seed ${seed} --faults ${fault}`, async () =>
      findings((await liveThrough(seed, [fault], { sabotage, longestMs: MONTHS_LAST_MS })).broken),
    )
  process.exit()
}

async function judged(world: string, live: () => Promise<Pick<Judged, 'first' | 'second'>>) {
  const found = await live().catch((error: unknown) => ({ failed: String(error).slice(0, 300) }))
  const all: Judged = { world, ...found }
  process.stdout.write(`${JSON.stringify(all)}\n`)
  return all
}

function findings(broken: readonly Broken[]): Pick<Judged, 'first' | 'second'> {
  const first = broken.find(({ promised }) => promised !== 'documented')
  return {
    first: first && `${first.promised}: ${first.message}`,
    second: broken.find(({ promised }) => promised === 'documented')?.message,
  }
}
