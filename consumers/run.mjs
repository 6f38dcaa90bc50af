/**
 * Installs the packed package beside each framework, in a folder of its own, and tests the app over HTTP: `npm run
 * test:consumers`, or `npm run test:consumers -- Fastify` for one. It downloads the frameworks, so `npm test` leaves it
 * out.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { APPS } from './apps.mjs'
import { AFTER, BEFORE, EXPECTED } from './drive.mjs'

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
function drive(name, { packages, before = '', recipe, code }, tarball) {
  const folder = mkdtempSync(join(work, 'app-'))
  const dependencies = {
    'marketplace-webhooks': `file:${tarball}`,
    libsql: '>=0.5.0',
    tsx: '^4.0.0',
    ...packages,
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'app', type: 'module', dependencies }))
  // Nest's decorators need this.
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { experimentalDecorators: true } }),
  )
  writeFileSync(
    join(folder, 'app.ts'),
    [before, BEFORE, recipe ? codeOf(recipe) : '', code, AFTER].join('\n'),
  )
  const installed = run(folder, 'npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'])
  if (installed.status !== 0) return `${installed.stdout}${installed.stderr}`
  const { stdout, stderr } = run(folder, process.execPath, ['--import', 'tsx', 'app.ts'])
  const seen = stdout.trim().split('\n').at(-1)
  return seen === JSON.stringify(EXPECTED) ? undefined : `${name}: ${stdout}${stderr}`
}

function run(cwd, command, args) {
  const { NODE_OPTIONS: _, ...env } = process.env
  return spawnSync(command, args, { cwd, env, encoding: 'utf8', timeout: 300_000 })
}

/** The block of code below a heading of docs/recipes.md. */
function codeOf(heading) {
  const text = readFileSync(join(root, 'docs', 'recipes.md'), 'utf8')
  const [, block] =
    new RegExp(`^## ${heading}\\n[^#]*?\`\`\`ts[^\\n]*\\n([\\s\\S]*?)^\`\`\``, 'm').exec(text) ?? []
  if (block === undefined) throw new Error(`docs/recipes.md has no code below ${heading}`)
  return block
}
