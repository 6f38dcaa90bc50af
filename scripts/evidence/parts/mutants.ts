import { PURE } from '../../mutate/pure.js'
import { inWords, type Part, type Step, sumOf, UsageError } from '../part.js'

const MUTATE = ['--import', 'tsx', 'scripts/mutate/main.ts']
const SAMPLE = 20
const SEEDS = [1, 2, 3]
const FOLDERS = [
  ...['base', 'cli', 'console', 'entitlement', 'events', 'express', 'operations', 'platform', 'postgres'],
  ...['sqlite', 'store', 'telemetry', 'testing', 'work'],
].map((folder) => `lib/${folder}`)
/** The shares of `npm run mutate`. */
const AIM = { pure: 95, folder: 85 }
const PURE_MODULES = 'the pure modules'

/** Small changes of the code, of which tests must notice most. */
export const MUTANTS: Part = {
  name: 'mutants',
  title: 'Small changes of the code',
  example: 'lib/store-1',
  steps: (scope) =>
    scope === 'short'
      ? [mutants('lib/base/backoff.ts-1', PURE_MODULES, ['lib/base/backoff.ts', '--sample', '10'])]
      : [
          ...PURE.map((module) => mutants(module, PURE_MODULES, [module])),
          ...FOLDERS.flatMap((folder) =>
            SEEDS.map((seed) => mutants(`${folder}-${seed}`, folder, sampleOf(folder, seed))),
          ),
        ],
  row(records) {
    const groups = new Map<string, { mutants: number; noticed: number }>()
    for (const { figures, names } of records) {
      const group = groups.get(String(names?.group?.[0])) ?? { mutants: 0, noticed: 0 }
      groups.set(String(names?.group?.[0]), group)
      group.mutants += figures.mutants ?? 0
      group.noticed += figures.noticed ?? 0
    }
    const shares = [...groups].map(([group, { mutants, noticed }]) => ({
      group,
      share: (100 * noticed) / mutants,
    }))
    return {
      amount: inWords(sumOf(records, 'mutants')),
      result: `${inWords(sumOf(records, 'noticed'))} noticed by tests: ${shares.map(({ group, share }) => `${group.replace('lib/', '')} ${Math.floor(share)} %`).join(', ')}`,
      broken: shares
        .filter(({ group, share }) => share < (group === PURE_MODULES ? AIM.pure : AIM.folder))
        .map(({ group, share }) => `of ${group} only ${share.toFixed(1)} % were noticed`),
    }
  },
  repeat(seed) {
    const [, folder, number] = /^(lib\/[\w./-]+)-([1-9]\d*)$/.exec(seed) ?? []
    if (!folder || !number)
      throw new UsageError(`A seed of mutants is a folder and a number, such as lib/store-1, not ${seed}`)
    return [...MUTATE, ...sampleOf(folder, Number(number))]
  },
}

const sampleOf = (folder: string, seed: number) => [
  folder,
  '--sample',
  String(SAMPLE),
  '--seed',
  String(seed),
]

function mutants(id: string, group: string, args: string[]): Step {
  return {
    id,
    command: [...MUTATE, ...args],
    outcome({ stdout, stderr }) {
      const [, mutants, noticed] = /^\| all \| (\d+) \| (\d+) \|/m.exec(stdout) ?? []
      if (mutants === undefined) throw new Error(`no mutant was run: ${stderr.trim()}`)
      const survivors = [...stdout.matchAll(/ SURVIVED (.*)/g)].map(([, name]) => String(name))
      return {
        figures: { mutants: Number(mutants), noticed: Number(noticed) },
        broken: [],
        names: { group: [group], survivors },
      }
    },
  }
}
