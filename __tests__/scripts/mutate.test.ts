import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, jest } from '@jest/globals'
import { PURE } from '../../scripts/mutate/pure.js'
import { createSandbox } from '../../scripts/mutate/sandbox.js'
import { sqlMutants } from '../../scripts/mutate/sql-mutants.js'
import { createTests } from '../../scripts/mutate/tests-of.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'

// It copies the project and runs tests of the copy.
jest.setTimeout(180_000)

const ROOT = join(__dirname, '..', '..')

describe('the mutants of SQL', () => {
  it.each([
    ['a and b or c', ['a or b or c', 'a and b and c']],
    ['a between 1 and 2', []],
    ['a < 1, b >= 2, c <> 3', ['a <= 1, b >= 2, c <> 3', 'a < 1, b > 2, c <> 3', 'a < 1, b >= 2, c = 3']],
    ['a is null', ['a is not null']],
    ['a is not null', ['a is null']],
    ['not a', ['a']],
    ['a text not null', []],
    ['min(a) + least(b, 1)', ['min(a) - least(b, 1)', 'max(a) + least(b, 1)', 'min(a) + greatest(b, 1)']],
    ['coalesce(f(a, 1), b)', ['coalesce(b, f(a, 1))']],
    ['select a limit 10', ['select a']],
    ['for update skip locked', ['for update']],
    ['order by a', ['order by a desc', '']],
    ['order by a desc, b', ['order by a, b', 'order by a desc, b desc', 'order by b', 'order by a desc']],
    ['select a where b', ['select a']],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the source
    ['where ${a} and b', ['where ${a} or b', 'where b', 'where ${a}']],
    ['where case when a then b end', ['']],
    ['update a set b = 1 where c = 1', ['update a set b = 1 where c <> 1', 'update a set b = 1']],
    ['b = 1, c = case when d = 1 then 2 end', ['b = 1, c = case when d <> 1 then 2 end']],
    ["'a and b' -- c and d", []],
  ])('change it in one place: %s', (text, expected) => {
    const source = `sql\`${text}\``
    const mutants = sqlMutants(source).map(({ start, end, replacement }) =>
      `${source.slice(0, start)}${replacement}${source.slice(end)}`.slice(4, -1).trim(),
    )
    expect(mutants).toEqual(expected)
  })

  it('are of templates with the tag sql, also of one in another, and never of their values', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the source
    const source = 'const a = b < 1 && sql<Row>`${c < 1 ? sql`d < 1` : `e < 1`} and f`\n/** sql`a and b` */'
    expect(sqlMutants(source).map(({ start, end }) => source.slice(start - 2, end))).toEqual(['} and', 'd <'])
  })
})

describe('the tests of a module', () => {
  const { of: testsOf } = createTests(ROOT)

  it('are those of its folder and the folders above that reach it, the nearest first, and those of others that import it', () => {
    expect(testsOf('lib/base/deadlines.ts')[0]).toBe('__tests__/base/deadlines.test.ts')
    expect(testsOf('lib/entitlement/purchase-state.ts')).toContain('__tests__/events/contract.test.ts')
    expect(testsOf('lib/options.ts')[0]).toBe('__tests__/marketplace/options.test.ts')
    expect(testsOf('lib/testing/transitions.ts')[0]).toBe('__tests__/testing/simulator.test.ts')
    expect(testsOf('lib/sqlite/engine.ts')).toContain('__tests__/store/store-conformance.test.ts')
    const ofFinishes = testsOf('lib/store/subscriptions/finishes.ts')
    // One of the two of its folder.
    expect(ofFinishes.slice(0, 2)).toContain('__tests__/store/subscriptions/finishes.test.ts')
    expect(ofFinishes).toContain('__tests__/store/store-conformance.test.ts')
    expect(testsOf('lib/sqlite/backup/restore.ts')).toContain('__tests__/faults/storage/restored.test.ts')
  })
})

