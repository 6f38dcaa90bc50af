import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { findSqlite } from '../../lib/sqlite/drivers.js'
import { createProject } from '../package/installed-package.js'
import { temporaryFolder } from '../support/clean-up.js'
import { snippetsOf } from '../support/docs/pages.js'
import { CLI, jsonLines, runCli, runCliHere, settingsFor, startCli } from '../support/processes/cli.js'
import { serve, startPlatform } from '../support/scene.js'
import { until } from '../support/until.js'

const NOWHERE = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' }
const SETTINGS = settingsFor(NOWHERE, 'sqlite:marketplace.db')

describe('the command line', () => {
  it('prints its version and its help, with the settings and the exit codes, in 80 columns', async () => {
    const { version } = JSON.parse(readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8'))
    expect(await runCli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    const { code, stdout } = await runCliHere(['--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('MARKETPLACE_STORE')
    expect(stdout).toContain('Exit codes:')
    expect(longest(stdout)).toBeLessThanOrEqual(80)
  })

  const WRONG: [args: string[], why: RegExp][] = [
    [['explain'], /missing required argument 'business'/],
    [['explain', 'b1', 'b2'], /too many arguments/],
    [['explain', 'b1', '--limit', '3'], /unknown option '--limit'/],
    [['refresh', 'b1', '--wait', 'long'], /Expected a whole number/],
    [['journal', 'list', '--status', 'odd'], /Allowed choices are pending/],
    [['journal', 'list', '--dead', '--retrying'], /Give only one of --dead/],
    [['journal', 'replay'], /Give an id, --dead/],
    [['journal', 'replay', 'an-id', '--dead'], /either an id or a filter/],
    [['simulate', 'application/odd', '--to', 'http://localhost:1/'], /Allowed choices/],
    [['simulate', 'application/installed', '--to', 'localhost:1'], /absolute address/],
    [['register', 'ftp://my-app.example/'], /absolute address/],
    [['register', 'https://my-app.example/hooks'], /Give --business/],
    [
      ['register', 'https://my-app.example/hooks', '--business', 'b1', '--token-kind', 'business'],
      /Put the business token into MARKETPLACE_TOKEN/,
    ],
    [
      ['register', 'https://my-app.example/hooks', '--business', 'b1', '--event', 'odd'],
      /Unknown event: odd/,
    ],
    [['dev', '--port', '65535'], /--port must be 0/],
    [['migrate', '--print-grants', 'role'], /the store is not on PostgreSQL/],
    [['import', 'not-there.csv'], /Cannot read not-there.csv: the file does not exist/],
  ]
  it.each(WRONG)('ends with 2 and the reason for %j', async (args, why) => {
    const { code, stdout, stderr } = await runCliHere(args, { env: SETTINGS })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(why)
  })

  it('says at once what works while another process holds the database', async () => {
    const store = join(temporaryFolder(), 'm.db')
    const env = settingsFor(NOWHERE, `sqlite:${store}`)
    await runCliHere(['migrate'], { env })
    const lock = (await findSqlite()).open(`${store}-lock`)
    lock.exec('begin exclusive')
    const began = performance.now()
    const running = startCli(['explain', 'b1'], { env })
    await until('it is noted', () => running.stderr().includes('Use the console of the app'))
    expect(performance.now() - began).toBeLessThan(4_500)
    const { code, stderr } = await running.ended
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('another process') })
    lock.exec('rollback')
    lock.close()
  })

  it('refresh searches the platform with the options of the app, and ends with 3 if no worker has done it', async () => {
    const cwd = temporaryFolder()
    const options = {
      ...{ app: { clientId: 'a', clientSecret: 'b', purchasableUid: 'p' }, platform: NOWHERE },
      ...{ deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f', store: `sqlite:${join(cwd, 'm.db')}` },
    }
    const text = JSON.stringify(options).replace('"platform":{', '"platform":{findSubscriptions:async()=>[],')
    writeFileSync(join(cwd, 'options.mjs'), `export default ${text}`)
    const config = ['--config', 'options.mjs']
    expect(await runCli(['migrate', ...config], { cwd })).toMatchObject({ code: 0 })
    const { code, stdout, stderr } = await runCli(['refresh', 'b1', '--wait', '1', '--json', ...config], {
      cwd,
    })
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringContaining('no worker has finished it'),
    })
    expect(jsonLines(stdout)).toMatchObject([{ isRead: false, search: { pending: true, failure: null } }])
  })

  it('ends with 2 and its help without a command, and with the reason for an unknown one', async () => {
    expect(await runCliHere([])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/Usage:/),
    })
    const { code, stderr } = await runCliHere(['explainn', 'b1'])
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/unknown command 'explainn'.*explain/s),
    })
  })

  it('lists each setting that is missing or unusable, and no value', async () => {
    const { code, stdout, stderr } = await runCliHere(['explain', 'b1', '--json'], {
      env: {
        ...SETTINGS,
        MARKETPLACE_CLIENT_ID: '',
        DELIVERY_SECRETS: 'weak',
        MARKETPLACE_BASE_URL: 'odd',
        MARKETPLACE_STORE: 'odd',
      },
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const { error } = JSON.parse(stderr)
    expect(error).toMatchObject({ code: 'config_invalid', exitCode: 2 })
    expect(error.message).toContain('MARKETPLACE_CLIENT_ID is not set (app.clientId)')
    expect(error.message).toContain('MARKETPLACE_BASE_URL (platform.baseUrl): expected')
    expect(error.message).toContain('MARKETPLACE_STORE (store): expected sqlite:<path> or postgres://…')
    expect(error.message).toMatch(/DELIVERY_SECRETS \(deliverySecrets\): .*at least 16 characters/)
    expect(error.message).not.toMatch(/CLIENT_SECRET|postgresStore|:memory:/)
  })

  it('L86, L87 refuses the secrets of the pages and http:// to another machine in every command', async () => {
    const published = {
      ...SETTINGS,
      MARKETPLACE_CLIENT_SECRET: 'my-client-secret',
      MARKETPLACE_BASE_URL: 'https://platform.example',
      MARKETPLACE_AUTH_URL: 'http://platform.example',
      DELIVERY_SECRETS: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
    }
    for (const command of [
      ['explain', 'b1'],
      ['migrate'],
      ['register', 'https://app.example/hooks', '--business', 'b1'],
      ['doctor'],
    ]) {
      const { code, stdout, stderr } = await runCliHere(command, { env: published })
      expect({ command, code }).toEqual({ command, code: command[0] === 'doctor' ? 1 : 2 })
      const printed = (stdout + stderr).replace(/\s+/g, ' ')
      expect(printed).toContain(
        'MARKETPLACE_CLIENT_SECRET (app.clientSecret): it stands in the documentation',
      )
      expect(printed).toContain('DELIVERY_SECRETS (deliverySecrets): it stands in the documentation')
      expect(printed).toContain('MARKETPLACE_AUTH_URL (platform.authUrl): expected https://')
      expect(printed).not.toMatch(/my-client-secret|q8Zr3mW5/)
    }
  })

  it('does not create a database at a wrong path, because an empty one would deny every business', async () => {
    const path = join(temporaryFolder(), 'marketplace.db')
    const env = { ...SETTINGS, MARKETPLACE_STORE: `sqlite:${path}` }
    const { code, stderr } = await runCliHere(['explain', 'b1'], { env })
    expect(code).toBe(3)
    expect(stderr).toContain(`There is no database ${path}`)
    const inMemory = { ...SETTINGS, MARKETPLACE_STORE: 'sqlite::memory:' }
    expect(await runCliHere(['explain', 'b1'], { env: inMemory })).toMatchObject({ code: 2 })
    expect(existsSync(path)).toBe(false)
    const [made, again] = [await runCliHere(['migrate'], { env }), await runCliHere(['migrate'], { env })]
    expect(made).toMatchObject({
      code: 0,
      stdout: `Created the database ${path}. The tables exist and are up to date.\n`,
    })
    expect(again).toMatchObject({ code: 0, stdout: 'The tables exist and are up to date.\n' })
    expect(await runCliHere(['explain', 'b1'], { env })).toMatchObject({ code: 1 })
  })

  it('creates secrets that differ and are strong enough for the app', async () => {
    const first = await runCliHere(['secret'])
    const second = await runCliHere(['secret', '--json'])
    const secrets = [first.stdout.trim(), jsonLines(second.stdout)[0]?.secret as string]
    expect(secrets[0]).not.toBe(secrets[1])
    const store = `sqlite:${join(temporaryFolder(), 'marketplace.db')}`
    const env = { ...SETTINGS, DELIVERY_SECRETS: secrets.join(','), MARKETPLACE_STORE: store }
    expect(await runCliHere(['migrate'], { env })).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a file of options', () => {
  const OPTIONS = {
    app: { clientId: 'client', clientSecret: 'canary-of-a-file', purchasableUid: 'item' },
    platform: NOWHERE,
    deliverySecrets: SETTINGS.DELIVERY_SECRETS,
    store: 'sqlite:from-file.db',
  }

  it.each([
    ['options.json', JSON.stringify(OPTIONS)],
    ['options.mjs', `export default ${JSON.stringify(OPTIONS)}`],
    ['options.cjs', `module.exports = ${JSON.stringify(OPTIONS)}`],
  ])('replaces the environment: %s', async (file, text) => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, file), text)
    expect(await runCli(['migrate', '--config', file], { cwd })).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(join(cwd, 'from-file.db'))).toBe(true)
  })

  it('may have console as its logger: the result stands alone on stdout', async () => {
    const cwd = temporaryFolder()
    const file = join(cwd, 'options.mjs')
    writeFileSync(file, `export default { ...${JSON.stringify(OPTIONS)}, logger: console }`)
    await runCli(['migrate', '--config', file], { cwd })
    const { code, stdout, stderr } = await runCli(['export', 'b1', '--config', file, '--json'], { cwd })
    expect(code).toBe(0)
    expect(jsonLines(stdout)).toMatchObject([{ business_uid: 'b1' }])
    expect(stderr).toMatch(/area: 'audit'.*action: 'export'/s)
  })

  it('may be the TypeScript of the quickstart, where Node runs TypeScript', async () => {
    const { folder: cwd, write } = createProject()
    const [options] = snippetsOf('docs/quickstart.md', ['ts']).filter(({ file }) => file === 'options.ts')
    write('options.ts', options?.code ?? '')
    const env = { ...SETTINGS, NODE_OPTIONS: `--import ${pathToFileURL(require.resolve('tsx')).href}` }
    expect(await runCli(['migrate', '--config', 'options.ts'], { cwd, env })).toMatchObject({
      code: 0,
      stderr: '',
    })
    const incomplete = { ...env, MARKETPLACE_CLIENT_ID: '', MARKETPLACE_BASE_URL: 'canary' }
    const { code, stderr } = await runCli(['migrate', '--config', 'options.ts'], { cwd, env: incomplete })
    expect(code).toBe(2)
    expect(stderr).toContain('MARKETPLACE_CLIENT_ID is not set (app.clientId)\n')
    expect(stderr).toContain('MARKETPLACE_BASE_URL (platform.baseUrl): expected')
    expect(stderr).not.toContain('canary')
  })

  it.each([
    ['broken.json', `{"clientSecret":"canary-of-a-file"`, 'not valid JSON'],
    ['broken.mjs', `export default {{ clientSecret: 'canary-of-a-file' }`, 'SyntaxError'],
    ['throws.cjs', `throw new Error('canary-of-a-file')`, 'Cannot load'],
    ['list.json', '[]', 'must be the options'],
    ['marketplace.cjs', 'module.exports = { router() {} }', 'it exports a marketplace'],
    ['options.txt', '', 'it must be a .json'],
    ['gone.json', undefined, 'ENOENT'],
    ['weak.json', JSON.stringify({ ...OPTIONS, deliverySecrets: 'canary' }), 'Correct them in '],
  ])(
    'with a mistake ends the command with 2, and none of its content is printed: %s',
    async (file, text, why) => {
      const path = join(temporaryFolder(), file)
      if (text !== undefined) writeFileSync(path, text)
      // Only a process loads modules as Node does.
      const run = /js$/.test(file) ? runCli : runCliHere
      const { code, stdout, stderr } = await run(['explain', 'b1', '--config', path])
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(why)
      expect(stderr).not.toContain('canary')
    },
  )

  it('gets the settings that it leaves out from the environment', async () => {
    const cwd = temporaryFolder()
    const lines = Object.entries(SETTINGS).map(([name, value]) => `${name}=${value}`)
    writeFileSync(join(cwd, '.env'), lines.join('\n'))
    const env = { MARKETPLACE_STORE: 'sqlite:other.db' }
    const made = await runCli(['migrate', '--env', '.env'], { cwd, env })
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(join(cwd, 'other.db')).length).toBeGreaterThan(0)
    expect(await runCliHere(['migrate', '--env', join(cwd, 'gone')])).toMatchObject({ code: 2 })
  })

  it.each(['', ' '])('a variable that is empty gets the value of the file of --env: %j', async (empty) => {
    const cwd = temporaryFolder()
    const lines = Object.entries({ ...SETTINGS, MARKETPLACE_STORE: 'sqlite:of-file.db' })
    writeFileSync(join(cwd, '.env'), lines.map(([name, value]) => `${name}=${value}`).join('\n'))
    const library = new URL('../lib/index.js', pathToFileURL(CLI)).href
    const options = `import { optionsFromEnvironment } from '${library}'\nexport default optionsFromEnvironment()`
    writeFileSync(join(cwd, 'options.mjs'), options)
    const env = { MARKETPLACE_STORE: empty, MARKETPLACE_CLIENT_ID: empty }
    const args = ['migrate', '--env', '.env']
    expect(await runCli(args, { cwd, env })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Created the database .*of-file\.db\./),
    })
    expect(await runCli([...args, '--config', 'options.mjs'], { cwd, env })).toMatchObject({
      code: 0,
      stdout: 'The tables exist and are up to date.\n',
    })
  })
})

