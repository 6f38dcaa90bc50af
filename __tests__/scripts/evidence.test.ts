import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { evidence } from '../../scripts/evidence/evidence.js'
import { verdictOf } from '../../scripts/evidence/page.js'
import {
  DEPENDS_ON,
  type EvidenceRecord,
  jsonLines,
  type Part,
  sumOf,
  UsageError,
} from '../../scripts/evidence/part.js'
import { PARTS } from '../../scripts/evidence/parts/all.js'
import { openRecords } from '../../scripts/evidence/records.js'
import { temporaryFolder } from '../support/clean-up.js'
import { until } from '../support/until.js'

describe('npm run evidence', () => {
  it('makes each step once, and writes the page when all have a record', async () => {
    const project = createProject()
    const first = await project.run()
    expect(first.code).toBe(0)
    expect(project.made()).toEqual(['1', '2', '3'])
    expect(project.page()).toContain('| tries | 3 tries | 0 broken | `tries 2` |')
    expect(project.page()).toMatch(
      new RegExp(`Commit \`${project.commit().slice(0, 12)}\`, Node ${process.versions.node}`),
    )
    const second = await project.run()
    expect([second.code, project.made()]).toEqual([0, ['1', '2', '3']])
    expect(second.output).toContain('3 of 3 steps have a record')
  })

  it('goes on after an interruption, of which no half record is left', async () => {
    const project = createProject({ hangs: '2' })
    const interrupted = new AbortController()
    const running = project.run([], interrupted.signal)
    await until('the second step runs', () => project.made().includes('2'))
    interrupted.abort()
    expect((await running).code).toBe(130)
    expect(existsSync(join(project.root, 'docs', 'evidence.md'))).toBe(false)
    project.hangs('nothing')
    expect((await project.run()).code).toBe(0)
    expect(project.made()).toEqual(['1', '2', '2', '3'])
  })

  it('skips half a line that a killed run has left', async () => {
    const project = createProject()
    await project.run()
    const [file] = project.records()
    writeFileSync(String(file), readFileSync(String(file), 'utf8').slice(0, -9))
    expect((await project.run()).code).toBe(0)
    expect(project.made()).toEqual(['1', '2', '3', '3'])
  })

  it.each(['lib/a.ts', 'scripts/new.ts', 'README.md'])('refuses while %s is not committed', async (path) => {
    const project = createProject()
    appendFileSync(join(project.root, path), '// changed\n')
    const { code, output } = await project.run()
    expect([code, project.made()]).toEqual([2, []])
    expect(output).toContain('Commit your changes first')
    expect(output).toContain(path)
  })

  it('refuses what is not committed for one part, though another leaves it out', () => {
    const { root, write } = createProject()
    const open = (...kinds: (keyof typeof DEPENDS_ON)[]) =>
      openRecords(
        root,
        kinds.map((name) => ({ name, dependsOn: DEPENDS_ON[name] })),
      )
    write('__tests__/support/second-oracle/a.ts', 'changed')
    expect(() => open('servers', 'worlds')).toThrow('second-oracle')
    expect(() => open('servers')).not.toThrow()
  })

  it.each<[kind: keyof typeof DEPENDS_ON, steps: number, ...changed: string[]]>([
    ['servers', 3, 'docs/other.md', '__tests__/a.ts', '__tests__/support/second-oracle/a.ts'],
    ['worlds', 3, 'docs/other.md', '__tests__/a.ts', 'scripts/mutate/a.ts'],
    ['tests', 3, 'docs/evidence.md', 'docs/performance.md', 'docs/decisions/a.md', 'bench/results/a.json'],
    ['servers', 6, '__tests__/support/a.ts'],
    ['servers', 6, 'lib/a.ts'],
    ['worlds', 6, '__tests__/support/second-oracle/a.ts'],
    ['tests', 6, '__tests__/a.ts'],
    ['tests', 6, 'docs/other.md'],
    ['tests', 6, 'tsconfig.json'],
  ])('of %s has made %i steps after a change of %s', async (kind, steps, ...changed) => {
    const project = createProject({ dependsOn: DEPENDS_ON[kind] })
    await project.run()
    for (const path of changed) project.write(path, 'changed')
    project.commitAll()
    expect((await project.run()).code).toBe(0)
    expect(project.made()).toHaveLength(steps)
  })

  it('names the commits of its records', async () => {
    const project = createProject({ fails: '2' })
    await project.run()
    const first = project.commit().slice(0, 12)
    project.fails('nothing')
    project.write('docs/decisions/a.md', 'a reason')
    project.commitAll()
    const second = project.commit().slice(0, 12)
    await project.run()
    expect(project.page()).toContain(`Commit \`${first}\`, \`${second}\`, Node`)
    project.commitAll()
    await project.run()
    expect(project.page()).toContain(`Commit \`${first}\`, \`${second}\`, Node`)
  })

  it('ends with 1 if something did not hold, and the page says so', async () => {
    const project = createProject({ breaks: '2' })
    const { code, output } = await project.run()
    expect(code).toBe(1)
    expect(output).toContain('BROKEN: the try 2 is broken')
    expect(project.page()).toContain('**broken (1)**')
    expect(project.page()).toContain('**Did not hold**: tries: the try 2 is broken')
    // It stands, so that nobody repeats a run until it holds.
    expect((await project.run()).code).toBe(1)
    expect(project.made()).toHaveLength(3)
  })

  it('ends with 1 if only all steps together show it', async () => {
    const project = createProject({ mayHave: 2 })
    expect((await project.run()).code).toBe(1)
    expect(project.page()).toContain('tries: 3 tries are too many')
  })

  it('ends with 1 without a page if a step could not be made, and makes it in the next run', async () => {
    const project = createProject({ fails: '2' })
    const { code, output } = await project.run()
    expect([code, output]).toEqual([1, expect.stringContaining('could not be made: it has no output')])
    expect(existsSync(join(project.root, 'docs', 'evidence.md'))).toBe(false)
    project.fails('nothing')
    expect((await project.run()).code).toBe(0)
    expect(project.made()).toEqual(['1', '2', '3', '2'])
  })

  it('writes a page of what there is with --partial, which says what is missing', async () => {
    const project = createProject({ fails: '2' })
    await project.run()
    expect((await project.run(['--partial'])).code).toBe(0)
    expect(project.page()).toContain('**Not whole**, steps made: tries 2/3')
  })

  it('prints a short form, which is no page of the docs', async () => {
    const project = createProject()
    expect((await project.run(['--short'])).code).toBe(0)
    expect(project.made()).toEqual(['1'])
    expect(existsSync(join(project.root, 'docs', 'evidence.md'))).toBe(false)
    expect(readFileSync(join(project.root, 'reports', 'evidence', 'short.md'), 'utf8')).toContain(
      '| 1 tries |',
    )
  })

  it('lists its parts, and repeats a seed with the exit code of its command', async () => {
    const project = createProject({ breaks: '3' })
    expect(await project.run(['--list'])).toMatchObject({ code: 0, output: 'tries: tries: 0 of 3 steps' })
    await project.run(['--short'])
    expect((await project.run(['--list'])).output).toBe('tries: tries: 1 of 3 steps')
    expect((await project.run(['repeat', 'tries', '2'])).code).toBe(0)
    expect((await project.run(['repeat', 'tries', '3'])).code).toBe(1)
    expect(project.made()).toEqual(['1', '2', '3'])
  })

  it('repeats the steps that the page names', async () => {
    const project = createProject({ breaks: '3' })
    await project.run()
    expect(project.page()).toContain('Steps: tries step-1 to step-3.')
    expect((await project.run(['repeat', 'tries', 'step-1'])).code).toBe(0)
    expect((await project.run(['repeat', 'tries', 'step-3'])).code).toBe(1)
    expect(project.made()).toEqual(['1', '2', '3', '1', '3'])
  })

  it.each([
    [['--hasty'], '--hasty'],
    [['--only', 'others'], 'There is no part others, only tries'],
    [['again'], 'Write repeat <part> <seed>'],
    [['repeat', 'tries'], 'Write repeat <part> <seed>'],
    [['repeat', 'tries', 'some'], 'not some'],
  ])('refuses what it does not know: %j', async (args, why) => {
    const { code, output } = await createProject().run(args)
    expect([code, output]).toEqual([2, expect.stringContaining(why)])
    expect(output).toContain('npm run evidence -- --help')
  })

  it('explains itself', () => {
    const { status, stdout } = spawnSync(process.execPath, [...MAIN, '--help'], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([0, expect.stringContaining('npm run evidence -- --short')])
  })
})

describe('the sentence of the page', () => {
  const held = [
    record('kills', { kills: 10, acknowledged: 90, lost: 0, wrong: 0 }),
    record('power-cuts', { cuts: 5, acknowledged: 30, lost: 0 }),
    record('worlds', { worlds: 100 }),
    record('months', { days: 3_650 }),
  ]

  it('says that nothing was lost and no answer wrong if all that it names held', () => {
    const sentence =
      '**This package was tried in 10 kills of a server at work, 5 power cuts of a simulated disk, 100 simulated worlds full of faults, and 10 simulated years with mistakes, outages and quiet months: none of its 120 acknowledged deliveries was lost, and no customer was left with a wrong answer.**'
    expect(sentenceOf(held)).toBe(sentence)
    expect(sentenceOf([...held, record('tests', { failed: 1 }, 'a test')])).toBe(
      `${sentence} What did not hold is named below (1).`,
    )
  })

  it.each([
    [['power-cuts'], '5 power cuts of a simulated disk: none of its 30 acknowledged deliveries was lost'],
    [['worlds'], '100 simulated worlds full of faults: all of it held'],
    [['months'], '10 simulated years with mistakes, outages and quiet months: all of it held'],
    [
      ['kills', 'worlds'],
      '10 kills of a server at work and 100 simulated worlds full of faults: none of its 90 acknowledged deliveries was lost, and no customer was left with a wrong answer',
    ],
  ])('is a sentence also of %j alone', (parts, words) => {
    const sentence = `**This package was tried in ${words}.**`
    expect(sentenceOf(held.filter(({ part }) => parts.includes(part)))).toBe(sentence)
  })

  it.each(['kills', 'power-cuts', 'bodies', 'worlds', 'months'])(
    'says only what was tried if anything of %s did not hold',
    (part) => {
      const sentence = sentenceOf([...held, record(part, {}, 'an answer is wrong at the end')])
      expect(sentence).toMatch(/^[^:]* quiet months\.\*\* What did not hold is named below \(1\)\.$/)
      expect(sentence).not.toMatch(/lived|held|none|no customer/)
    },
  )

  it('says how much was lost and how many answers were wrong', () => {
    const sentence = sentenceOf([...held, record('kills', { acknowledged: 1, lost: 2, wrong: 1 }, 'it')])
    expect(sentence).toContain(
      ': it lost 2 of its 121 acknowledged deliveries, and it left 1 wrong among its answers and changes.**',
    )
  })
})

describe('the page', () => {
  it('names an error with its stack in one short line', () => {
    const error = `an error\n    at ${'a place '.repeat(100)}`
    expect(pageOf([record('kills', {}, error)])).toMatch(/: kills: an error at .{100,300}…\.\n/)
  })
})

const ROOT = join(__dirname, '..', '..')
const MAIN = ['--import', 'tsx', 'scripts/evidence/main.ts']

function record(part: string, figures: Record<string, number>, ...broken: string[]): EvidenceRecord {
  return { part, step: '1', commit: '', node: '20', at: '2026-11-26', tookMs: 1, figures, broken }
}

function pageOf(records: readonly EvidenceRecord[]): string {
  const parts = PARTS.map((part) => ({
    ...part,
    steps: () => [{ id: '1', command: [], outcome: () => ({ figures: {}, broken: [] }) }],
    row: () => ({ amount: '', result: '' }),
  }))
  return verdictOf(parts, 'whole', { all: () => [...records], add() {} }).page
}

function sentenceOf(records: readonly EvidenceRecord[]): string | undefined {
  return pageOf(records).split('\n')[2]
}

/**
 * A project with one part of three steps: one breaks, one fails, and one hangs, if a file says so. A step notes that it was
 * made before it ends.
 */
function createProject(
  how: {
    breaks?: string
    fails?: string
    hangs?: string
    mayHave?: number
    dependsOn?: Part['dependsOn']
  } = {},
) {
  const root = temporaryFolder()
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  for (const folder of ['lib', '__tests__', '__tests__/support', 'scripts', 'docs', 'reports']) {
    mkdirSync(join(root, folder))
    writeFileSync(join(root, folder, 'a.ts'), 'export const a = 1\n')
  }
  for (const file of ['package-lock.json', 'README.md']) writeFileSync(join(root, file), '{}\n')
  writeFileSync(join(root, '.gitignore'), 'reports/\n')
  git('init', '--quiet')
  git('config', 'user.email', 'somebody@example.com')
  git('config', 'user.name', 'Somebody')
  const made = join(root, 'reports', 'made')
  const state = (name: string) => join(root, 'reports', name)
  const set = (name: string) => (step: string) => writeFileSync(state(name), step)
  set('fails')(how.fails ?? '')
  set('hangs')(how.hangs ?? '')
  writeFileSync(made, '')

  const commandOf = (seed: string) => [
    '--eval',
    `const { appendFileSync, readFileSync } = require('node:fs')
    appendFileSync(${JSON.stringify(made)}, '${seed}\\n')
    if (readFileSync(${JSON.stringify(state('hangs'))}, 'utf8') === '${seed}') setInterval(() => {}, 1_000)
    else if (readFileSync(${JSON.stringify(state('fails'))}, 'utf8') !== '${seed}')
      console.log(JSON.stringify({ broken: ${how.breaks === seed} ? ['the try ${seed} is broken'] : [] }))
    process.exitCode = ${how.breaks === seed ? 1 : 0}`,
  ]
  const part: Part = {
    name: 'tries',
    title: 'tries',
    dependsOn: how.dependsOn ?? DEPENDS_ON.tests,
    example: '2',
    steps: (scope) =>
      (scope === 'short' ? ['1'] : ['1', '2', '3']).map((seed) => ({
        id: `step-${seed}`,
        command: commandOf(seed),
        outcome({ stdout }) {
          const [found] = jsonLines<{ broken: string[] }>(stdout)
          if (!found) throw new Error('it has no output')
          return { figures: { tries: 1 }, broken: found.broken }
        },
      })),
    row: (records) => ({
      amount: `${sumOf(records, 'tries')} tries`,
      result: `${records.flatMap(({ broken }) => broken).length} broken`,
      broken: sumOf(records, 'tries') > (how.mayHave ?? 3) ? ['3 tries are too many'] : [],
    }),
    repeat(seed) {
      if (!/^\d$/.test(seed)) throw new UsageError(`A seed is a digit, not ${seed}`)
      return commandOf(seed)
    },
  }
  function commitAll() {
    git('add', '--all')
    git('commit', '--quiet', '--message', 'a state')
  }
  commitAll()

  return {
    root,
    hangs: set('hangs'),
    write(path: string, text: string) {
      mkdirSync(join(root, dirname(path)), { recursive: true })
      writeFileSync(join(root, path), text)
    },
    fails: set('fails'),
    commitAll,
    commit: () => git('rev-parse', 'HEAD'),
    made: () => readFileSync(made, 'utf8').split('\n').slice(0, -1),
    page: () => readFileSync(join(root, 'docs', 'evidence.md'), 'utf8'),
    records: () =>
      readdirSync(join(root, 'reports', 'evidence')).map((name) => join(root, 'reports', 'evidence', name)),
    async run(args: string[] = [], signal = new AbortController().signal) {
      const lines: string[] = []
      const code = await evidence(args, {
        root,
        parts: [part],
        print: (line) => void lines.push(line),
        signal,
      })
      return { code, output: lines.join('\n') }
    },
  }
}
