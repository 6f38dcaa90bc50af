import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { PLACES } from '../../example-app/demo/code-pieces.js'
import { forWholeFile } from '../support/clean-up.js'
import { linksOf } from '../support/docs/pages.js'
import { hasNodeSqlite } from '../support/engines/sqlite-drivers.js'
import { createProject, type Project, packed } from './installed-package.js'

const ROOT = join(__dirname, '..', '..')

/** What is shipped: the kinds of files, the most files of each, and their most KiB together. Raise a bound only on purpose. */
const SHIPPED: [files: RegExp, most: number, kib: number][] = [
  [/^dist\/lib\/.*\.js$/, 270, 1_400],
  [/^dist\/lib\/.*\.d\.ts$/, 120, 420],
  [/^dist\/lib\/package\.json$/, 1, 1],
  [/^dist\/cli\/main\.js$/, 1, 150],
  [/^dist\/demo\/([\w-]+|demo\/[\w-]+|demo\/page\/[\w-]+)\.(js|ts|css|html|svg)$/, 50, 150],
  [/^docs\/[\w-]+\.(md|json|svg|yml)$/, 36, 280],
  [/^docs\/api\/[\w-]+\.md$/, 4, 240],
  [/^examples\/[\w-]+\/[\w.-]+\.(js|ts|json|md)$/, 30, 60],
  [/^(AGENTS|CHANGELOG|README|SECURITY)\.md$|^(LICENSE|THIRD-PARTY-LICENSES|package\.json)$/, 7, 50],
]

/** What stands at the top of the package, and the entry points in it. */
const TOP = [
  'AGENTS.md',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'THIRD-PARTY-LICENSES',
  'dist',
  'docs',
  'examples',
  'package.json',
]
const ENTRIES = {
  exports: {
    '.': './dist/lib/index.js',
    './testing': './dist/lib/testing/index.js',
    './console': './dist/lib/console/index.js',
    './package.json': './package.json',
  },
  bin: { 'marketplace-webhooks': 'dist/cli/main.js' },
}

/** What contributors need. npm shows such a link, and the picture of the README, from the repository. */
const IN_THE_REPOSITORY =
  /^(ARCHITECTURE|CONTRIBUTING)\.md$|^docs\/decisions\/|^__tests__\/|^docs\/screenshot\.png$/

/** The sources of which the page of the demo shows pieces. */
const SHOWN_IN_THE_DEMO = [
  ...new Set(Object.values(PLACES).flatMap((places) => places.map(([, file]) => file))),
]

