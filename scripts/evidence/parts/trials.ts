import {
  brokenIn,
  DEPENDS_ON,
  endOf,
  inWords,
  jsonLines,
  type Part,
  type Scope,
  type Step,
  seedOf,
  sumOf,
  UsageError,
} from '../part.js'

/** The arguments of Node for `trial.ts`. An engine is loaded by `import()`, which `tsx` compiles otherwise. */
const TRIAL = [
  '--disable-warning=ExperimentalWarning',
  ...['--require', './__tests__/support/processes/load-typescript.cjs'],
  ...['--eval', "require('./scripts/evidence/trial.ts')"],
]
const ENGINES = ['sqlite', 'postgres']

/** Kills of real processes. */
export const KILLS: Part = trialPart({
  needsBuild: true,
  name: 'kills',
  title: 'Kills (SIGKILL) of a server at work',
  engines: ENGINES,
  count: { short: 1, whole: 100, perStep: 2 },
  row: (records) => ({
    amount: `${inWords(sumOf(records, 'kills'))} kills, ${inWords(sumOf(records, 'acknowledged'))} deliveries acknowledged`,
    result: `${sumOf(records, 'lost')} lost, ${sumOf(records, 'wrong')} wrong`,
  }),
})

/** Power cuts of a disk that keeps only what was synced. */
export const POWER_CUTS: Part = trialPart({
  name: 'power-cuts',
  title: 'Power cuts of a simulated disk, all unsynced data lost',
  engines: ['sqlite'],
  count: { short: 2, whole: 200, perStep: 10 },
  row: (records) => ({
    amount: `${inWords(sumOf(records, 'cuts'))} cuts, ${inWords(sumOf(records, 'acknowledged'))} deliveries acknowledged`,
    result: `${sumOf(records, 'lost')} lost, ${sumOf(records, 'damaged')} damaged`,
  }),
})

/** Bodies that nobody would send. */
export const BODIES: Part = trialPart({
  name: 'bodies',
  title: 'Bodies made up at random',
  engines: ENGINES,
  count: { short: 1, whole: 50, perStep: 10 },
  row: (records) => ({
    amount: `${inWords(sumOf(records, 'bodies'))} bodies`,
    result: `${sumOf(records, 'wrong')} wrong replies, ${sumOf(records, 'rejections')} unhandled rejections`,
  }),
})

/** A part of seeds on engines. `count` is the number of seeds of each engine. */
function trialPart(options: {
  name: string
  title: string
  needsBuild?: boolean
  engines: readonly string[]
  count: { short: number; whole: number; perStep: number }
  row: Part['row']
}): Part {
  const { name, title, needsBuild = false, engines, count, row } = options
  const command = (engine: string, seeds: readonly number[]) => [...TRIAL, name, engine, ...seeds.map(String)]

  function step(engine: string, from: number, scope: Scope): Step {
    const to = Math.min(from + count.perStep - 1, count[scope])
    const seeds = Array.from({ length: to - from + 1 }, (_, i) => from + i)
    return {
      id: `${engine}-${from}-${to}`,
      command: command(engine, seeds),
      outcome(run) {
        // Its first line says that it has begun.
        if (run.stdout === '') throw new Error(run.stderr.trim() || `exit code ${run.code}`)
        const trials = jsonLines<Record<string, unknown> & { seed: number; broken: string[] }>(run.stdout)
        const figures: Record<string, number> = {}
        for (const { seed: _seed, broken: _broken, ...own } of trials)
          for (const [figure, value] of Object.entries(own))
            figures[figure] = (figures[figure] ?? 0) + Number(value)
        const broken = trials.flatMap(({ seed, broken }) =>
          broken.map((what) => `${engine}-${seed}: ${what}`),
        )
        if (trials.length < seeds.length)
          broken.push(`only ${trials.length} of ${seeds.length} seeds ended: ${endOf(run.stderr)}`)
        return { figures, broken: brokenIn(run, broken) }
      },
    }
  }

  return {
    ...{ name, title, needsBuild, row, dependsOn: DEPENDS_ON.servers },
    example: `${engines[0]}-1`,
    steps: (scope) =>
      engines.flatMap((engine) =>
        Array.from({ length: Math.ceil(count[scope] / count.perStep) }, (_, i) =>
          step(engine, 1 + i * count.perStep, scope),
        ),
      ),
    repeat(seed) {
      const [engine, number] = seed.split('-')
      if (!engine || !number || !engines.includes(engine))
        throw new UsageError(
          `A seed of ${name} is ${engines.map((each) => `${each}-<number>`).join(' or ')}, not ${seed}`,
        )
      return command(engine, [seedOf(number)])
    },
  }
}
