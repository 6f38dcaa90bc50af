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
const FOLDERS = [
  ...['base', 'cli', 'console', 'entitlement', 'events', 'express', 'operations', 'platform', 'postgres'],
  ...['sqlite', 'store', 'telemetry', 'testing', 'work'],
].map((folder) => `lib/${folder}`)
const PURE_MODULES = 'the pure modules'
/** Mutants of a step. */
const SAMPLE = { folder: 15, pure: 150 }
/** What `npm run mutate` requires. The sample of one folder is small, so it may be lower by chance. */
const AIM = { pure: 95, folders: 85, folder: 60 }

/** Small changes of the code, of which tests must notice most. */
export const MUTANTS: Part = {
  name: 'mutants',
  title: 'Small changes of the code',
  dependsOn: DEPENDS_ON.brokenCode,
  example: 'lib/store-1',
  steps: (scope) =>
    scope === 'short'
      ? [mutants('lib/base/backoff.ts-1', 'lib/base/backoff.ts', ['lib/base/backoff.ts', '--sample', '10'])]
      : [
          ...[1, 2].map((seed) => mutants(`pure-${seed}`, PURE_MODULES, sampleOf('pure', seed))),
          ...FOLDERS.map((folder) => mutants(`${folder}-1`, folder, sampleOf(folder, 1))),
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
    const [, of, number] = /^(pure|lib\/[\w./-]+)-([1-9]\d*)$/.exec(seed) ?? []
    if (!of || !number)
      throw new UsageError(
        `A seed of mutants is a folder or pure, and a number, such as lib/store-1, not ${seed}`,
      )
    return [...MUTATE, ...sampleOf(of, Number(number))]
  },
}

const shareOf = (records: readonly Outcome[]) => (100 * sumOf(records, 'noticed')) / sumOf(records, 'mutants')

function* tooFew(groups: ReadonlyMap<string, readonly EvidenceRecord[]>) {
  const pure = groups.get(PURE_MODULES) ?? []
  const folders = [...groups].filter(([group]) => group !== PURE_MODULES)
  const bounds: [string, readonly EvidenceRecord[], number][] = [
    [PURE_MODULES, pure, AIM.pure],
    ['all folders', folders.flatMap(([, own]) => own), AIM.folders],
    ...folders.map(([folder, own]): [string, readonly EvidenceRecord[], number] => [folder, own, AIM.folder]),
  ]
  for (const [what, own, least] of bounds)
    if (own.length > 0 && shareOf(own) < least)
      yield `of ${what} only ${shareOf(own).toFixed(1)} % were noticed`
}

/** `of`: `pure`, or a folder or module. */
function sampleOf(of: string, seed: number): string[] {
  const [modules, count] = of === 'pure' ? [PURE, SAMPLE.pure] : [[of], SAMPLE.folder]
  return [...modules, '--sample', String(count), '--seed', String(seed)]
}

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
