/**
 * Runs the tests on other versions of Node, which npm installs as packages:
 *
 *   npm run test:nodes                                        the whole suite on 20, 22, 24 and the newest
 *   npm run test:nodes -- 22,26                               on these
 *   npm run test:nodes -- 24 __tests__/store/store.test.ts          only these files; jest gets all further arguments
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const [versions = '20,22,24,latest', ...jest] = process.argv.slice(2)
const failed = []

for (const version of versions.split(',')) {
  const folder = mkdtempSync(join(tmpdir(), 'marketplace-node-'))
  try {
    if (!testOn(version, folder)) failed.push(version)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
console.log(`${versions.split(',').length - failed.length} passed, ${failed.length} failed`)
process.exit(failed.length === 0 ? 0 : 1)

function testOn(version, folder) {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }))
  const wanted = `node-${process.platform}-${process.arch}@${version}`
  const installed = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', wanted], {
    cwd: folder,
    stdio: 'inherit',
  })
  if (installed.status !== 0) return false
  const bin = join(folder, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin')
  const node = join(bin, 'node')
  const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
  console.log(`Node ${stdout.trim()}`)
  // First in the path too, because tests start programs of their own.
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` }
  const program = join(root, 'node_modules', 'jest', 'bin', 'jest.js')
  return spawnSync(node, [program, ...jest], { cwd: root, env, stdio: 'inherit' }).status === 0
}
