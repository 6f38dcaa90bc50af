/**
 * Installs the packed package beside each framework, in a folder of its own, and tests the app over HTTP: `npm run
 * test:consumers`, or `npm run test:consumers -- Fastify` for one. It downloads the frameworks, so `npm test` leaves it
 * out.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { APPS } from './apps.mjs'
import { EXPECTED } from './expected.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const asked = process.argv.slice(2)
const names = asked.length > 0 ? asked : Object.keys(APPS)
const work = mkdtempSync(join(tmpdir(), 'marketplace-consumers-'))
let failed = 0

try {
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', work], { cwd: root }),
  )
  for (const name of names) {
    const complaint = drive(name, APPS[name], join(work, filename))
    if (complaint !== undefined) failed++
    console.log(complaint === undefined ? `passed  ${name}` : `failed  ${name}\n${complaint}`)
  }
} finally {
  rmSync(work, { recursive: true, force: true })
}
console.log(`${names.length - failed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)

/** Undefined if the app passed all checks. */
function drive(name, app, tarball) {
  const { packages, page = 'docs/recipes.md', section, edits = [], files = {}, builds } = app
  const { tsconfig = {}, entry = 'app.ts', environments = [{}], paid, pages } = app
  const folder = mkdtempSync(join(work, 'app-'))
  const write = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const dependencies = {
    'marketplace-webhooks': `file:${tarball}`,
    libsql: '>=0.5.0',
    tsx: '^4.0.0',
    ...packages,
  }
  write('package.json', JSON.stringify({ name: 'app', type: 'module', dependencies }))
  // Nest's decorators need the default. Next completes its own.
  write(
    'tsconfig.json',
    JSON.stringify({ compilerOptions: builds ? tsconfig : { experimentalDecorators: true } }),
  )
  for (const file of ['scene.mjs', 'spellings.cjs', 'visits.mjs'])
    copyFileSync(join(root, 'consumers', file), join(folder, file))
  const { 'options.ts': options, 'marketplace.ts': marketplace } = filesOf(
    'docs/quickstart.md',
    'In your app',
  )
  const { 'paid.ts': paidStatus } = filesOf('docs/recipes.md', 'In front of any server')
  const programs = {
    ...files,
    'options.ts': options,
    'marketplace.ts': marketplace,
    'paid.ts': paidStatus,
    ...filesOf(page, section),
  }
  programs[entry] = edits.reduce(edited, programs[entry])
  for (const [path, text] of Object.entries(programs)) write(path, text)

  const installed = run(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'])
  if (installed.status !== 0) return `${installed.stdout}${installed.stderr}`
  if (builds) {
    const built = run(folder, 'npx', ['--no-install', ...builds], { NEXT_TELEMETRY_DISABLED: '1' })
    if (built.status !== 0) return `${built.stdout}${built.stderr}`
  }
  for (const environment of environments) {
    rmSync(join(folder, 'marketplace.db'), { force: true })
    const given = JSON.stringify({ entry, names: settingNames(), paid, pages })
    const { stdout, stderr } = run(folder, process.execPath, ['visits.mjs', given], {
      SESSION_SECRET: 'not-a-real-secret-for-the-sessions-of-this-test',
      NEXT_TELEMETRY_DISABLED: '1',
      ...environment,
    })
    const seen = stdout.trim().split('\n').at(-1)
    if (seen !== JSON.stringify(EXPECTED)) return `${name} ${JSON.stringify(environment)}: ${stdout}${stderr}`
  }
  return undefined
}

function run(cwd, command, args, more = {}) {
  const { NODE_OPTIONS: _, ...env } = process.env
  return spawnSync(command, args, { cwd, env: { ...env, ...more }, encoding: 'utf8', timeout: 300_000 })
}

function edited(code, [from, to]) {
  if (!code.includes(from)) throw new Error(`the page has no ${from}`)
  return code.replace(from, () => to)
}

/** The blocks of code below a heading, by the name in their first line. One without a name is `app.ts`. */
function filesOf(page, heading) {
  const blocks = [...sectionOf(page, heading).matchAll(/^```tsx?[^\n]*\n([\s\S]*?)^```/gm)]
  if (blocks.length === 0) throw new Error(`${page} has no code below ${heading}`)
  const nameOf = (code) => /^\/\/ ([\w./-]+\.tsx?)$/m.exec(code.split('\n')[0])?.[1] ?? 'app.ts'
  return Object.fromEntries(blocks.map(([, code]) => [nameOf(code), code]))
}

/** The names of the settings in the `.env` of the quickstart. */
function settingNames() {
  const [, env = ''] =
    /^```sh\n(MARKETPLACE_[\s\S]*?)^```/m.exec(sectionOf('docs/quickstart.md', 'In your app')) ?? []
  return [...env.matchAll(/^(\w+)=/gm)].map(([, name]) => name)
}

function sectionOf(page, heading) {
  const text = readFileSync(join(root, page), 'utf8')
  return text.split(/^(?=## )/m).find((each) => each.startsWith(`## ${heading}\n`)) ?? ''
}