describe('the packed package', () => {
  const { files, tarball } = packed()

  it('contains files of these kinds only, and no more of each than stated', () => {
    const kinds = SHIPPED.map(([pattern, most, mostKib]) => {
      const found = files.filter((file) => pattern.test(file))
      const kib = found.reduce((sum, file) => sum + statSync(join(ROOT, file)).size, 0) / 1024
      return { kind: String(pattern), fits: found.length > 0 && found.length <= most && kib <= mostKib }
    })
    expect(kinds.filter(({ fits }) => !fits)).toEqual([])
    expect(files.filter((file) => !SHIPPED.some(([pattern]) => pattern.test(file)))).toEqual([])
  })

  it('has exactly these files and folders at its top, and these entry points', () => {
    expect([...new Set(files.map((file) => file.replace(/\/.*/, '')))].sort()).toEqual(TOP)
    const { exports, bin } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect({ exports, bin }).toEqual(ENTRIES)
    const entries = [...Object.values(ENTRIES.exports), ...Object.values(ENTRIES.bin)]
    expect(entries.filter((entry) => !files.includes(entry.replace('./', '')))).toEqual([])
  })

  it('contains every module of lib, the command line, the demo, the pages and the examples', () => {
    const sources = filesIn('lib')
      .filter((file) => file.endsWith('.ts') && !/^lib\/(cli|console\/page)\//.test(file))
      .map((file) => `dist/${file.replace(/\.ts$/, '.js')}`)
    const demo = filesIn('example-app')
      .filter((file) => file.endsWith('.ts') || file.includes('/demo/page/'))
      .map((file) => file.replace(/\.ts$/, '.js'))
    const shown = SHOWN_IN_THE_DEMO.map((file) => `example-app/${file}`)
    const ofDemo = [...demo, ...shown].map((file) => file.replace('example-app/', 'dist/demo/'))
    const pages = filesIn('docs').filter((file) => file.endsWith('.md') && !file.includes('/decisions/'))
    const needed = [...sources, 'dist/cli/main.js', ...ofDemo, ...pages, ...filesIn('examples')]
    expect(needed.filter((file) => !files.includes(file))).toEqual([])
  })

  it('links its pages to files that it contains, and otherwise only to what is for a clone of the repository', () => {
    const pages = files.filter((file) => file.endsWith('.md'))
    const links = pages.flatMap((page) =>
      linksOf(readFileSync(join(ROOT, page), 'utf8'))
        .filter((link) => !/^(https?:|#)/.test(link))
        .map((link) => join(dirname(page), link.replace(/#.*/, '')).replaceAll('\\', '/')),
    )
    expect(links.length).toBeGreaterThan(100)
    expect(links.filter((link) => !files.includes(link) && !IN_THE_REPOSITORY.test(link))).toEqual([])
  })

  it('passes publint without an error or a warning', () => {
    const report = run('publint', [tarball, '--strict'])
    expect(report).toContain('All good!')
  })

  it('is resolved with the right types by every kind of import', () => {
    // attw fails by its exit code; it runs without a network and a spinner.
    const report = run('attw', [tarball, '--format', 'json'])
    expect(JSON.parse(report).problems).toEqual({})
  })
})

describe('an app that has installed the package', () => {
  let project: Project

  beforeAll(async () => {
    project = await forWholeFile(async () => createProject())
  })

  it('imports it as an ES module', async () => {
    project.write(
      'esm.mjs',
      `import { createMarketplace } from 'marketplace-webhooks'
import { createSimulator } from 'marketplace-webhooks/testing'
${STORY}`,
    )
    expect(await project.node(['esm.mjs'])).toMatchObject({ code: 0, stdout: 'false true\n' })
  })

  it('requires it as CommonJS', async () => {
    project.write(
      'cjs.cjs',
      `const { createMarketplace } = require('marketplace-webhooks')
const { createSimulator } = require('marketplace-webhooks/testing')
${STORY}`,
    )
    expect(await project.node(['cjs.cjs'])).toMatchObject({ code: 0, stdout: 'false true\n' })
  })

  it('gets the same exports by `import` and by `require`', async () => {
    project.write('exports.mjs', EXPORTS)
    const { code, stdout, stderr } = await project.node(['exports.mjs'])
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'true true true\n', stderr: '' })
  })

  it('loads the code of a database only when a store of it is opened', async () => {
    project.write('loaded.cjs', LOADED)
    const [sqlite, postgres] = await Promise.all(
      ['sqlite::memory:', 'postgres://127.0.0.1:1/none'].map((store) => project.node(['loaded.cjs', store])),
    )
    // PostgreSQL's part is the SQL of `grants`, which needs no database.
    expect(sqlite).toMatchObject({ code: 0, stdout: 'postgres/rights.js, then sqlite\n' })
    expect(postgres).toMatchObject({ code: 0, stdout: 'postgres/rights.js, then postgres\n' })
  })

  it('serves the console, as an ES module, as CommonJS, and bundled', async () => {
    const names = ['express', 'createMarketplace', 'consoleRouter']
    const from = ['express', 'marketplace-webhooks', 'marketplace-webhooks/console']
    const imports = names.map((name, i) => `import ${i === 0 ? name : `{ ${name} }`} from '${from[i]}'`)
    const requires = names.map((name, i) => `const ${i === 0 ? name : `{ ${name} }`} = require('${from[i]}')`)
    project.write('console.mjs', `${imports.join('\n')}\n${CONSOLE}`)
    project.write('console.cjs', `${requires.join('\n')}\n${CONSOLE}`)
    project.write(
      'bundle-console.cjs',
      `require(${JSON.stringify(require.resolve('esbuild'))}).buildSync({ entryPoints: ['console.mjs'],
        outfile: 'console-bundled.cjs', bundle: true, platform: 'node', format: 'cjs', logLevel: 'error' })`,
    )
    expect(await project.node(['bundle-console.cjs'])).toMatchObject({ code: 0, stderr: '' })
    for (const file of ['console.mjs', 'console.cjs', 'console-bundled.cjs'])
      expect([file, await project.node([file])]).toMatchObject([file, { code: 0, stdout: 'true a\n' }])
  })

  describe('C30 and is bundled', () => {
    // Each bundler runs in a process of its own: inside jest's process, esbuild does not recognise its own kind of
    // bytes.
    const bundlers = {
      esbuild: `require(esbuild).buildSync({ entryPoints: ['entry.mjs'], outfile: 'esbuild.cjs', bundle: true,
        platform: 'node', format: 'cjs', logLevel: 'error' })`,
      webpack: `require(webpack)({ mode: 'none', target: 'node20', context: process.cwd(), entry: './entry.mjs',
        output: { path: process.cwd(), filename: 'webpack.cjs' } }, (error, stats) => {
          if (error || stats.hasErrors()) throw error || new Error(stats.toString())
        })`,
    }

    for (const [name, code] of Object.entries(bundlers)) {
      const whenInstalled = isInstalled(name) ? it : it.skip
      whenInstalled(
        `by ${name}: it loads the driver that is installed`,
        async () => {
          project.write('entry.mjs', BUNDLED)
          project.write('bundle.cjs', `const ${name} = ${JSON.stringify(require.resolve(name))}\n${code}`)
          expect(await project.node(['bundle.cjs'])).toMatchObject({ code: 0, stderr: '' })
          expect(await project.node([`${name}.cjs`])).toMatchObject({
            code: 0,
            stdout: 'false true Cannot open PostgreSQL: `npm install pg`\n',
          })
        },
        120_000,
      )
    }
  })

  it('plays its demo by npx, and names the line that installs it', async () => {
    const { code, stdout, stderr } = await project.npx(['marketplace-webhooks', 'demo', '--once'])
    expect({ code, last: stdout.trimEnd().split('\n').at(-1) }).toEqual({
      code: 0,
      last: expect.stringMatching(/^(\d+) of \1 decisions were right$/),
    })
    expect(stderr).toContain(`npm install marketplace-webhooks express${hasNodeSqlite ? '' : ' libsql'}\n`)
  }, 240_000)

  it('says what the demo needs where Node has no SQLite, without a stack', async () => {
    project.write(
      'no-sqlite.mjs',
      `import Module from 'node:module'
const { getBuiltinModule } = process
process.getBuiltinModule = (name) => (name === 'node:sqlite' ? undefined : getBuiltinModule?.(name))
const load = Module._load
Module._load = (name, ...more) => load(name === 'libsql' ? 'no-libsql' : name, ...more)`,
    )
    const command = join('node_modules', '.bin', 'marketplace-webhooks')
    const { code, stdout, stderr } = await project.node(['--import', './no-sqlite.mjs', command, 'demo'])
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toMatch(
      /^error: Cannot open SQLite: use Node 22\.13 or newer, or `npm install libsql` .*\n$/,
    )
  })

  it('runs its command by npx, which asks the app in its folder', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect(await project.npx(['marketplace-webhooks', '--version'])).toEqual({
      code: 0,
      stdout: `${version}\n`,
      stderr: '',
    })
    project.write('options.mjs', COMMAND_OPTIONS)
    const command = [
      join('node_modules', '.bin', 'marketplace-webhooks'),
      '--config',
      'options.mjs',
      '--json',
    ]
    expect(await project.node([...command, 'migrate'])).toMatchObject({ code: 0 })
    const { code, stdout } = await project.node([...command, 'explain', 'business-1'])
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 1, reason: 'unknown_business' })
  })

  it('cannot import its inner files', async () => {
    project.write('inside.mjs', "import 'marketplace-webhooks/dist/lib/options.js'")
    const { stderr } = await project.node(['inside.mjs'])
    expect(stderr).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED')
  })
})

const OPTIONS = `{
  app: { clientId: 'my-app', clientSecret: 'my-client-secret', purchasableUid: 'my-item' },
  platform: { baseUrl, authUrl },
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
  store: 'sqlite::memory:',
}`

const COMMAND_OPTIONS = `
const [baseUrl, authUrl] = ['http://127.0.0.1:1', 'http://127.0.0.1:2']
export default ${OPTIONS.replace('sqlite::memory:', 'sqlite:command.db')}`

/** A purchase on the simulated platform and its answer, without an HTTP server of the app. */
const STORY = `
async function main() {
  const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
  const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
  const { baseUrl, authUrl } = await platform.start()
  const options = ${OPTIONS}
  const marketplace = createMarketplace(options)
  const before = await marketplace.isEntitled('business-1')
  const { uid } = platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
  await marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: 'business-1' })
  console.log(before, await marketplace.isEntitled('business-1'))
  await marketplace.close()
  await platform.close()
}
main()`

/** A page and a call of the console, served by an app. */
const CONSOLE = `
async function main() {
  const marketplace = createMarketplace(${OPTIONS.replaceAll(/(baseUrl|authUrl)/g, "$1: 'http://127.0.0.1:1'")})
  const app = express().use('/ops', consoleRouter(marketplace, { authorize: () => ({ name: 'a', role: 'support' }) }))
  const server = app.listen(0, async () => {
    const url = 'http://127.0.0.1:' + server.address().port + '/ops'
    const page = await (await fetch(url)).text()
    const session = await (await fetch(url + '/call/session')).json()
    console.log(/<script type="module">.{10000}/s.test(page), session.person.name)
    server.close()
    await marketplace.close()
  })
}
main()`

/** Prints for each entry whether a name is the same object both ways. */
const EXPORTS = `
import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)
const same = await Promise.all(['', '/testing', '/console'].map(async (entry) => {
  const imported = await import('marketplace-webhooks' + entry)
  const required = require('marketplace-webhooks' + entry)
  const names = Object.keys(required)
  return names.length > 0 && names.every((name) => name in imported && imported[name] === required[name])
}))
console.log(...same)`

const LOADED = `
const { createMarketplace } = require('marketplace-webhooks')
const loaded = () => Object.keys(require.cache).flatMap((file) => /dist.lib.((sqlite|postgres).+)/.exec(file)?.[1] ?? [])
const before = loaded()
const marketplace = createMarketplace({ ...${OPTIONS.replaceAll(/(baseUrl|authUrl)/g, "$1: 'http://127.0.0.1:1'")}, store: process.argv[2] })
marketplace.start().catch(() => {}).then(async () => {
  const since = loaded().filter((file) => !before.includes(file)).map((file) => file.split(/[\\\\/]/)[0])
  console.log(before.join() + ', then ' + [...new Set(since)].join())
  await marketplace.close()
})`

/** Uses a database file, a driver, and a backup that runs on a thread; then the error without pg. */
const BUNDLED = `
import { createMarketplace, postgresStore } from 'marketplace-webhooks'
import { createSimulator } from 'marketplace-webhooks/testing'
import { rmSync } from 'node:fs'
for (const file of ['bundled.db', 'bundled.backup.db']) rmSync(file, { force: true })
${STORY.replace('sqlite::memory:', 'sqlite:bundled.db').replace(
  "console.log(before, await marketplace.isEntitled('business-1'))",
  `const after = await marketplace.isEntitled('business-1')
  await marketplace.backup('bundled.backup.db')
  const onPostgres = createMarketplace({ ...options, store: postgresStore({ connectionString: 'postgres://127.0.0.1:1/none' }) })
  const why = await onPostgres.start().catch((error) => error.message)
  await onPostgres.close()
  console.log(before, after, why)`,
)}`

function filesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
}

function isInstalled(name: string): boolean {
  try {
    require.resolve(name)
    return true
  } catch {
    return false
  }
}

function run(command: string, args: string[]): string {
  const binary = join(ROOT, 'node_modules', '.bin', command)
  try {
    return execFileSync(binary, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`${command} ${args.join(' ')}\n${stdout}${stderr}`)
  }
}