describe('register and simulate', () => {
  it('register the four events that the gate needs, and succeed again the second time', async () => {
    const platform = await startPlatform()
    platform.addBusiness('b1')
    const env = settingsFor(platform, 'sqlite:none.db')
    const args = ['register', 'https://my-app.example/hooks', '--business', 'b1', '--json']
    const first = await runCliHere(args, { env })
    const again = await runCliHere(args, { env })
    const statuses = ({ stdout }: { stdout: string }) =>
      (jsonLines(stdout)[0] as { registered: { status: string }[] }).registered.map(({ status }) => status)
    expect([first.code, statuses(first)]).toEqual([0, Array(4).fill('created')])
    expect([again.code, statuses(again)]).toEqual([0, Array(4).fill('exists')])
    const target = `https://my-app.example/hooks/${env.DELIVERY_SECRETS}`
    expect(first.stdout + first.stderr).not.toContain(target)
  })

  it('take another kind of token from the environment, and refuse one that the event does not accept', async () => {
    const platform = await startPlatform()
    const token = platform.directoryToken()
    const env = { ...settingsFor(platform, 'sqlite:none.db'), MARKETPLACE_TOKEN: ` ${token}\n` }
    const args = ['register', 'https://my-app.example/hooks', '--token-kind', 'directory', '--event']
    expect(await runCliHere([...args, 'app_subscription/installed'], { env })).toMatchObject({ code: 0 })
    const refused = await runCliHere([...args, 'application/installed'], { env })
    expect(refused.code).toBe(2)
    expect(refused.stdout).toContain('takes a token of kind app')
    expect(refused.stdout + refused.stderr).not.toContain(token)
  })

  it('take the token of a business too', async () => {
    const platform = await startPlatform()
    const env = {
      ...settingsFor(platform, 'sqlite:none.db'),
      MARKETPLACE_TOKEN: platform.businessToken('b1'),
    }
    const args = ['register', 'https://my-app.example/hooks', '--token-kind', 'business', '--event']
    expect(await runCliHere([...args, 'app_subscription/installed'], { env })).toMatchObject({ code: 0 })
    const refused = await runCliHere([...args, 'application/installed'], { env })
    expect(refused).toMatchObject({ code: 2, stdout: expect.stringContaining('takes a token of kind app') })
  })

  it('end with 1 if the platform refuses one of several events, and show each with its cause and the next step', async () => {
    let calls = 0
    const url = await serve((_req, res) => void res.writeHead(calls++ === 0 ? 403 : 500).end('{}'))
    const env = {
      ...settingsFor({ baseUrl: url, authUrl: url }, 'sqlite:none.db'),
      MARKETPLACE_TOKEN: 'a-token-of-the-app',
    }
    const { code, stdout } = await runCliHere(['register', 'https://my-app.example/hooks', '--json'], { env })
    const [{ registered }] = jsonLines<{ registered: object[] }>(stdout) as [{ registered: object[] }]
    expect([code, registered]).toMatchObject([
      1,
      [
        { code: 'platform_refused', why: expect.stringContaining('Check MARKETPLACE_BASE_URL') },
        { code: 'platform_failing', why: expect.stringContaining('Try again later') },
        { code: 'platform_failing' },
        { code: 'platform_failing' },
      ],
    ])
    // A mistake of the command line beside a failure of the platform is not only a mistake.
    const events = ['application/installed', 'app_subscription/installed'].flatMap((name) => [
      '--event',
      name,
    ])
    const args = ['register', 'https://my-app.example/hooks', '--token-kind', 'directory', ...events]
    expect(await runCliHere(args, { env })).toMatchObject({ code: 3 })
  })

  it('warn of an address that is not https, and of no other', async () => {
    const platform = await startPlatform()
    platform.addBusiness('b1')
    const env = settingsFor(platform, 'sqlite:none.db')
    const warningOf = async (url: string) =>
      (await runCliHere(['register', url, '--business', 'b1'], { env })).stderr
    expect(await warningOf('http://my-app.example/hooks')).toMatch(
      /^warning: the address is not https, .*\n$/,
    )
    expect(await warningOf('https://my-app.example/hooks')).toBe('')
  })

  it('print the reason of a refusal by the platform', async () => {
    const platform = await startPlatform()
    const args = ['register', 'https://my-app.example/hooks', '--business', 'unknown']
    const { code, stderr } = await runCliHere(args, { env: settingsFor(platform, 'sqlite:none.db') })
    expect(code).toBe(3)
    expect(stderr).toContain('business has installed the app')
  })
})

function longest(text: string): number {
  return Math.max(...text.split('\n').map((line) => line.length))
}
