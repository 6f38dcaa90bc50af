import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { temporaryFolder } from '../support/clean-up.js'

const ROOT = join(__dirname, '..', '..')
const DEPENDENCIES = join(ROOT, 'node_modules')

export interface Packed {
  tarball: string
  /** The content of every file, by its path in the package. */
  files: string[]
}

/**
 * The package, packed as it would be published: once for all test files, because npm takes 2 s of CPU time for it. Packs
 * again when one of its files has changed. Throws as `requireBuild` does.
 */
export function packed(): Packed {
  requireBuild()
  const folder = join(CACHE, `packed-${stateOfSources()}`)
  const description = join(folder, 'packed.json')
  if (!existsSync(description)) packInto(folder)
  return { ...JSON.parse(readFileSync(description, 'utf8')), tarball: join(folder, 'package.tgz') }
}

const CACHE = join(DEPENDENCIES, '.cache', 'marketplace-webhooks')

/** Changes with every file that is packed. */
function stateOfSources(): string {
  const inFolders = ['dist', 'docs', 'examples'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  )
  const files = [
    ...inFolders,
    ...readdirSync(ROOT).filter((file) => /\.md$|LICENSE|^package\.json$/.test(file)),
  ]
  return `${files.length}-${Math.max(...files.map((file) => modifiedAt(join(ROOT, file))))}`
}

function packInto(folder: string) {
  mkdirSync(CACHE, { recursive: true })
  const draft = mkdtempSync(join(CACHE, 'draft-'))
  const output = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', draft], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [made] = JSON.parse(output) as [{ filename: string; files: { path: string }[] }]
  const about = { files: made.files.map(({ path }) => path) }
  writeFileSync(join(draft, 'packed.json'), JSON.stringify(about))
  renameSync(join(draft, made.filename), join(draft, 'package.tgz'))
  const outdated = readdirSync(CACHE).filter(
    (name) => name.startsWith('packed-') && name !== basename(folder),
  )
  for (const name of outdated) rmSync(join(CACHE, name), { recursive: true, force: true })
  try {
    renameSync(draft, folder)
  } catch {
    // Another test file has packed it meanwhile.
    rmSync(draft, { recursive: true })
  }
}

/** Throws if `dist` is older than its sources. A build here would replace files that other tests use. */
export function requireBuild() {
  const built = modifiedAt(join(ROOT, 'dist', 'lib', 'package.json'))
  const sources = readdirSync(join(ROOT, 'lib'), { recursive: true, encoding: 'utf8' })
  if (sources.every((file) => modifiedAt(join(ROOT, 'lib', file)) <= built)) return
  throw new Error('dist is missing or older than lib: run `npm run build` first, or `npm test`, which builds')
}

export interface Result {
  code: number
  stdout: string
  stderr: string
}

export interface Project {
  folder: string
  /** Writes a file, and creates the folders of its path. */
  write(path: string, text: string): void
  /** Runs plain `node` in the project. */
  node(args: string[], env?: Record<string, string>): Promise<Result>
  /** Runs a script of package.json in the project. */
  npm(args: string[], env?: Record<string, string>): Promise<Result>
  /** Runs a command of an installed package, without a network. */
  npx(args: string[]): Promise<Result>
  /** Runs a TypeScript file in the project. */
  tsx(file: string, env?: Record<string, string>): Promise<Result>
  /**
   * Checks the types of these files and of the installed packages, with the project's TypeScript or the one in a
   * folder.
   */
  tsc(files: string[], compilerOptions: Record<string, unknown>, typescript?: string): Promise<Result>
}

/**
 * One of the examples as a project of its own: its files, and the dependencies of its package.json, which come from the
 * packages of the tests. Throws if one is missing there.
 */
export function createExample(name: string): Project {
  const source = join(ROOT, 'examples', name)
  const { dependencies, devDependencies = {} } = JSON.parse(
    readFileSync(join(source, 'package.json'), 'utf8'),
  )
  const { 'marketplace-webhooks': _own, ...others } = { ...dependencies, ...devDependencies }
  const names = Object.keys(others).filter((each) => !each.startsWith('@types/'))
  const project = createProject([...new Set(names)])
  cpSync(source, project.folder, { recursive: true })
  return project
}

/**
 * A project in a folder of this test that has installed the tarball. In a `beforeAll`, wrap it in `forWholeFile`. Beside it are only the packages that an app has: the
 * package's dependencies, Express, a SQLite driver for Node 20, and types. An import of anything else fails.
 */
export function createProject(packages: readonly string[] = ['express', 'libsql']): Project {
  requireBuild()
  const folder = temporaryFolder()
  const installed = join(folder, 'node_modules', 'marketplace-webhooks')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xz', '-C', installed, '--strip-components=1', '-f', packed().tarball])
  linkCommands(folder, 'marketplace-webhooks')
  for (const name of new Set([...Object.keys(packageJson(installed).dependencies), ...packages])) {
    linkPackage(folder, name)
    linkCommands(folder, name)
  }
  linkPackage(folder, '@types')

  function write(path: string, text: string) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  write('package.json', JSON.stringify({ name: 'app', private: true, type: 'module' }))

  function run(command: string, args: string[], env: Record<string, string> = {}): Promise<Result> {
    return new Promise((resolve) => {
      const options = { cwd: folder, env: { ...process.env, NODE_OPTIONS: '', ...env }, timeout: 120_000 }
      execFile(command, args, options, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
      )
    })
  }
  const node: Project['node'] = (args, env) => run(process.execPath, args, env)

  return {
    folder,
    write,
    node,
    npm: (args, env) => run('npm', args, env),
    npx: (args) => run('npx', ['--no-install', ...args], { npm_config_loglevel: 'error' }),
    tsx: (file, env) => node(['--import', pathToFileURL(require.resolve('tsx')).href, file], env),
    tsc(files, given, typescript = join(DEPENDENCIES, 'typescript')) {
      const compilerOptions = { ...STRICT, ...given, noEmit: true }
      write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
      return node([join(typescript, 'bin', 'tsc'), '-p', 'tsconfig.json'])
    },
  }
}

function linkPackage(folder: string, name: string) {
  const link = join(folder, 'node_modules', name)
  if (!existsSync(join(DEPENDENCIES, name))) throw new Error(`${name} is not installed`)
  mkdirSync(dirname(link), { recursive: true })
  symlinkSync(join(DEPENDENCIES, name), link)
}

/** Links the programs of a package, as npm does. */
function linkCommands(folder: string, name: string) {
  const installed = join(folder, 'node_modules', name)
  const links = join(folder, 'node_modules', '.bin')
  mkdirSync(links, { recursive: true })
  const { bin = {} } = packageJson(installed)
  const programs = typeof bin === 'string' ? { [basename(name)]: bin } : bin
  for (const [command, file] of Object.entries(programs)) {
    const program = join(installed, file)
    chmodSync(program, 0o755)
    symlinkSync(program, join(links, command))
  }
}

function packageJson(folder: string): {
  dependencies: Record<string, string>
  bin?: string | Record<string, string>
} {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

const STRICT = {
  target: 'es2022',
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  esModuleInterop: true,
}

function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
