import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { verdictOf } from './page.js'
import { DEPENDS_ON, IGNORED, type Part, type Scope, UsageError } from './part.js'
import { openRecords } from './records.js'
import { makeSteps, planOf } from './run.js'

const helpOf = (
  parts: readonly Part[],
) => `Tries what the package promises, and writes docs/evidence.md from what came out.

  npm run evidence                      the whole run: hours, in steps of minutes
  npm run evidence -- --short           ten minutes; writes reports/evidence/short.md
  npm run evidence -- repeat kills sqlite-7     one seed or step again, with all that it prints

  --only <parts>  Only these parts, separated by commas: ${parts.map(({ name }) => name).join(', ')}.
  --partial       Writes docs/evidence.md from the records that exist, and makes no step. The page names what is missing.
  --list          Prints the parts, with their steps and how many have a record.
  --help          Prints this.

Interrupt it at any time: each step that has ended has its record in reports/evidence/, and the next run goes on after
it, as long as all files are those of the record, but for
${IGNORED.join(', ')}.
For sabotages and mutants only these count:
${DEPENDS_ON.brokenCode.join(', ')}.
For kills, power-cuts and bodies only these:
${DEPENDS_ON.servers.join(', ')}.
For worlds and months only these:
${DEPENDS_ON.worlds.join(', ')}.
What counts must be committed. It ends with 0 if all held, with 1 if something did not hold or could not be tried, with 2
if an argument is wrong, and with 130 after Ctrl+C.
`

/** The project whose evidence is collected, and how. */
export interface Collecting {
  root: string
  parts: readonly Part[]
  print(line: string): void
  /** Interrupts the running step. */
  signal: AbortSignal
}

/** The command `npm run evidence` with these arguments. Returns its exit code. */
export async function evidence(args: string[], collecting: Collecting): Promise<number> {
  try {
    return await obey(args, collecting)
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (!(error instanceof UsageError) && !String(code).startsWith('ERR_PARSE_ARGS')) throw error
    collecting.print(`${message}\nSee npm run evidence -- --help`)
    return 2
  }
}

async function obey(args: string[], collecting: Collecting): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      short: { type: 'boolean', default: false },
      only: { type: 'string' },
      partial: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    collecting.print(helpOf(collecting.parts))
    return 0
  }
  if (positionals.length > 0) return repeat(positionals, collecting)
  const scope = values.short ? 'short' : 'whole'
  const chosen = values.only?.split(',').map((name) => partNamed(name, collecting))
  if (values.list) return list(chosen ?? collecting.parts, scope, collecting)
  if (values.partial) return writeWhatIsThere(collecting)
  return run(chosen, scope, collecting)
}

async function run(
  chosen: readonly Part[] | undefined,
  scope: Scope,
  collecting: Collecting,
): Promise<number> {
  const { root, print, signal } = collecting
  const parts = chosen ?? collecting.parts
  const records = openRecords(root, parts)
  const plan = planOf(parts, scope, records)
  if (plan.some(({ isDone, part }) => !isDone && part.needsBuild)) build(root)
  await makeSteps({ root, plan, records, print, signal })
  if (signal.aborted) {
    print('Interrupted. The next run goes on with this step.')
    return 130
  }
  const { page, broken, missing } = verdictOf(parts, scope, records)
  print(`\n${page}`)
  for (const what of broken) print(`Did not hold: ${what}`)
  if (scope === 'short') write(collecting, 'reports/evidence/short.md', page)
  else if (!chosen && missing.length === 0) write(collecting, 'docs/evidence.md', page)
  return broken.length + missing.length > 0 ? 1 : 0
}

function writeWhatIsThere(collecting: Collecting): number {
  const { page, broken } = verdictOf(
    collecting.parts,
    'partial',
    openRecords(collecting.root, collecting.parts),
  )
  write(collecting, 'docs/evidence.md', page)
  return broken.length > 0 ? 1 : 0
}

/** Kills use the built package, which must be that of this commit. */
function build(root: string) {
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) throw new Error('Cannot build the package')
}

function write({ root, print }: Collecting, path: string, text: string) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
  print(`Written: ${path}`)
}

function list(parts: readonly Part[], scope: Scope, { root, print }: Collecting): number {
  const records = openRecords(root, parts)
  for (const part of parts) {
    const plan = planOf([part], scope, records)
    print(
      `${part.name}: ${part.title}: ${plan.filter(({ isDone }) => isDone).length} of ${plan.length} steps`,
    )
  }
  return 0
}

function repeat([word, name, seed, ...more]: string[], collecting: Collecting): number {
  const { root, print } = collecting
  if (word !== 'repeat' || name === undefined || seed === undefined || more.length > 0)
    throw new UsageError('Write repeat <part> <seed>')
  const part = partNamed(name, collecting)
  // The page names steps, too.
  const step = [...part.steps('whole'), ...part.steps('short')].find(({ id }) => id === seed)
  const args = step?.command ?? part.repeat(seed)
  if (part.needsBuild) build(root)
  print(`node ${args.map((arg) => (/^[\w./:=-]+$/.test(arg) ? arg : JSON.stringify(arg))).join(' ')}`)
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  return status === 0 ? 0 : 1
}

function partNamed(name: string, { parts }: Collecting): Part {
  const part = parts.find((each) => each.name === name)
  if (!part)
    throw new UsageError(`There is no part ${name}, only ${parts.map((each) => each.name).join(', ')}`)
  return part
}
