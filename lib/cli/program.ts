import { Command, CommanderError } from 'commander'
import { SETTINGS } from '../environment.js'
import { addBackup } from './commands/backup.js'
import { addCopy } from './commands/copy.js'
import { addErase } from './commands/erase.js'
import { addExplain } from './commands/explain.js'
import { addExport } from './commands/export.js'
import { addHistory } from './commands/history.js'
import { addMigrate } from './commands/migrate.js'
import { addRefresh } from './commands/refresh.js'
import { addRegister } from './commands/register.js'
import { addRestore } from './commands/restore.js'
import { addSecret } from './commands/secret.js'
import { addSimulate } from './commands/simulate.js'
import { addSubscriptions } from './commands/subscriptions.js'
import { addTrack } from './commands/track.js'
import { addCompletion } from './completion.js'
import { addDemo } from './dev/demo.js'
import { addDev } from './dev/dev.js'
import { addDoctor } from './doctor/doctor.js'
import { addImport } from './import/import.js'
import { addJournal } from './journal/journal.js'
import { addPlatformReport } from './platform-report.js'
import { trimmed } from './terminal/command-options.js'
import { type Act, type CommonOptions, createContext } from './terminal/context.js'
import { DONE, EXIT_CODES, type ExitCode, Stop, stopFor, USAGE } from './terminal/exit-codes.js'
import { oneLine, wrapped } from './terminal/layout.js'
import { createOutput, type Output } from './terminal/output.js'

/** The streams and the environment of the process. */
export interface Io {
  version: string
  env: NodeJS.ProcessEnv
  stdin: NodeJS.ReadStream
  stdout: NodeJS.WriteStream
  stderr: NodeJS.WriteStream
}

/** The program with all its commands. `act` runs the work of a command. */
export function createProgram(version: string, act: Act): Command {
  const program = new Command('marketplace-webhooks')
    .description(
      'Operate an app that uses marketplace-webhooks. Only the app itself reads and calls handlers.',
    )
    .version(version)
    .option('--json', 'print only JSON on stdout')
    .option(
      '--config <file>',
      'take the options from a .json, .mjs, .cjs, .js or .ts file instead of the environment',
      trimmed,
    )
    .option(
      '--env <file>',
      'read settings from a file of NAME=value lines; variables with a value keep it',
      trimmed,
    )
    .option('--actor <name>', 'your name, for the journal (default: MARKETPLACE_ACTOR, or your user name)')
    .option('--reason <text>', 'the reason of the action, for the journal', trimmed)
    .configureHelp({ showGlobalOptions: true, helpWidth: 80 })
    .addHelpText('after', `\n${settingsHelp()}\n\n${exitCodesHelp()}`)
  const adders = [
    ...[addDemo, addDev, addSimulate, addSecret, addRegister, addDoctor],
    ...[
      addExplain,
      addHistory,
      addRefresh,
      addTrack,
      addImport,
      addSubscriptions,
      addJournal,
      addPlatformReport,
    ],
    ...[addMigrate, addBackup, addRestore, addCopy, addExport, addErase, addCompletion],
  ]
  for (const add of adders) add(program, act)
  return program
}

/** Runs the program; resolves to its exit code. Never rejects. */
export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  const { version, env, stdin, stdout, stderr } = io
  let exitCode: ExitCode = DONE
  let out = createOutput({ stdout, stderr, env, isJson: argv.includes('--json') })
  showWarnings(() => out)

  const program = createProgram(version, (work) => async (...given) => {
    const command = given.at(-1) as Command
    const common = command.optsWithGlobals<CommonOptions>()
    out = createOutput({ stdout, stderr, env, isJson: common.json === true })
    const context = createContext({ env, stdin, out, common })
    try {
      exitCode = await work(context, ...given)
    } finally {
      await context.close()
    }
  })
  useStreams(program, io)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) return afterCommander(error, out)
    const stop = stopFor(error)
    out.error(stop)
    return stop.exitCode
  }
  return exitCode
}

/** Commander prints help and version itself. A fault of the command line is printed like any other error. */
function afterCommander(error: CommanderError, out: Output): ExitCode {
  if (error.exitCode === 0) return DONE
  if (error.code === 'commander.help') return USAGE
  out.error(
    new Stop(USAGE, oneLine(error.message.replace(/^error: /, '')), {
      fix: 'See marketplace-webhooks --help.',
    }),
  )
  return USAGE
}

/** Lets commander throw instead of ending the process, and print its help on the given streams. Its errors are printed by us. */
function useStreams(command: Command, { stdout, stderr }: Pick<Io, 'stdout' | 'stderr'>) {
  command.exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    outputError: () => {},
  })
  for (const each of command.commands) useStreams(each, { stdout, stderr })
}

/** Prints warnings of this package. Warnings of Node are dropped. */
function showWarnings(out: () => Output) {
  process.removeAllListeners('warning')
  process.on('warning', (warning: Error & { code?: string }) => {
    // If the store does not open, an error follows.
    if (warning.name !== 'MarketplaceWarning' || warning.code === 'store_not_open') return
    out().warning(warning.message)
  })
}

function settingsHelp(): string {
  const longest = Math.max(...Object.keys(SETTINGS).map((name) => name.length))
  const lines = Object.entries(SETTINGS).map(
    ([name, { option, isList }]) =>
      `  ${name.padEnd(longest)}  ${option}${isList ? ', or several: a,b' : ''}`,
  )
  return `Settings from the environment:\n${lines.join('\n')}`
}

function exitCodesHelp(): string {
  const indent = ' '.repeat(7)
  const lines = Object.entries(EXIT_CODES).map(
    ([code, meaning]) => `  ${code.padStart(3)}  ${wrapped(meaning, 80 - indent.length).join(`\n${indent}`)}`,
  )
  return `Exit codes:\n${lines.join('\n')}`
}
