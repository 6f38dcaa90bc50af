/** `npm run mutate`: changes the code in small ways, one at a time, and reports which changes no test notices. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Mutant, mutantsOf, sampleOf } from './mutants.js'
import { PURE } from './pure.js'
import { createSandbox, type Sandbox } from './sandbox.js'
import { createTests } from './tests-of.js'

const HELP = `Changes the code in small ways, one at a time, and lists the changes that no test notices.

  npm run mutate                                the pure modules; 95 % must be noticed
  npm run mutate -- lib/store lib/base/ids.ts   folders and modules; 85 % must be noticed
  npm run mutate -- lib/store --sample 100      100 of the mutants; --seed 7 chooses others
  npm run mutate -- lib/options.ts __tests__/marketplace    with tests of your choice: folders and files of __tests__

  --sample <count>       Runs only so many mutants.
  --seed <number>        Which ones (default: 1).
  --concurrency <count>  Copies of the project that run tests at once (default: one for each core).
  --list                 Prints the mutants and runs no test.
  --help                 Prints this.

A mutant runs against the tests of its module: in the folders of __tests__ that mirror its own and those above it, the
files that reach it by imports; in the other folders, those that import it themselves. They run one after the other until one fails, or has
not ended after ten seconds and three times its usual time; the one that noticed the last mutant runs first. Code is
changed as Stryker does it, SQL in sql\`…\` by the rules of scripts/mutate/sql-mutants.ts. It ends with 1 if too few
are noticed, and with 2 if an argument is wrong.
`
const AIM = 85
const AIM_OF_PURE = 95
const MAX_USUAL_MS = 600_000
const root = fileURLToPath(new URL('../..', import.meta.url))

const { help, list, sample, seed, concurrency, modules, chosenTests } = argumentsOf(process.argv.slice(2))
const all = help ? [] : await mutantsOf(root, modules)
const mutants = sample === undefined ? all : sampleOf(all, sample, seed)
if (help) console.log(HELP)
else if (list) for (const mutant of mutants) console.log(nameOf(mutant))
else print(await survivorsOf(mutants))

async function survivorsOf(mutants: readonly Mutant[]): Promise<Mutant[]> {
  const tests = createTests(root)
  const ofModule = new Map(modules.map((module) => [module, chosenTests ?? tests.of(module)]))
  const used = [...ofModule.values()].flat()
  const needsBuild = used.some((test) => tests.reaches(test, '__tests__/package/installed-package.ts'))
  const sandboxes = Array.from({ length: concurrency }, (_, i) =>
    createSandbox(root, join(root, 'reports', 'mutation', `${process.pid}-${i + 1}`), needsBuild),
  )
  const remove = () => sandboxes.forEach((sandbox) => void sandbox.remove())
  process.once('SIGINT', () => {
    remove()
    process.exit(130)
  })
  const survivors: Mutant[] = []
  const usual = new Map<string, Promise<number | undefined>>()
  let done = 0

  /** How long the test takes without a mutant, in milliseconds. It runs when the first mutant needs it. */
  function usualMs(test: string, sandbox: Sandbox): Promise<number | undefined> {
    const known = usual.get(test)
    if (known) return known
    const measured = sandbox.run(test, MAX_USUAL_MS).then((ms) => {
      if (ms === undefined) console.log(`Left out, because it fails without a mutant: ${test}`)
      return ms
    })
    usual.set(test, measured)
    return measured
  }

  /** Whether a test of the module fails with the mutant, or has not ended in time. */
  async function isNoticed(mutant: Mutant, sandbox: Sandbox): Promise<boolean> {
    const own = ofModule.get(mutant.module) ?? []
    for (const test of own) {
      const ms = await usualMs(test, sandbox)
      if (ms === undefined || (await sandbox.run(test, 10_000 + 3 * ms, mutant)) !== undefined) continue
      // Neighbouring mutants are mostly noticed by the same test.
      ofModule.set(mutant.module, [test, ...own.filter((other) => other !== test)])
      return true
    }
    return false
  }

  /** Runs the mutants that no other sandbox has run. */
  async function runIn(sandbox: Sandbox, waiting: Iterable<Mutant>) {
    for (const mutant of waiting) {
      const noticed = await isNoticed(mutant, sandbox)
      if (!noticed) survivors.push(mutant)
      console.log(`${++done}/${mutants.length} ${noticed ? 'noticed ' : 'SURVIVED'} ${nameOf(mutant)}`)
    }
  }

  try {
    const waiting = mutants.values()
    await Promise.all(sandboxes.map((sandbox) => runIn(sandbox, waiting)))
  } finally {
    remove()
  }
  return survivors
}