describe('npm run mutate', () => {
  it('explains itself, and does nothing else', () => {
    expect(mutate('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('npm run mutate') })
  })

  it.each([
    [['--halp'], '--halp'],
    [['lib/nothing'], 'There is no lib/nothing'],
    [['docs'], 'docs has no module of lib/ and no test'],
    [['lib/options.ts', '__tests__/none.test.ts'], 'There is no __tests__/none.test.ts'],
    [['lib/options.ts', 'package.json'], 'package.json has no module of lib/ and no test'],
    [['--sample', 'some'], '--sample is a whole number'],
  ])('refuses what it does not know: %j', (args, why) => {
    const { status, stderr } = mutate(...args)
    expect([status, stderr]).toEqual([2, expect.stringContaining(why)])
    expect(stderr).toContain('npm run mutate -- --help')
  })

  it('takes several folders and modules, each module once', () => {
    const listed = (...paths: string[]) => mutate(...paths, '--list').stdout
    const both = listed('lib/base/ids.ts', 'lib/store/lanes/', '__tests__/base', 'lib/store/lanes/claims.ts')
    expect(both).toBe(listed('lib/base/ids.ts') + listed('lib/store/lanes'))
  })

  it('changes each of the pure modules, if none is named', () => {
    const { stdout, stderr } = mutate('--list')
    const modules = new Set(
      stdout
        .trim()
        .split('\n')
        .map((name) => name.split(':')[0]),
    )
    expect([stderr, [...modules]]).toEqual(['', PURE])
  })

  it('chooses the same sample with the same seed', () => {
    const sampled = (seed: string) =>
      mutate('lib/store/lanes', '--list', '--sample', '5', '--seed', seed).stdout.trim().split('\n')
    expect(sampled('7')).toHaveLength(5)
    expect(sampled('7')).toEqual(sampled('7'))
    expect(sampled('7')).not.toEqual(sampled('8'))
  })

  it('changes the code, and says what was noticed of how many', () => {
    const args = ['__tests__/base/backoff.test.ts', 'lib/base/backoff.ts', '--sample', '2']
    const { status, stdout } = mutate(...args)
    expect(stdout).toContain('| lib/base/backoff.ts | 2 | 2 | 100.0 % |')
    expect(stdout).toMatch(/A sample: 2 of \d+ mutants, seed 1\./)
    expect(status).toBe(0)
    // A test of something else notices nothing.
    const others = mutate('lib/base/backoff.ts', '__tests__/base/ids.test.ts', '--sample', '1')
    expect(others.stdout).toMatch(/Not noticed:\nlib\/base\/backoff.ts:\d+ .* → .*\n/)
    expect(others.status).toBe(1)
  })
})

describe('the copy of the project', () => {
  it('has what a test needs, also if the project was never built, and no test disturbs the next', async () => {
    const [clone, copy] = [temporaryFolder(), temporaryFolder()]
    execFileSync('git', ['clone', '--quiet', '--depth', '1', `file://${ROOT}`, clone])
    symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
    appendFileSync(join(clone, '.git', 'info', 'exclude'), 'node_modules\n')
    const leaves = '__tests__/base/leaves.test.ts'
    const waits = '__tests__/base/waits.test.ts'
    const hangs = '__tests__/base/hangs.test.ts'
    writeFileSync(
      join(clone, leaves),
      "it('', () => void setTimeout(() => { throw new Error() }, 200).unref())",
    )
    writeFileSync(join(clone, waits), "it('', () => new Promise((resolve) => setTimeout(resolve, 500)))")
    writeFileSync(join(clone, hangs), "it('', () => { while (true); })")
    const sandbox = createSandbox(clone, copy, true)
    onCleanUp(() => sandbox.remove())
    expect(existsSync(join(clone, 'lib', 'console', 'page-bundle.ts'))).toBe(false)
    expect(existsSync(join(copy, 'lib', 'console', 'page-bundle.ts'))).toBe(true)
    const module = 'lib/cli/journal/filter.ts'
    const unchanged = { module, line: 1, change: '', start: 0, end: 0, replacement: ' ' }
    expect(await sandbox.run('__tests__/base/ids.test.ts', 60_000, unchanged)).toEqual(expect.any(Number))
    // Neither a late error of a test nor a test that hangs disturbs the next.
    expect(await sandbox.run(leaves, 60_000)).toEqual(expect.any(Number))
    expect(await sandbox.run(waits, 60_000)).toEqual(expect.any(Number))
    expect(await sandbox.run(hangs, 10_000)).toBeUndefined()
    expect(await sandbox.run(waits, 60_000)).toEqual(expect.any(Number))
  })
})

function mutate(...args: string[]) {
  return spawnSync(process.execPath, ['--import', 'tsx', 'scripts/mutate/main.ts', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
  })
}
