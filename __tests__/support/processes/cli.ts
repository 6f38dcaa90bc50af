import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { jest } from '@jest/globals'
import { run } from '../../../lib/cli/program.js'
import type { Simulator } from '../../../lib/testing/index.js'
import { requireBuild } from '../../package/installed-package.js'
import { temporaryFolder } from '../clean-up.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../settings.js'
import { type Ended, type RunningProcess, startProcess } from './running-process.js'

// Some tests start a dozen processes one after the other, on a busy machine.
jest.setTimeout(180_000)

/** The built command line. */
export const CLI = join(__dirname, '..', '..', '..', 'dist', 'cli', 'main.js')

export interface CliOptions {
  env?: NodeJS.ProcessEnv
  /** The standard input; without this option it is closed. */
  input?: string
  cwd?: string
}

/** Runs the built command line as its own process until it ends. Its environment contains only `env`. */
export function runCli(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  const { input, ...rest } = options
  const running = startProgram(
    process.execPath,
    [CLI, ...args],
    rest,
    input === undefined ? 'ignore' : 'pipe',
  )
  if (input !== undefined) running.end(input)
  return running.ended
}

/**
 * Runs a command of the sources in this process, which takes some milliseconds where a process takes half a second. For
 * what belongs to the process (signals, the terminal, modules as `--config`, `--env`, relative paths, `DEBUG`) use
 * `runCli`.
 */
export async function runCliHere(
  args: readonly string[],
  {
    env = {},
    input = '',
    isTerminal = false,
  }: Pick<CliOptions, 'env' | 'input'> & { isTerminal?: boolean } = {},
): Promise<Ended> {
  const printed = { stdout: '', stderr: '' }
  const streamOf = (name: keyof typeof printed) =>
    Object.assign(
      new Writable({
        write(chunk, _encoding, written) {
          printed[name] += chunk
          written()
        },
      }),
      isTerminal ? { isTTY: true } : {},
    ) as unknown as NodeJS.WriteStream
  const [stdout, stderr] = [streamOf('stdout'), streamOf('stderr')]
  const stdin = Readable.from([Buffer.from(input)]) as unknown as NodeJS.ReadStream
  const code = await run(args, { version: '0.0.0', env: { ...env }, stdin, stdout, stderr })
  return { code, ...printed }
}

/** Starts the command line with an open input, so that a test can watch it and write to it. */
export function startCli(args: readonly string[], options: Omit<CliOptions, 'input'> = {}): RunningProcess {
  return startProgram(process.execPath, [CLI, ...args], options, 'pipe')
}

/** Starts the command line in a pseudo-terminal of 80 columns, with `script` of util-linux. */
export function startInTerminal(
  args: readonly string[],
  options: Omit<CliOptions, 'input'> = {},
): RunningProcess {
  const command = [process.execPath, CLI, ...args]
    .map((each) => `'${each.replaceAll("'", "'\\''")}'`)
    .join(' ')
  return startProgram(
    'script',
    ['--quiet', '--return', '--command', `stty cols 80; exec ${command}`, '/dev/null'],
    options,
    'pipe',
  )
}

function startProgram(
  program: string,
  args: readonly string[],
  { env = {}, cwd = temporaryFolder() }: Omit<CliOptions, 'input'>,
  stdin: 'ignore' | 'pipe',
) {
  requireBuild()
  const { PATH, HOME, TMPDIR } = process.env
  const base = Object.fromEntries(
    Object.entries({ PATH, HOME, TMPDIR }).filter(([, value]) => value !== undefined),
  )
  return startProcess(program, args, { stdin, cwd, env: { ...base, ...env } })
}

/** The settings of the tests' app as environment variables. */
export function settingsFor(
  platform: Pick<Simulator, 'baseUrl' | 'authUrl'>,
  store: string,
): Record<string, string> {
  return {
    MARKETPLACE_CLIENT_ID: CLIENT.clientId,
    MARKETPLACE_CLIENT_SECRET: CLIENT.clientSecret,
    MARKETPLACE_PURCHASABLE_UID: OUR_ITEM,
    MARKETPLACE_CODE_NAME: 'ours',
    MARKETPLACE_BASE_URL: platform.baseUrl,
    MARKETPLACE_AUTH_URL: platform.authUrl,
    DELIVERY_SECRETS: DELIVERY_SECRET,
    MARKETPLACE_STORE: store,
    MARKETPLACE_ACTOR: 'ada',
  }
}

/** The JSON documents in an output, one for each line. */
export function jsonLines<T = Record<string, unknown>>(stdout: string): T[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T)
}
