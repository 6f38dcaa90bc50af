import '../machine/failing-disk.js'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Clock, systemClock } from '../../../lib/base/clock.js'
import type { SqliteDriverName } from '../../../lib/sqlite/drivers.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { onCleanUp, temporaryFolder } from '../clean-up.js'
import { EVAL_TYPESCRIPT } from '../processes/processes.js'

export const hasNodeSqlite = process.getBuiltinModule?.('node:sqlite' as 'node:fs') !== undefined

export const DRIVERS: SqliteDriverName[] = hasNodeSqlite ? ['node:sqlite', 'libsql'] : ['libsql']

/** A store on a file, not opened, with its engine. Closed after the test. */
export function storeAt(path: string, driver?: SqliteDriverName, clock: Clock = systemClock) {
  const engine = createSqliteEngine({ path, clock, ...(driver && { driver }) })
  const store = createSqlStore(engine)
  onCleanUp(async () => {
    await store.close()
    await engine.close()
  })
  return { engine, store }
}

/** The same, open. */
export async function openedAt(...at: Parameters<typeof storeAt>) {
  const made = storeAt(...at)
  await made.store.open()
  return made
}

/** Runs support/sqlite-child.ts on a new file. Returns the lines that it printed. */
export async function child(
  task: string,
  driver: SqliteDriverName,
  under: readonly string[] | ((path: string) => readonly string[]) = [],
) {
  const path = join(temporaryFolder(), 'm.db')
  const script = JSON.stringify(join(__dirname, 'sqlite-child.ts'))
  const [command, ...rest] = [
    ...(typeof under === 'function' ? under(path) : under),
    ...[process.execPath, '--no-warnings', ...EVAL_TYPESCRIPT],
    `process.argv.splice(1, 0, 'eval'); require(${script})`,
    ...[task, path, driver],
  ] as [string, ...string[]]
  const { stdout } = await promisify(execFile)(command, rest, { timeout: 50_000 }).catch((error) => {
    // A task may end by killing its process.
    if (error.signal === 'SIGKILL' || error.code === 137) return error as { stdout: string }
    throw error
  })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}
