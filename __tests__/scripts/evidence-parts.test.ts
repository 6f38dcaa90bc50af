import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import {
  type EvidenceRecord,
  jsonLines,
  type Outcome,
  type Part,
  type Step,
} from '../../scripts/evidence/part.js'
import { PARTS } from '../../scripts/evidence/parts/all.js'
import type { Bodies } from '../../scripts/evidence/trials/bodies.js'
import { temporaryFolder } from '../support/clean-up.js'
import { EVAL_TYPESCRIPT } from '../support/processes/processes.js'
import { startProcess } from '../support/processes/running-process.js'
import type { SourceChange } from '../support/world/sabotage.js'

const ROOT = join(__dirname, '..', '..')

describe('the parts', () => {
  it.each(PARTS)(
    'of $name have steps of their own names, fewer in a short run, and an example that can be repeated',
    (part) => {
      const ids = part.steps('whole').map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      expect(part.steps('short').length).toBeLessThanOrEqual(ids.length)
      expect(part.repeat(part.example).length).toBeGreaterThan(0)
    },
  )

  it('notice too few mutants: of the pure modules, of a folder, and of all folders together', () => {
    const part = partOf('mutants')
    const made = (id: string, mutants: number, noticed: number) => {
      const step = part.steps('whole').find((each) => each.id === id)
      const stdout = `| Module | Mutants |\n| all | ${mutants} | ${noticed} | x % |\n`
      const outcome = step?.outcome({ code: 0, stdout, stderr: '' }) as Outcome
      return { ...recordOf('mutants', id), ...outcome }
    }
    const brokenOf = (of: Record<string, number>) =>
      part.row(Object.entries(of).map(([id, noticed]) => made(id, 20, noticed))).broken
    expect(brokenOf({ 'pure-1': 20, 'pure-2': 18 })).toEqual([])
    expect(brokenOf({ 'pure-1': 19, 'pure-2': 18 })).toEqual(['of the pure modules only 92.5 % were noticed'])
    expect(brokenOf({ 'lib/store-1': 20, 'lib/base-1': 14 })).toEqual([])
    expect(brokenOf({ 'lib/store-1': 20, 'lib/base-1': 11 })).toEqual([
      'of all folders only 77.5 % were noticed',
      'of lib/base only 55.0 % were noticed',
    ])
    expect(brokenOf({ 'lib/store-1': 17, 'lib/base-1': 16 })).toEqual([
      'of all folders only 82.5 % were noticed',
    ])
  })

  it('names the one module of which a short run makes mutants', () => {
    const part = partOf('mutants')
    const resultOf = (noticed: number) => {
      const [step] = part.steps('short')
      const stdout = `| all | 10 | ${noticed} | x % |\n`
      const outcome = step?.outcome({ code: 0, stdout, stderr: '' }) as Outcome
      return part.row([{ ...recordOf('mutants', String(step?.id)), ...outcome }])
    }
    expect(resultOf(9)).toEqual({
      amount: '10',
      result: '9 noticed by tests: base/backoff.ts 90 %',
      broken: [],
    })
    expect(resultOf(5).broken).toContain('of lib/base/backoff.ts only 50.0 % were noticed')
  })

  it('read how many worlds were broken, and how many checks were skipped too often', () => {
    const [step] = PARTS.find(({ name }) => name === 'worlds')?.steps('short') ?? []
    const outcomeOf = (skipped: number) => {
      const tally = { follow: { made: 6, skipped: { 'no process was up': skipped } } }
      const stdout = JSON.stringify({ kind: 'seconds', made: 2, days: 0, broken: ['a world'], tally })
      return step?.outcome({ code: 1, stdout, stderr: '' })
    }
    expect(outcomeOf(4)).toMatchObject({
      figures: { worlds: 2, checked: 6, skipped: 4 },
      broken: ['a world'],
    })
    expect(outcomeOf(5)?.broken).toEqual(['a world', expect.stringContaining("'follow' 5 were skipped")])
  })

  it.each(['worlds', 'months'])('say of %s that skips are within bounds only if none is broken', (name) => {
    const resultOf = (...broken: string[]) => {
      const figures = { checked: 6, skipped: 5 }
      return partOf(name).row([{ ...recordOf(name, '1'), figures, broken }]).result
    }
    expect(resultOf()).toBe('0 broken; 5 of 11 checks skipped, within bounds')
    expect(resultOf("of the checks of 'follow' 5 were skipped")).toBe('1 broken; 5 of 11 checks skipped')
  })

  it('could not be made if their process ended before the last kind of world', () => {
    const [step] = PARTS.find(({ name }) => name === 'months')?.steps('short') ?? []
    const outcomeOf = (broken: string[], ...kinds: string[]) => {
      const lines = kinds.map((kind) => JSON.stringify({ kind, made: 2, days: 80, broken, tally: {} }))
      return step?.outcome({ code: 1, stdout: lines.join('\n'), stderr: 'Error: a process ended' })
    }
    expect(() => outcomeOf([], 'weeks with faults')).toThrow('a process ended')
    expect(() => outcomeOf(['a world'], 'weeks with faults')).toThrow('a process ended')
    const whole = outcomeOf(['a world'], 'weeks with faults', 'months without any fault')
    expect(whole).toMatchObject({ figures: { worlds: 4 }, broken: ['a world', 'a world'] })
  })

  it('kill 10,000 processes, half on each engine', () => {
    const seeds = PARTS.find(({ name }) => name === 'kills')
      ?.steps('whole')
      .flatMap(({ command }) => {
        const at = command.indexOf('kills')
        return command.slice(at + 2).map((seed) => `${command[at + 1]}-${seed}`)
      })
    expect(new Set(seeds).size).toBe(200)
    expect(seeds?.filter((seed) => seed.startsWith('postgres-'))).toHaveLength(100)
  })
})

