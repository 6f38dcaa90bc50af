import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
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
import { dirname, join } from 'node:path'
import { transformSync } from '@swc/core'
import type { Mutant } from './mutants.js'

export interface Sandbox {
  /**
   * Runs a test file, with the mutant if there is one. Returns how long it took in milliseconds, and `undefined` if it
   * failed or has not ended in time.
   */
  run(test: string, timeoutMs: number, mutant?: Mutant): Promise<number | undefined>
  /** Ends the tests that run, and removes the copy. */
  remove(): void
}

/** Bundles the command line of the working directory again. */
const BUILD_COMMAND =
  "import('./scripts/build-command.mjs').then(({ buildCommand }) => buildCommand(process.cwd()))"

/** What the worker answers. */
interface Outcome {
  passed: boolean
  tookMs: number
  canRunMore: boolean
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

  /** Runs test files until one hangs, or leaves something that could disturb the next: then the next has a new worker. */
  let worker: ChildProcess | undefined

  function startWorker(): ChildProcess {
    return spawn(process.execPath, [join(root, 'scripts', 'mutate', 'worker.mjs')], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      detached: true,
      // Not UTC, so that no time is correct by chance.
      env: { ...process.env, TZ: 'Asia/Kathmandu' },
    })
  }

  /** Kills the worker, and the processes that its tests started. */
  function endWorker() {
    try {
      if (worker?.pid !== undefined) process.kill(-worker.pid, 'SIGKILL')
    } catch {
      // It has ended itself.
    }
    worker = undefined
  }

  async function runTest(test: string, timeoutMs: number): Promise<number | undefined> {
    if (!worker?.connected) worker = startWorker()
    const current = worker
    const timer = setTimeout(endWorker, timeoutMs)
    const outcome = await new Promise<Outcome | undefined>((resolve) => {
      current.on('message', (message) => resolve(message as Outcome))
      current.on('exit', () => resolve(undefined))
      current.send(test, () => {})
    })
    clearTimeout(timer)
    current.removeAllListeners()
    if (!outcome?.canRunMore) endWorker()
    return outcome?.passed ? outcome.tookMs : undefined
  }

  function write(module: string, source: string) {
    writeFileSync(join(folder, module), source)
    if (!needsBuild) return
    if (module.startsWith('lib/cli/'))
      execFileSync(process.execPath, ['--eval', BUILD_COMMAND], { cwd: folder, stdio: 'ignore' })
    else {
      const { code } = transformSync(source, {
        filename: module,
        jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
        module: { type: 'commonjs' },
      })
      writeFileSync(join(folder, 'dist', module.replace(/\.ts$/, '.js')), code)
    }
    const now = new Date()
    utimesSync(join(folder, 'dist', 'lib', 'package.json'), now, now)
  }

  return {
    async run(test, timeoutMs, mutant) {
      if (mutant === undefined) return runTest(test, timeoutMs)
      const { module, start, end, replacement } = mutant
      const source = readFileSync(join(folder, module), 'utf8')
      write(module, source.slice(0, start) + replacement + source.slice(end))
      try {
        return await runTest(test, timeoutMs)
      } finally {
        write(module, source)
      }
    },

    remove() {
      endWorker()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
