import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { brokenIn, DEPENDS_ON, inWords, namesOf, type Part, type Step, sumOf, UsageError } from '../part.js'

const JEST = 'node_modules/jest/bin/jest.js'
const REPORTERS = ['--reporters=default', '--reporters=./scripts/evidence/some-test.mjs']
const SHARDS = 16
/** A machine without root, `strace` or a newer Node skips so many tests; more would hide what they should find. */
const SKIPPED_AT_MOST = 40

interface JestResults {
  testResults: {
    name: string
    status: string
    message: string
    assertionResults: { ancestorTitles: string[]; title: string; fullName: string; status: string }[]
  }[]
}

/** All tests, and how many rows of `__tests__/faults/README.md` they cover. */
export const TESTS: Part = {
  name: 'tests',
  title: 'Tests, also of faults and attacks',
  dependsOn: DEPENDS_ON.tests,
  example: 'A7',
  needsBuild: true,
  steps: (scope) =>
    scope === 'short'
      ? [tests('answers', ['__tests__/faults/answers'])]
      : Array.from({ length: SHARDS }, (_, i) =>
          tests(`${i + 1}-of-${SHARDS}`, [`--shard=${i + 1}/${SHARDS}`]),
        ),
  row(records) {
    const faults = faultsIn(readFileSync('__tests__/faults/README.md', 'utf8'))
    const [passed, failed] = [namesOf(records, 'rows'), namesOf(records, 'failedRows')]
    const held = faults.filter((id) => passed.includes(id) && !failed.includes(id))
    const untested = records.length < SHARDS ? [] : faults.filter((id) => !passed.includes(id))
    const skipped = namesOf(records, 'skipped')
    return {
      amount: `${inWords(sumOf(records, 'passed'))} tests, ${held.length} of ${faults.length} faults and attacks`,
      result: `${sumOf(records, 'failed')} failed, ${skipped.length} skipped (at most ${SKIPPED_AT_MOST})`,
      broken: [
        ...(untested.length > 0 ? [`no test of ${untested.join(', ')} passed`] : []),
        ...(skipped.length > SKIPPED_AT_MOST
          ? [`${skipped.length} tests were skipped, at most ${SKIPPED_AT_MOST} may be: ${skipped.join('; ')}`]
          : []),
      ],
    }
  },
  repeat(row) {
    const [id = ''] = /^[A-Z]\d+$/.exec(row) ?? []
    const naming = spawnSync('git', [
      'grep',
      '--files-with-matches',
      '--word-regexp',
      id || '^$',
      '--',
      '__tests__/*.test.ts',
    ])
    const files = naming.stdout
      .toString()
      .split('\n')
      .filter((file) => file !== '')
    if (id === '' || files.length === 0)
      throw new UsageError(`A fault is a row of __tests__/faults/README.md, not ${row}`)
    return [JEST, ...files, ...REPORTERS, '--testNamePattern', `(^| )([A-Z]\\d+, )*${id}(,| )`]
  },
}

/** Lists of sabotages, each of which a world must notice: the describes of long tests. */
const LISTS = {
  seconds: 'a world of seconds detects a sabotage',
  months: 'a world of months detects a sabotage',
  documents: 'the documents are broken by a sabotage',
}
/** Sabotages that nobody can notice from outside. The long tests say why. */
const UNNOTICED = 'the documents seem to be kept beside'
const LONG = ['--config', 'jest.long.config.mjs', '--runInBand']

/** Broken packages. */
export const SABOTAGES: Part = {
  name: 'sabotages',
  title: 'Sabotages of the package',
  dependsOn: DEPENDS_ON.brokenCode,
  example: 'every fifth event ends without its handler',
  steps: (scope) =>
    Object.entries({ ...LISTS, unnoticed: UNNOTICED })
      .slice(0, scope === 'short' ? 1 : undefined)
      .map(([list, name]) => tests(list, LONG, name)),
  row(records) {
    const lists = records.filter(({ step }) => step !== 'unnoticed')
    const more = sumOf(records, 'passed') - sumOf(lists, 'passed')
    const skipped = namesOf(lists, 'skipped')
    const noticed = `${inWords(sumOf(lists, 'passed'))} noticed by simulated worlds, ${skipped.length} skipped`
    return {
      amount: inWords(sumOf(lists, 'passed') + sumOf(lists, 'failed') + skipped.length),
      result: more > 0 ? `${noticed}; that cannot be noticed: ${more} more` : noticed,
      broken: skipped.map((name) => `skipped: ${name}`),
    }
  },
  repeat: (what) => [JEST, ...LONG, ...REPORTERS, '--testNamePattern', escaped(what)],
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Runs Jest with these arguments and a pattern of names, and reads its results from a file. */
function tests(id: string, args: readonly string[], names = ''): Step {
  const file = join(tmpdir(), `marketplace-evidence-${process.pid}-${id}.json`)
  return {
    id,
    command: [JEST, ...args, ...REPORTERS, '--testNamePattern', names, '--json', '--outputFile', file],
    outcome(run) {
      const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as JestResults
      rmSync(file)
      // Jest counts all other tests as pending.
      const all = testResults
        .flatMap(({ assertionResults }) => assertionResults)
        .filter(({ fullName }) => new RegExp(names, 'i').test(fullName))
      const of = (...states: string[]) => all.filter(({ status }) => states.includes(status))
      const [passed, failed, skipped] = [of('passed'), of('failed'), of('pending', 'todo')]
      // An error outside of its tests, such as in an `afterAll`, fails a file whose tests may all have passed.
      const files = testResults.filter(
        ({ status, assertionResults: own }) =>
          status === 'failed' && !own.some((test) => test.status === 'failed'),
      )
      if (passed.length + failed.length + files.length === 0)
        throw new Error(`no test was run: ${run.stderr.trim()}`)
      const rowsIn = (some: typeof all) => [
        ...new Set(some.flatMap((test) => [...test.ancestorTitles, test.title].flatMap(idsIn))),
      ]
      return {
        figures: { passed: passed.length, failed: failed.length + files.length },
        broken: brokenIn(run, [
          ...failed.map(({ fullName }) => fullName),
          ...files.map(({ name, message }) => `${relative('', name)}: ${message.trim()}`),
        ]),
        names: {
          rows: rowsIn(passed),
          failedRows: rowsIn(failed),
          skipped: skipped.map(({ fullName }) => fullName),
        },
      }
    },
  }
}

/** The ids of the rows of the page. */
function faultsIn(page: string): string[] {
  return [...page.matchAll(/^\| ([A-Z]\d+) \|/gm)].map(([, id]) => String(id))
}

/** 'C1, C2 a receiver …' begins with C1 and C2. */
function idsIn(title: string): string[] {
  return /^[A-Z]\d+(?:, [A-Z]\d+)*(?= )/.exec(title)?.[0].split(', ') ?? []
}
