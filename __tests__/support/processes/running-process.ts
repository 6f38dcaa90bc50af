import { type SpawnOptions, spawn } from 'node:child_process'
import { onCleanUp } from '../clean-up.js'
import { until } from '../until.js'

export interface Ended {
  code: number | NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface RunningProcess {
  stdout(): string
  stderr(): string
  /** Resolves when it has printed this text. Rejects, with all that it has printed, if it ends before. */
  prints(text: string | RegExp, withinMs?: number): Promise<void>
  isAlive(): boolean
  write(text: string): void
  /** Writes the text and closes the input. */
  end(text: string): void
  signal(name: NodeJS.Signals): void
  ended: Promise<Ended>
}

/** Starts a process, and collects its output. A process that still runs after the test is killed. */
export function startProcess(
  program: string,
  args: readonly string[],
  { stdin = 'ignore', ...options }: Pick<SpawnOptions, 'cwd' | 'env'> & { stdin?: 'ignore' | 'pipe' } = {},
): RunningProcess {
  const child = spawn(program, args, { ...options, stdio: [stdin, 'pipe', 'pipe'] })
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (chunk) => {
      printed[name] += chunk
    })
  // The process has closed its input.
  child.stdin?.on('error', () => {})
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code: signal ?? code, ...printed }))
  })
  const isAlive = () => child.exitCode === null && child.signalCode === null
  onCleanUp(async () => {
    if (isAlive()) child.kill('SIGKILL')
    await ended
  })
  return {
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
    async prints(text, withinMs = 40_000) {
      const all = () => printed.stdout + printed.stderr
      const isThere = () => (typeof text === 'string' ? all().includes(text) : text.test(all()))
      await until(`"${text}"`, () => isThere() || !isAlive(), withinMs).catch((error) => {
        throw new Error(`${error.message}; printed: ${all()}`)
      })
      if (!isThere()) throw new Error(`it ended without "${text}": ${all()}`)
    },
    isAlive,
    write: (text) => void child.stdin?.write(text),
    end: (text) => void child.stdin?.end(text),
    signal: (name) => void child.kill(name),
    ended,
  }
}
