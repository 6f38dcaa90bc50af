/** `npm run evidence`: tries what the package promises, for hours, and writes what came out. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { verdictOf } from './page.js'
import { type Part, type Scope, UsageError } from './part.js'
import { PARTS } from './parts/all.js'
import { openRecords } from './records.js'
import { makeSteps, planOf } from './run.js'

const HELP = `Tries what the package promises, and writes docs/evidence.md from what came out.

  npm run evidence                      the whole run: hours, in steps of minutes
  npm run evidence -- --short           ten minutes; writes reports/evidence/short.md
  npm run evidence -- repeat kills sqlite-7     one seed again, with all that it prints

  --only <parts>  Only these parts, separated by commas: ${PARTS.map(({ name }) => name).join(', ')}.
  --partial       Writes docs/evidence.md from the records that exist, and makes no step. The page names what is missing.
  --list          Prints the parts, with their steps and how many have a record.
  --help          Prints this.

Interrupt it at any time: each step that has ended has its record in reports/evidence/, and the next run goes on after
it, as long as lib, __tests__, scripts and package-lock.json are those of the record. They must be committed. It ends
with 0 if all held, with 1 if something did not hold or could not be tried, and with 2 if an argument is wrong.
`
const root = fileURLToPath(new URL('../..', import.meta.url))

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const isUsage =
    error instanceof UsageError || String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS')
  if (!isUsage) throw error
  console.error(`${(error as Error).message}\nSee npm run evidence -- --help`)
  process.exitCode = 2
}

async function main(args: string[]): Promise<number> {
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
    console.log(HELP)
    return 0
  }
  if (positionals.length > 0) return repeat(positionals)
  const scope = values.short ? 'short' : 'whole'
  const parts = values.only === undefined ? PARTS : values.only.split(',').map(partNamed)
  if (values.list) return list(parts, scope)
  return run({ parts, scope, isPartial: values.partial, isAll: values.only === undefined })
}

async function run(options: { parts: readonly Part[]; scope: Scope; isPartial: boolean; isAll: boolean }) {
  const { parts, scope, isPartial, isAll } = options
  const records = openRecords(root)
  const abort = new AbortController()
  process.once('SIGINT', () => abort.abort())
  if (!isPartial) {
    const plan = planOf(parts, scope, records)
    if (plan.some(({ isDone }) => !isDone)) build()
    await makeSteps({ root, plan, records, print: console.log, signal: abort.signal })
    if (abort.signal.aborted) {
      console.log('Interrupted. The next run goes on with this step.')
      return 130
    }
  }
  const { page, broken, missing } = verdictOf(isPartial ? PARTS : parts, scope, records)
  console.log(`\n${page}`)
  for (const what of broken) console.error(`Did not hold: ${what}`)
  if (scope === 'short') write('reports/evidence/short.md', page)
  else if (isPartial || (isAll && missing.length === 0)) write('docs/evidence.md', page)
  return broken.length > 0 || (missing.length > 0 && !isPartial) ? 1 : 0
}

/** Kills use the built package, which must be that of this commit. */
function build() {
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' })
  if (status !== 0) throw new Error('Cannot build the package')
}

function write(path: string, text: string) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
  console.log(`Written: ${path}`)
}

function list(parts: readonly Part[], scope: Scope): number {
  const records = openRecords(root)
  for (const part of parts) {
    const plan = planOf([part], scope, records)
    console.log(
      `${part.name}: ${part.title}: ${plan.filter(({ isDone }) => isDone).length} of ${plan.length} steps`,
    )
  }
  return 0
}

function repeat([word, name, seed, ...more]: string[]): number {
  if (word !== 'repeat' || name === undefined || seed === undefined || more.length > 0)
    throw new UsageError('Write repeat <part> <seed>')
  const part = partNamed(name)
  const args = part.repeat(seed)
  if (name === 'kills') build()
  console.log(`node ${args.map((arg) => (/^[\w./:=-]+$/.test(arg) ? arg : `'${arg}'`)).join(' ')}`)
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  return status === 0 ? 0 : 1
}

function partNamed(name: string): Part {
  const part = PARTS.find((each) => each.name === name)
  if (!part)
    throw new UsageError(`There is no part ${name}, only ${PARTS.map((each) => each.name).join(', ')}`)
  return part
}