describe('a step of tests', () => {
  it('is broken by a file that fails outside of its tests', () => {
    const step = stepOf('tests', 'answers')
    const passes = "test('passes', () => {})"
    const { run } = createJestProject({
      '__tests__/faults/answers/late.test.js': `${passes}; afterAll(() => { throw new Error('too late') })`,
      '__tests__/faults/answers/none.test.js': 'not JavaScript',
      '__tests__/faults/answers/one.test.js': `${passes}; test('fails', () => { throw new Error('of the test') })`,
    })
    const { figures, broken } = step.outcome(run(step.command))
    expect(figures).toEqual({ passed: 2, failed: 3 })
    expect([...broken].sort()).toEqual([
      expect.stringMatching(/late\.test\.js: [\s\S]*too late/),
      expect.stringMatching(/none\.test\.js: [\s\S]*SyntaxError/),
      'fails',
    ])
  })

  it('is broken by a file of which no test could be run', () => {
    const step = stepOf('tests', 'answers')
    const { run } = createJestProject({ '__tests__/faults/answers/none.test.js': 'not JavaScript' })
    expect(step.outcome(run(step.command))).toMatchObject({
      figures: { passed: 0, failed: 1 },
      broken: [expect.stringContaining('SyntaxError')],
    })
  })

  it('could not be made if no test has its name', () => {
    const step = stepOf('sabotages', 'months')
    const { run } = createJestProject({
      'jest.long.config.mjs': "export { default } from './jest.config.mjs'",
      '__tests__/long.test.js': "test('passes', () => {})",
    })
    const ran = run(step.command)
    expect(() => step.outcome(ran)).toThrow('no test was run')
  })

  it('is broken by an exit code that no test explains', () => {
    const step = stepOf('tests', 'answers')
    const { run } = createJestProject({ '__tests__/faults/answers/a.test.js': "test('passes', () => {})" })
    expect(step.outcome({ ...run(step.command), code: 1 }).broken).toEqual([
      expect.stringMatching(/^it ended with 1: [\s\S]*1 passed/),
    ])
  })
})

describe('the row of tests', () => {
  const page = readFileSync(join(ROOT, '__tests__/faults/README.md'), 'utf8')
  const faults = [...page.matchAll(/^\| ([A-Z]\d+) \|/gm)].map(([, id]) => String(id))
  const rowOf = (steps: readonly Step[], rows: string[], failedRows: string[] = []) => {
    const records = steps.map(({ id }, i) => ({
      ...recordOf('tests', id),
      figures: { passed: 2, failed: 0 },
      names: i === 0 ? { rows, failedRows } : {},
    }))
    return partOf('tests').row(records)
  }
  const { whole, short } = { whole: partOf('tests').steps('whole'), short: partOf('tests').steps('short') }

  it('counts all tests, and the faults of which all passed', () => {
    expect(rowOf(whole, faults)).toEqual({
      amount: `32 tests, ${faults.length} of ${faults.length} faults and attacks`,
      result: '0 failed, 0 skipped (at most 40)',
      broken: [],
    })
    expect(rowOf(short, ['A1', 'A2'], ['A2']).amount).toBe(
      `2 tests, 1 of ${faults.length} faults and attacks`,
    )
  })

  it('is broken if a fault has no test that passed, once all tests were run', () => {
    expect(rowOf(whole, faults.slice(2)).broken).toEqual(['no test of A1, A2 passed'])
    expect(rowOf(whole.slice(1), faults.slice(2)).broken).toEqual([])
    expect(rowOf(short, ['A1']).broken).toEqual([])
  })

  it('does not count an id that is not in the list of faults', () => {
    expect(rowOf(short, ['A1', 'Q9']).amount).toBe(`2 tests, 1 of ${faults.length} faults and attacks`)
  })
})