function print(survivors: readonly Mutant[]) {
  const shareOf = (of: readonly Mutant[]) => {
    const noticed = of.filter((mutant) => !survivors.includes(mutant)).length
    return { noticed, share: of.length === 0 ? 100 : (100 * noticed) / of.length }
  }
  if (survivors.length > 0) console.log('\nNot noticed:')
  for (const mutant of survivors) console.log(nameOf(mutant))
  console.log('\n| Module | Mutants | Noticed | Share |\n|---|---|---|---|')
  for (const module of modules) {
    const own = mutants.filter((mutant) => mutant.module === module)
    if (own.length === 0) continue
    const { noticed, share } = shareOf(own)
    console.log(`| ${module} | ${own.length} | ${noticed} | ${share.toFixed(1)} % |`)
  }
  const { noticed, share } = shareOf(mutants)
  console.log(`| all | ${mutants.length} | ${noticed} | ${share.toFixed(1)} % |`)
  if (mutants.length < all.length)
    console.log(`\nA sample: ${mutants.length} of ${all.length} mutants, seed ${seed}.`)
  const below = modules
    .filter((module) => PURE.includes(module))
    .filter((module) => {
      return shareOf(mutants.filter((mutant) => mutant.module === module)).share < AIM_OF_PURE
    })
  if (sample === undefined) for (const module of below) console.log(`Below ${AIM_OF_PURE} %: ${module}`)
  if (share < AIM) console.log(`Below ${AIM} %`)
  process.exitCode = share < AIM || (sample === undefined && below.length > 0) ? 1 : 0
}

function nameOf({ module, line, change }: Mutant) {
  return `${module}:${line} ${change}`
}

function argumentsOf(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        help: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        sample: { type: 'string' },
        seed: { type: 'string', default: '1' },
        concurrency: { type: 'string', default: String(availableParallelism()) },
      },
    })
    const files = [...new Set(positionals.flatMap(filesAt))].sort()
    const [modules, tests] = [files.filter(isModule), files.filter(isTest)]
    return {
      help: values.help,
      list: values.list,
      sample: values.sample === undefined ? undefined : countOf('sample', values.sample),
      seed: countOf('seed', values.seed),
      concurrency: countOf('concurrency', values.concurrency),
      modules: modules.length > 0 ? modules : PURE,
      chosenTests: tests.length > 0 ? tests : undefined,
    }
  } catch (error) {
    console.error(`${(error as Error).message}\nSee npm run mutate -- --help`)
    process.exit(2)
  }
}

function countOf(option: string, value: string): number {
  if (!/^[1-9]\d{0,8}$/.test(value)) throw new Error(`--${option} is a whole number from 1, not ${value}`)
  return Number(value)
}

/** The modules and tests at a path from the root of the project. */
function filesAt(path: string): string[] {
  const full = join(root, path)
  if (!existsSync(full)) throw new Error(`There is no ${path}. Name a path from the root of the project`)
  const found = statSync(full).isFile()
    ? [full]
    : readdirSync(full, { recursive: true, encoding: 'utf8' }).map((file) => join(full, file))
  const files = found.map((file) => relative(root, file)).filter((file) => isModule(file) || isTest(file))
  if (files.length === 0)
    throw new Error(`${path} has no module of lib/ and no test. Name folders or files of lib/ and __tests__/`)
  return files
}

/** Pages in the browser are tested as a bundle, which has no mutants. */
function isModule(file: string): boolean {
  return /^lib\/.*\.ts$/.test(file) && !file.startsWith('lib/console/page')
}

function isTest(file: string): boolean {
  return /^__tests__\/.*\.test\.ts$/.test(file) && !file.includes('node_modules')
}
