import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { temporaryFolder } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { jsonLines, runCli, runCliHere, settingsFor } from '../support/processes/cli.js'
import { dumpOf, load, query } from '../support/releases/load.js'
import { RELEASE_ADDRESSES, RELEASE_APP } from '../support/releases/platform.js'

const NOWHERE = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' }
const LINES = 'subscription_uid,business_uid\ns1,b1\n'

/** Every command that uses the database, except those that may create one. */
const COMMANDS: [command: string, ...args: string[]][] = [
  ['explain', 'b1'],
  ['history', 'b1'],
  ['refresh', 'b1', '--wait', '0'],
  ['refresh', '--all'],
  ['track', 's1', '--business', 'b1'],
  ['import', '-'],
  ['import', '-', '--dry-run'],
  ['import', '-', '--no-wait'],
  ['subscriptions', 'list'],
  ['journal', 'list'],
  ['journal', 'show', 'an-id'],
  ['journal', 'export', '--fixture', 'an-id'],
  ['platform-report'],
  ['journal', 'replay', 'an-id'],
  ['journal', 'replay', '--dead'],
  ['journal', 'replay', '--dead', '--dry-run'],
  ['backup', join(temporaryFolder(), 'backup.db')],
  ['export', 'b1'],
  ['erase', 'b1', '--yes', 'b1'],
]

describe.each(ENGINE_NAMES)('K457 a command on an empty database on %s', (name) => {
  const engine = useEngine(name)

  /** The database exists, and has one table of another program. */
  async function foreign() {
    const address = await engine.freshAddress()
    await query(address, 'create table subscriptions (a integer)', name === 'SQLite' ? '' : 'public')
    return { address, env: settingsFor(NOWHERE, address) }
  }

  it('refuses with 3 and the next step, and makes no tables', async () => {
    const { address, env } = await foreign()
    for (const command of COMMANDS) {
      const { code, stdout, stderr } = await runCliHere([...command, '--json'], { env, input: LINES })
      expect({ command, code, stdout }).toEqual({ command, code: 3, stdout: '' })
      const [shown] = jsonLines<{ error: Record<string, unknown> }>(stderr)
      expect(shown?.error).toEqual({
        code: 'store_missing',
        message: expect.stringMatching(/^There are no tables of this package in /),
        fix: expect.stringMatching(/^Set MARKETPLACE_STORE to the database of the app, or create .* migrate/),
        exitCode: 3,
      })
      expect(stderr).not.toContain(new URL(address).password || 'no password')
    }
    const doctor = await runCliHere(['doctor', '--json'], { env })
    expect(doctor.code).toBe(1)
    expect(jsonLines<{ checks: unknown[] }>(doctor.stdout)[0]?.checks).toContainEqual(
      expect.objectContaining({
        check: 'store',
        text: expect.stringContaining('no tables of this package'),
      }),
    )
    if (name === 'PostgreSQL')
      expect(
        await query(address, `select nspname from pg_namespace where nspname ~ '^marketplace'`, ''),
      ).toEqual([])
    const [last] = COMMANDS.map((command) => command.at(-1)).filter((arg) => arg?.endsWith('backup.db'))
    expect(existsSync(String(last))).toBe(false)
  })

  it('names faults of the settings first, and works after `migrate`', async () => {
    const address = await engine.freshAddress()
    if (name === 'SQLite') writeFileSync(address.slice('sqlite:'.length), '')
    const env = settingsFor(NOWHERE, address)
    expect(await runCliHere(['explain', 'b1'], { env: { ...env, MARKETPLACE_CLIENT_ID: '' } })).toMatchObject(
      {
        code: 2,
      },
    )
    expect(await runCliHere(['explain', 'b1'], { env })).toMatchObject({ code: 3 })
    expect(await runCliHere(['migrate'], { env })).toMatchObject({ code: 0 })
    expect(await runCliHere(['explain', 'b1'], { env })).toMatchObject({ code: 1 })
    expect(await runCliHere(['track', 's1', '--business', 'b1', '--force'], { env })).toMatchObject({
      code: 0,
    })
  })

  it('migrates an older one as before', async () => {
    const address = await engine.freshAddress()
    await load(dumpOf('0.1.0', name), address)
    const env = {
      ...settingsFor(RELEASE_ADDRESSES, address),
      MARKETPLACE_CLIENT_ID: RELEASE_APP.clientId,
      MARKETPLACE_CLIENT_SECRET: RELEASE_APP.clientSecret,
      MARKETPLACE_PURCHASABLE_UID: RELEASE_APP.purchasableUid,
    }
    expect(await runCliHere(['history', 'salon'], { env })).toMatchObject({ code: 0 })
  })

  if (name === 'PostgreSQL')
    it('refuses a mistyped schema of a file with options, and names the file', async () => {
      const address = await engine.freshAddress()
      const env = settingsFor(NOWHERE, address)
      expect(await runCliHere(['migrate'], { env })).toMatchObject({ code: 0 })
      const file = join(temporaryFolder(), 'options.mjs')
      const built = pathToFileURL(join(__dirname, '..', '..', 'dist', 'lib', 'index.js'))
      writeFileSync(
        file,
        `import { postgresStore } from '${built}'
export default {
  app: { clientId: 'app', clientSecret: 'any', purchasableUid: 'item' },
  platform: ${JSON.stringify(NOWHERE)},
  deliverySecrets: ['${env.DELIVERY_SECRETS}'],
  store: postgresStore({ connectionString: '${address}', schema: 'mistyped' }),
}`,
      )
      const { code, stderr } = await runCli(['erase', 'b1', '--yes', 'b1', '--config', file])
      expect({ code, stderr }).toEqual({
        code: 3,
        stderr: expect.stringMatching(/no tables of this package in .*`store` in .*options\.mjs/s),
      })
      expect(await query(address, `select nspname from pg_namespace where nspname = 'mistyped'`, '')).toEqual(
        [],
      )
    })
})