describe('the row of sabotages', () => {
  it('counts those that are skipped, and apart from them those that cannot be noticed', () => {
    const { run } = createJestProject({
      'jest.long.config.mjs': 'export default {}',
      '__tests__/long.test.js': `
        describe('a world of seconds', () => {
          it('detects a sabotage: one', () => {})
          it.skip('detects a sabotage: two', () => {})
          it('has a sabotage for each of its promises', () => {})
        })
        describe('the second oracle alone', () => {
          it('detects a sabotage in seconds: one', () => {})
        })
        describe('the documents', () => {
          it('are kept in each life and world that meets a sabotage', () => {})
          it('are broken by a sabotage, which the second oracle notices: three', () => {})
          it('seem to be kept beside four, because nobody sees it', () => {})
        })`,
    })
    const records = ['seconds', 'documents', 'unnoticed'].map((id) => {
      const step = stepOf('sabotages', id)
      return { ...recordOf('sabotages', id), ...step.outcome(run(step.command)) }
    })
    expect(partOf('sabotages').row(records)).toEqual({
      amount: '3',
      result: '2 noticed by simulated worlds, 1 skipped; that cannot be noticed: 1 more',
      broken: ['skipped: a world of seconds detects a sabotage: two'],
    })
    expect(partOf('sabotages').row(records.slice(1, 2)).result).toBe(
      '1 noticed by simulated worlds, 0 skipped',
    )
  })
})

describe('to repeat', () => {
  it('a sabotage or a fault fails if no test has its name', () => {
    const a7 = partOf('tests').repeat('A7')
    const { run } = createJestProject({
      'jest.long.config.mjs': "export { default } from './jest.config.mjs'",
      '__tests__/a.test.js': "test('detects a sabotage: one (1)', () => {})",
      [String(a7[1])]: "test('A70 is another fault', () => {})",
    })
    const failed = { code: 1, stderr: expect.stringContaining('No test was run, because none has this name') }
    expect(run(partOf('sabotages').repeat('one (1)')).code).toBe(0)
    expect(run(partOf('sabotages').repeat('one (2)'))).toMatchObject(failed)
    expect(run(a7)).toMatchObject(failed)
  })
})

describe('a step of trials', () => {
  const step = stepOf('power-cuts', 'sqlite-1-2')
  const [begun, one, two] = ['power-cuts on sqlite', '{"seed":1,"broken":[]}', '{"seed":2,"broken":[]}']

  it('could not be made if its process could not begin', () => {
    expect(() => step.outcome({ code: 1, stdout: '', stderr: 'no PostgreSQL' })).toThrow('no PostgreSQL')
  })

  it.each([
    [1, [begun, one], 'only 1 of 2 seeds ended: its words'],
    [0, [begun], 'only 0 of 2 seeds ended: its words'],
    [1, [begun, one, two], 'it ended with 1: its words'],
    [null, [begun, one, two], 'it ended with a signal: its words'],
  ])('is broken by a process that ends with %s after the lines %j', (code, lines, why) => {
    const { broken } = step.outcome({ code, stdout: lines.join('\n'), stderr: 'its words\n' })
    expect(broken).toEqual([why])
  })
})

