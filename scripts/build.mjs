/**
 * Builds the package into `dist`: `lib` as CommonJS, which every import of a supported Node can load (docs/decisions/one-build.md), with the
 * declarations that the entries reach; the command line as one ES module; and the demo.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import './build-console-page.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
const lib = join(dist, 'lib')

rmSync(dist, { recursive: true, force: true })
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
if (status !== 0) process.exit(1)

const entries = ['index', 'testing/index', 'console/index'].map((entry) => join(lib, `${entry}.d.ts`))
const reached = declarationsReached(entries)
for (const file of readdirSync(lib, { recursive: true, encoding: 'utf8' }).map((file) => join(lib, file)))
  if (file.endsWith('.d.ts') && !reached.has(file)) rmSync(file)

const { buildCommand } = await import('./build-command.mjs')
chmodSync(await buildCommand(root), 0o755)
await import('./build-demo.mjs')
// The last file of a build: tests compare its date with those of the sources.
writeFileSync(join(lib, 'package.json'), '{"type":"commonjs"}\n')

/** The declarations, and all that they import. */
function declarationsReached(entries) {
  const reached = new Set(entries)
  for (const file of reached)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.js['"]/g))
      reached.add(join(dirname(file), `${path}.d.ts`))
  return reached
}
