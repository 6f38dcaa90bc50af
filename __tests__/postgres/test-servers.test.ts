import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { onCleanUp } from '../support/clean-up.js'
import { EVAL_TYPESCRIPT } from '../support/processes/processes.js'
import { until } from '../support/until.js'

describe('PostgreSQL for tests', () => {
  it('ends and leaves no file when the process that started it is killed', async () => {
    const { process, port, data } = await startInOtherProcess()
    const files = () => [data, ...installationsOf(process)].filter((path) => existsSync(path))
    expect([await isListening(port), files().length]).toEqual([true, 3])
    process.kill('SIGKILL')
    await until('the server is gone', async () => !(await isListening(port)))
    await until('its files are gone', () => files().length === 0)
  })
})

/** Starts a process with a server that the process will not close. */
async function startInOtherProcess(): Promise<{ process: ChildProcess; port: number; data: string }> {
  // Hooks belong to Jest, which does not run there.
  const script = `
    const id = require.resolve('@jest/globals')
    require.cache[id] = { id, loaded: true, exports: { afterEach() {}, afterAll() {} } }
    const { startPostgres } = require(${JSON.stringify(join(__dirname, '../support/engines/postgres.ts'))})
    startPostgres({ lives: 'file' })
      .then(({ port, sql }) => Promise.all([port, sql('show data_directory')]))
      .then(([port, [row]]) => process.stdout.write(JSON.stringify({ port, data: row.data_directory })))
    setInterval(() => {}, 1_000)`
  const child = spawn(process.execPath, [...EVAL_TYPESCRIPT, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onCleanUp(() => child.kill('SIGKILL'))
  const output = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (chunk) => resolve(String(chunk)))
    child.once('exit', () => reject(new Error('it ended by itself')))
  })
  const { port, data } = JSON.parse(output) as { port: number; data: string }
  return { process: child, port, data }
}

/** The folders of PostgreSQL that belong to the process. */
function installationsOf({ pid }: ChildProcess): string[] {
  const roots = new Set(['/dev/shm', '/tmp', '/var/tmp', tmpdir()].filter((root) => existsSync(root)))
  return [...roots].flatMap((root) =>
    readdirSync(root)
      .filter((name) => name.startsWith(`marketplace-postgres-${pid}-`))
      .map((name) => join(root, name)),
  )
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