describe('a step of worlds', () => {
  it.each([
    ['process.exit(3)', 'the process of the world of seed 8 ended with 3'],
    ["process.once('exit', () => process.exit(3))", 'a process ended with 3 after its last world'],
  ])('is broken by a process of worlds with %s', async (crash, why) => {
    const file = join(temporaryFolder(), 'crash.cjs')
    writeFileSync(file, `if (process.execArgv.includes('--eval')) ${crash}`)
    const step = stepOf('worlds', '1-250')
    const [command, [count, ...others]] = [step.command.slice(0, 3), step.command.slice(3)]
    expect(count).toBe('250')
    const { ended } = startProcess(process.execPath, [...command, '1', ...others, '--from', '8'], {
      cwd: ROOT,
      env: { ...process.env, NODE_OPTIONS: `--require ${file}` },
    })
    const { code, ...printed } = await ended
    expect(step.outcome({ code: Number(code), ...printed }).broken).toContainEqual(
      expect.stringContaining(why),
    )
  })

  it('is broken by an exit code that no world explains', () => {
    const stdout = JSON.stringify({ kind: 'seconds', made: 2, days: 0, broken: [], tally: {} })
    const { broken } = stepOf('worlds', '1-250').outcome({ code: 1, stdout, stderr: 'its words' })
    expect(broken).toEqual(['it ended with 1: its words'])
  })
})

describe('a trial', () => {
  it('that cannot go on is broken, and the next seed is tried', async () => {
    const { code, stdout } = await trial(
      [{ file: 'lifecycle.ts', from: START, to: `throw new Error('cannot go on')` }],
      ...['bodies', 'sqlite', '1', '2'],
    )
    expect([code, jsonLines(stdout)]).toEqual([
      1,
      [1, 2].map((seed) => ({
        seed,
        broken: [expect.stringMatching(/^it could not go on: .*cannot go on/)],
      })),
    ])
  })

  it('that cannot clean up is broken', async () => {
    const { code, stdout } = await trial(
      [{ file: 'lifecycle.ts', from: CLOSE, to: `throw new Error('cannot end')` }],
      ...['power-cuts', 'sqlite', '1'],
    )
    expect([code, jsonLines(stdout)]).toEqual([
      1,
      [expect.objectContaining({ broken: [expect.stringMatching(/^it could not go on: .*cannot end/)] })],
    ])
  })

  it('without an engine does not begin', async () => {
    const { code, stdout, stderr } = await trial([], 'bodies', 'sqlite')
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining('there is no trial')])
  })
})

describe('the trial of made-up bodies', () => {
  it('finds a good delivery that is not stored, and a rejection while the app closes', async () => {
    const insert = '...journal.insert(events)'
    const { code, stdout } = await trial(
      [
        { file: 'store/accepting/acceptance.ts', from: insert, to: '...journal.insert(events.slice(1))' },
        { file: 'lifecycle.ts', from: CLOSE, to: `Promise.reject(new Error('too late')); ${CLOSE}` },
      ],
      ...['bodies', 'sqlite', '1'],
    )
    const [found] = jsonLines<Bodies>(stdout)
    expect(found?.broken).toContainEqual(
      expect.stringMatching(/^the good delivery .* is not in the journal$/),
    )
    expect(found).toMatchObject({ rejections: 1, wrong: 0 })
    expect(found?.broken).toContain('unhandled rejection: Error: too late')
    expect(code).toBe(1)
  })
})

const START = 'starting ??= open()'
const CLOSE = 'await worker?.close(closeTimeoutMs)'

/** Runs `trial.ts` with these arguments on a package with these changes. */
function trial(changes: readonly SourceChange[], ...args: string[]) {
  return startProcess(
    process.execPath,
    [
      ...EVAL_TYPESCRIPT,
      `const { changeSource } = require('./__tests__/support/world/change-source.ts')
      for (const change of ${JSON.stringify(changes)}) changeSource(change)
      require('./scripts/evidence/trial.ts')`,
      ...args,
    ],
    { cwd: ROOT },
  ).ended
}

function partOf(name: string): Part {
  return PARTS.find((part) => part.name === name) as Part
}

function recordOf(part: string, step: string): EvidenceRecord {
  return { part, step, commit: '', node: '', at: '', tookMs: 1, figures: {}, broken: [] }
}

function stepOf(part: string, id: string): Step {
  const steps = [...partOf(part).steps('whole'), ...partOf(part).steps('short')]
  return steps.find((step) => step.id === id) as Step
}

/** A project with these files, in which `run` runs a command of Jest. */
function createJestProject(files: Record<string, string>) {
  const root = temporaryFolder()
  const reporter = 'scripts/evidence/some-test.mjs'
  const own = {
    'jest.config.mjs': 'export default {}',
    [reporter]: readFileSync(join(ROOT, reporter), 'utf8'),
  }
  for (const [path, text] of Object.entries({ ...own, ...files })) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return {
    run([jest, ...args]: readonly string[]) {
      const command = [join(ROOT, String(jest)), ...args]
      const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' })
      return { code: status, stdout, stderr }
    },
  }
}
