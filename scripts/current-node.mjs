/**
 * Installs a Node with `node:sqlite` for `__tests__/sqlite/current-node.test.ts`, if this Node has none. Runs after `npm ci`, as a part of
 * the script `dependencies`.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

if (!process.getBuiltinModule?.('node:sqlite')) {
  const cwd = fileURLToPath(new URL('../__tests__/sqlite/current-node', import.meta.url))
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  // Without it only that test fails, with what to do.
  const { status } = spawnSync('npm', args, { cwd, stdio: 'inherit' })
  if (status !== 0) console.warn('Cannot install the Node of __tests__/sqlite/current-node')
}
