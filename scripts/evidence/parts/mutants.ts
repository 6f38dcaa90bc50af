import { PURE } from '../../mutate/pure.js'
import {
  DEPENDS_ON,
  type EvidenceRecord,
  inWords,
  namesOf,
  type Outcome,
  type Part,
  type Step,
  sumOf,
  UsageError,
} from '../part.js'

const MUTATE = ['--import', 'tsx', 'scripts/mutate/main.ts']
const SAMPLE = 15
const SEEDS = [1, 2]
const FOLDERS = [
  ...['base', 'cli', 'console', 'entitlement', 'events', 'express', 'operations', 'platform', 'postgres'],
  ...['sqlite', 'store', 'telemetry', 'testing', 'work'],
].map((folder) => `lib/${folder}`)
/** What `npm run mutate` requires: of each pure module, and of all samples together. */
const AIM = { pure: 95, samples: 85 }
/** The samples of one folder, 30 mutants, may be some lower by chance. */
const AIM_OF_FOLDER = 70
const PURE_MODULES = 'the pure modules'

/** Small changes of the code, of which tests must notice most. */
export const MUTANTS: Part = {
  name: 'mutants',
  title: 'Small changes of the code',
  dependsOn: DEPENDS_ON.tests,
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
    const groups = new Map<string, EvidenceRecord[]>()
    for (const record of records) {
      const [group = ''] = namesOf([record], 'group')
      groups.set(group, [...(groups.get(group) ?? []), record])
    }
    const shares = [...groups].map(
      ([group, own]) => `${group.replace('lib/', '')} ${Math.floor(shareOf(own))} %`,
    )
    return {
      amount: inWords(sumOf(records, 'mutants')),
      result: `${inWords(sumOf(records, 'noticed'))} noticed by tests: ${shares.join(', ')}`,
      broken: [...tooFew(groups)],
    }
  },
  repeat(seed) {
    const [, folder, number] = /^(lib\/[\w./-]+)-([1-9]\d*)$/.exec(seed) ?? []
    if (!folder || !number)
      throw new UsageError(`A seed of mutants is a folder and a number, such as lib/store-1, not ${seed}`)
    return [...MUTATE, ...sampleOf(folder, Number(number))]
  },
}

const shareOf = (records: readonly Outcome[]) => (100 * sumOf(records, 'noticed')) / sumOf(records, 'mutants')

function* tooFew(groups: ReadonlyMap<string, readonly EvidenceRecord[]>) {
  const samples = [...groups].filter(([group]) => group !== PURE_MODULES)
  const all = samples.flatMap(([, own]) => own)
  if (all.length > 0 && shareOf(all) < AIM.samples)
    yield `of all samples only ${shareOf(all).toFixed(1)} % were noticed`
  for (const [group, own] of samples)
    if (shareOf(own) < AIM_OF_FOLDER) yield `of ${group} only ${shareOf(own).toFixed(1)} % were noticed`
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
      const isBelow = group === PURE_MODULES && Number(noticed) < (AIM.pure / 100) * Number(mutants)
      return {
        figures: { mutants: Number(mutants), noticed: Number(noticed) },
        broken: isBelow ? [`of ${id} ${noticed} of ${mutants} were noticed`] : [],
        names: { group: [group], survivors },
      }
    },
  }
}
