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
  const { packages, recipe, files = {}, builds, environments = [{}] } = app
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
  // Nest's decorators need this. Next writes its own.
  if (!builds) write('tsconfig.json', JSON.stringify({ compilerOptions: { experimentalDecorators: true } }))
  for (const file of ['scene.mjs', 'spellings.cjs', 'visits.mjs'])
    copyFileSync(join(root, 'consumers', file), join(folder, file))
  const { unnamed, named } = codeOf(recipe)
  const { [app.server]: server, ...others } = named
  for (const [path, text] of Object.entries({ ...files, ...others })) write(path, text)
  write('app.ts', programOf(app, unnamed ?? server))

  const installed = run(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'])
  if (installed.status !== 0) return `${installed.stdout}${installed.stderr}`
  if (builds) {
    const built = run(folder, 'npx', ['--no-install', ...builds], { NEXT_TELEMETRY_DISABLED: '1' })
    if (built.status !== 0) return `${built.stdout}${built.stderr}`
  }
  for (const environment of environments) {
    const { stdout, stderr } = run(folder, process.execPath, ['--import', 'tsx', 'app.ts'], {
      SESSION_SECRET: 'not-a-real-secret-for-the-sessions-of-this-test',
      PORT: '0',
      NEXT_TELEMETRY_DISABLED: '1',
      ...environment,
    })
    const seen = stdout.trim().split('\n').at(-1)
    if (seen !== JSON.stringify(EXPECTED)) return `${name} ${JSON.stringify(environment)}: ${stdout}${stderr}`
  }
  return undefined
}

/** The program: the scene, the recipe, the sign-in, and the visits. */
function programOf({ before = '', signIn, code, server, paid, pages }, recipe) {
  const [first, rest] = signIn ? recipe.split(signIn.before) : [recipe]
  const where = JSON.stringify({ paid, pages })
  return [
    server
      ? "import { options } from './scene.mjs'"
      : `import { createMarketplace } from 'marketplace-webhooks'
import { options } from './scene.mjs'
const marketplace = createMarketplace(options)
await marketplace.start()`,
    "import { visitApp } from './visits.mjs'",
    ...[before, first, ...(signIn ? [signIn.code, signIn.before, rest] : []), code],
    `await visitApp(marketplace, port, ${where})`,
  ].join('\n')
}

function run(cwd, command, args, more = {}) {
  const { NODE_OPTIONS: _, ...env } = process.env
  return spawnSync(command, args, { cwd, env: { ...env, ...more }, encoding: 'utf8', timeout: 300_000 })
}

/** The blocks of code below a heading of docs/recipes.md: those that begin with the name of a file, and the other one. */
function codeOf(heading) {
  const text = readFileSync(join(root, 'docs', 'recipes.md'), 'utf8')
  const section = text.split(/^(?=## )/m).find((each) => each.startsWith(`## ${heading}\n`)) ?? ''
  const blocks = [...section.matchAll(/^```tsx?[^\n]*\n([\s\S]*?)^```/gm)].map(([, code]) => code)
  if (blocks.length === 0) throw new Error(`docs/recipes.md has no code below ${heading}`)
  const nameOf = (code) => /^\/\/ ([\w./-]+\.tsx?)$/m.exec(code.split('\n')[0])?.[1]
  return {
    unnamed: blocks.find((code) => !nameOf(code)),
    named: Object.fromEntries(blocks.filter(nameOf).map((code) => [nameOf(code), code])),
  }
}
