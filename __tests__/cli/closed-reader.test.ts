import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { requireBuild } from '../package/installed-package.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { CLI, jsonLines, runCliHere, settingsFor } from '../support/processes/cli.js'
import { NUMBERS } from '../support/scenes/many-subscriptions.js'

const NOBODY = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' }

describe('a command whose reader closes stdout early, as `head` does', () => {
  it.each([
    ['each line is valid', 300, ',b1', 0],
    ['no line is valid', 0, ',', 1],
  ] as const)('imports all lines, and ends with its own code: %s', async (_which, stored, end, code) => {
    const env = await emptyStore()
    const lines = Array.from({ length: 300 }, (_, i) => `s${i}${end}`)
    const file = join(temporaryFolder(), 'customers.csv')
    writeFileSync(file, ['subscription_uid,business_uid', ...lines].join('\n'))
    expect(await withoutReader(['import', file, '--no-wait', '--json'], env)).toEqual({ code, stderr: '' })
    const { stdout } = await runCliHere(['subscriptions', 'list', '--limit', '1000', '--json'], { env })
    expect(jsonLines(stdout)).toHaveLength(stored)
  })

  it('fails as doctor if a check fails afterwards', async () => {
    const env = await emptyStore()
    // The first check, of the settings, succeeds.
    expect(await withoutReader(['doctor'], env)).toEqual({ code: 1, stderr: '' })
  })

  it('answers no with 1', async () => {
    const env = await emptyStore()
    expect(await withoutReader(['explain', 'nobody'], env)).toMatchObject({ code: 1 })
  })

  it.each([
    ['subscriptions', 'list', '--csv'],
    ['export', 'b1'],
  ])('ends with 0 before it has read all, if it only lists: %s %s', async (...args) => {
    const env = await emptyStore()
    const { sql, store } = await openStoreWithSql(env.MARKETPLACE_STORE as string)
    await sql(`insert into subscriptions (subscription_uid, business_uid, record, generation, settled_generation, urgency,
      unread, verifying, lapses, created_at)
      ${NUMBERS(20_000)} select 's' || (100000 + n), 'b1', case when n = 20000 then '{"broken' end, 0, 0, 4, 1, 0, 0, 1 from numbers`)
    await store.close()
    expect(await withoutReader(args, env)).toEqual({ code: 0, stderr: '' })
    // To its end it cannot be read.
    expect(await runCliHere(args, { env })).not.toMatchObject({ code: 0 })
  })

  it('ends if it follows what happens: dev', async () => {
    expect(await withoutReader(['dev', '--port', '0'], {})).toMatchObject({ code: 0 })
  })
})

async function emptyStore(): Promise<Record<string, string>> {
  const env = settingsFor(NOBODY, `sqlite:${join(temporaryFolder(), 'marketplace.db')}`)
  await runCliHere(['migrate'], { env })
  return env
}

/** Runs the built command line. Nobody reads its stdout: each write there fails with EPIPE. */
async function withoutReader(args: readonly string[], env: Record<string, string>) {
  requireBuild()
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { PATH: process.env.PATH, ...env },
    cwd: temporaryFolder(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  onCleanUp(async () => void child.kill('SIGKILL'))
  const [code] = await once(child, 'close')
  return { code, stderr }
}
