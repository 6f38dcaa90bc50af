import { execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { transformSync } from '@swc/core'
import type { Mutant } from './mutants.js'

export interface Sandbox {
  /** Runs test files of the unchanged project. Returns how long each took that passed, in milliseconds. */
  measure(tests: readonly string[]): Promise<Map<string, number>>
  /** Whether one of the test files fails with the mutant, or has not ended in time. They run in this order. */
  notices(mutant: Mutant, tests: readonly string[], timeoutMs: number): Promise<boolean>
  /** Ends the tests that run, and removes the copy. */
  remove(): void
}

/** In a report of jest. */
interface TestResult {
  name: string
  status: 'passed' | 'failed'
  startTime: number
  endTime: number
}

/** A copy of the project at `root` in `folder`, with its build if the tests of the mutants need one. */
export function createSandbox(root: string, folder: string, needsBuild: boolean): Sandbox {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: root,
  })
  const files = listed
    .toString()
    .split('\0')
    .filter((file) => file !== '' && !file.startsWith('bench/') && existsSync(join(root, file)))
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  for (const modules of ['node_modules', 'api-docs/node_modules'])
    symlinkSync(join(root, modules), join(folder, modules))
  execFileSync(process.execPath, [join(folder, 'scripts', 'build-console-page.mjs')])
  if (needsBuild) execFileSync('npm', ['run', 'build'], { cwd: folder, stdio: 'ignore' })

  /** Kills the tests that run, and the processes that they started. */
  let endTests: (() => void) | undefined

  function runTests(tests: readonly string[], options: readonly string[], timeoutMs: number) {
    const program = join(root, 'node_modules', 'jest', 'bin', 'jest.js')
    const settings = ['--config', 'jest.mutate.config.mjs', '--runInBand', ...options, '--runTestsByPath']
    const child = spawn(process.execPath, [program, ...settings, ...tests], {
      cwd: folder,
      stdio: 'ignore',
      detached: true,
      // Not UTC, so that no time is correct by chance.
      env: { ...process.env, TZ: 'Asia/Kathmandu' },
    })
    return new Promise<boolean>((resolve) => {
      endTests = () => void process.kill(-(child.pid as number), 'SIGKILL')
      const timer = setTimeout(endTests, timeoutMs)
      child.on('exit', (code) => {
        clearTimeout(timer)
        endTests = undefined
        resolve(code === 0)
      })
    })
  }

  function write(module: string, source: string) {
    writeFileSync(join(folder, module), source)
    if (!needsBuild) return
    for (const [type, built] of [
      ['es6', 'esm'],
      ['commonjs', 'cjs'],
    ] as const) {
      const { code } = transformSync(source, {
        filename: module,
        jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
        module: { type },
      })
      const file = join(folder, module.replace('lib', join('dist', built)).replace(/\.ts$/, '.js'))
      // The command line is built as ES modules only.
      if (existsSync(file)) writeFileSync(file, code)
    }
    const now = new Date()
    utimesSync(join(folder, 'dist', 'cjs', 'package.json'), now, now)
  }

  return {
    async measure(tests) {
      const report = join(folder, 'measured.json')
      await runTests(tests, ['--json', '--outputFile', report], 3_600_000)
      const { testResults }: { testResults: TestResult[] } = JSON.parse(readFileSync(report, 'utf8'))
      const passed = testResults.filter(({ status }) => status === 'passed')
      return new Map(
        passed.map(({ name, startTime, endTime }) => [relative(folder, name), endTime - startTime]),
      )
    },

    async notices({ module, start, end, replacement }, tests, timeoutMs) {
      const source = readFileSync(join(folder, module), 'utf8')
      write(module, source.slice(0, start) + replacement + source.slice(end))
      const passed = await runTests(tests, ['--bail'], timeoutMs)
      write(module, source)
      return !passed
    },

    remove() {
      endTests?.()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
