import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import type { Command, Option } from 'commander'
import { createProgram } from '../../lib/cli/program.js'
import { EXIT_CODES } from '../../lib/cli/terminal/exit-codes.js'
import { auditUid } from '../../lib/store/journal/audit.js'
import type { Simulator } from '../../lib/testing/index.js'
import { forWholeFile, temporaryFolder } from '../support/clean-up.js'
import { names, tableWith } from '../support/docs/pages.js'
import { ENGINES } from '../support/engines/engines.js'
import { pictureOf } from '../support/engines/store-with-sql.js'
import { jsonLines, runCli, runCliHere, settingsFor } from '../support/processes/cli.js'
import { createScene, openMarketplace, serve } from '../support/scene.js'
import { until } from '../support/until.js'

const SQLITE = ENGINES.SQLite()
const NOWHERE = 'http://127.0.0.1:1'
const COMMANDS = tableWith('Command', 'What it does').map(({ Command }) =>
  String(names(Command)[0]).replace(/ [<[].*/, ''),
)

interface Case {
  command: string
  when: string
  /** What follows the command. */
  args?: (world: World) => readonly string[]
  env?: (world: World) => Record<string, string>
  input?: string
  code: keyof typeof EXIT_CODES
  /** The action that the journal has now. Without one, nothing was written. */
  does?: string
  /** It puts the read of what nobody knows yet in front of others. */
  hastens?: true
}

const of =
  (...args: string[]) =>
  () =>
    args
const anywhere = (name: 'MARKETPLACE_STORE' | `MARKETPLACE_${'BASE' | 'AUTH'}_URL`, value: string) => () => ({
  [name]: value,
})
const unreachable = anywhere('MARKETPLACE_STORE', 'postgres://nobody@127.0.0.1:1/app')

/** In this order, because some commands change what the next ones find. */
const CASES: readonly Case[] = [
  { command: 'secret', when: 'always', code: 0 },
  { command: 'completion', when: 'for bash', args: of('bash'), code: 0 },
  { command: 'completion', when: 'for another shell', args: of('fish'), code: 2 },
  { command: 'dev', when: 'ended', args: of('--port', '0'), input: 'quit\n', code: 0 },
  { command: 'explain', when: 'yes', args: of('b-paid'), code: 0 },
  { command: 'explain', when: 'no', args: of('b-late'), code: 1 },
  { command: 'explain', when: 'not known yet', args: of('b-new'), code: 3, hastens: true },
  { command: 'explain', when: 'an item of nobody', args: of('b-paid', '--item', 'odd'), code: 2 },
  {
    command: 'explain',
    when: 'no database',
    args: of('b-paid'),
    env: unreachable,
    code: 3,
  },
  { command: 'history', when: 'something', args: of('b-paid'), code: 0 },
  { command: 'history', when: 'nothing', args: of('nobody'), code: 1 },
  { command: 'history', when: 'too many', args: of('b-paid', '--limit', '1001'), code: 2 },
  { command: 'history', when: 'no time', args: of('b-paid', '--before', 'soon'), code: 2 },
  { command: 'subscriptions list', when: 'some', code: 0 },
  { command: 'subscriptions list', when: 'CSV and JSON', args: of('--csv'), code: 2 },
  { command: 'subscriptions list', when: 'none', args: of('--business', 'nobody'), code: 0 },
  { command: 'subscriptions list', when: 'no reason', args: of('--why', 'because'), code: 2 },
  { command: 'journal list', when: 'some', code: 0 },
  { command: 'journal list', when: 'none', args: of('--name', 'odd'), code: 0 },
  { command: 'journal list', when: 'no time', args: of('--since', 'yesterday'), code: 2 },
  { command: 'journal show', when: 'found', args: ({ deadId }) => [deadId], code: 0 },
  { command: 'journal show', when: 'not found', args: of('no-such-id'), code: 1 },
  { command: 'journal export', when: 'a delivery', args: ({ eventId }) => [eventId, '--fixture'], code: 0 },
  { command: 'journal export', when: 'not found', args: of('--fixture', 'no-such-id'), code: 1 },
  { command: 'journal export', when: 'no delivery', args: ({ deadId }) => ['--fixture', deadId], code: 2 },
  { command: 'journal export', when: 'not as a fixture', args: ({ eventId }) => [eventId], code: 2 },
  { command: 'platform-report', when: 'always', code: 0 },
  { command: 'platform-report', when: 'no database', env: unreachable, code: 3 },
  { command: 'journal replay', when: 'no filter', code: 2 },
  { command: 'journal replay', when: 'no entry', args: of('no-such-id'), code: 1 },
  { command: 'journal replay', when: 'no match', args: of('--dead', '--name', 'odd'), code: 1 },
  { command: 'journal replay', when: 'an action', args: ({ actionId }) => [actionId], code: 2 },
  {
    command: 'journal replay',
    when: 'actions',
    args: of('--status', 'done', '--kind', 'action'),
    code: 2,
  },
  { command: 'journal replay', when: 'too many', args: of('--dead', '--limit', '1001'), code: 2 },
  {
    command: 'journal replay',
    when: 'a dry run of one',
    args: ({ deadId }) => [deadId, '--dry-run'],
    code: 0,
  },
  { command: 'journal replay', when: 'a dry run', args: of('--dead', '--dry-run'), code: 0 },
  { command: 'import', when: 'a dry run', args: ({ file }) => [file(), '--dry-run'], code: 0 },
  {
    command: 'import',
    when: 'a dry run with a bad line',
    args: ({ file }) => [file('s-x'), '--dry-run'],
    code: 1,
  },
  { command: 'import', when: 'no file', args: of('no-such.csv'), code: 2 },
  { command: 'import', when: 'a folder', args: () => [temporaryFolder()], code: 2 },
  { command: 'import', when: 'an empty file', args: of('-'), code: 2 },
  { command: 'import', when: 'all read', args: ({ file }) => [file()], code: 0, does: 'import' },
  { command: 'import', when: 'a bad line', args: ({ file }) => [file('s-x')], code: 1, does: 'import' },
  {
    command: 'import',
    when: 'nobody reads',
    args: ({ file }) => [file('s-new,b-new'), '--wait', '1'],
    code: 3,
    does: 'import',
  },
  {
    command: 'import',
    when: 'not waiting',
    args: ({ file }) => [file('s-new,b-new'), '--no-wait'],
    code: 0,
    does: 'import',
  },
  {
    command: 'import',
    when: 'not waiting, with a bad line',
    args: ({ file }) => [file('s-x'), '--no-wait'],
    code: 1,
    does: 'import',
  },
  { command: 'refresh', when: 'of both', args: of('b-paid', '--all'), code: 2 },
  { command: 'refresh', when: 'of none', code: 2 },
  { command: 'refresh', when: 'within no time', args: of('--all', '--within', '0'), code: 2 },
  { command: 'refresh', when: 'within too long', args: of('--all', '--within', '1441'), code: 2 },
  { command: 'refresh', when: 'nothing to read', args: of('nobody'), code: 1, does: 'refresh' },
  {
    command: 'refresh',
    when: 'nobody reads',
    args: of('b-new', '--wait', '0'),
    code: 3,
    does: 'refresh',
  },
  { command: 'refresh', when: 'of all', args: of('--all'), code: 0, does: 'refresh' },
  { command: 'track', when: 'no business', args: of('s-lost'), code: 2 },
  {
    command: 'track',
    when: 'too long a uid',
    args: of('x'.repeat(300), '--business', 'b-lost'),
    code: 2,
  },
  { command: 'track', when: 'a typo', args: of('s-typo', '--business', 'b-paid'), code: 1 },
  {
    command: 'track',
    when: 'no platform',
    args: of('s-lost', '--business', 'b-paid'),
    env: anywhere('MARKETPLACE_AUTH_URL', NOWHERE),
    code: 3,
  },
  {
    command: 'track',
    when: 'forced',
    args: of('s-lost', '--business', 'b-lost', '--force'),
    code: 0,
    does: 'track',
  },
  { command: 'demo', when: 'as JSON', code: 2 },
  { command: 'journal replay', when: 'one', args: ({ deadId }) => [deadId], code: 0, does: 'replay' },
  {
    command: 'journal replay',
    when: 'nobody handles it',
    args: ({ deadId }) => [deadId, '--wait', '1'],
    code: 3,
    does: 'replay',
  },
  {
    command: 'journal replay',
    when: 'a dry run that waits',
    args: of('--dead', '--dry-run', '--wait'),
    code: 2,
  },
  { command: 'journal replay', when: 'all', args: of('--dead'), code: 0, does: 'replay' },
  {
    command: 'export',
    when: 'the file exists',
    args: ({ file }) => ['b-paid', '--out', file()],
    code: 2,
  },
  {
    command: 'export',
    when: 'no folder',
    args: () => ['b-paid', '--out', join(temporaryFolder(), 'no', 'file')],
    code: 2,
  },
  { command: 'export', when: 'printed', args: of('b-paid'), code: 0, does: 'export' },
  {
    command: 'export',
    when: 'into a file',
    args: () => ['b-paid', '--out', join(temporaryFolder(), 'b.json')],
    code: 0,
    does: 'export',
  },
  { command: 'migrate', when: 'up to date', code: 0 },
  { command: 'migrate', when: 'no grants on SQLite', args: of('--print-grants', 'app'), code: 2 },
  {
    command: 'backup',
    when: 'a new file',
    args: ({ backup }) => [backup],
    code: 0,
    does: 'backup',
  },
  { command: 'backup', when: 'the file exists', args: ({ backup }) => [backup], code: 3, does: 'backup' },
  { command: 'restore', when: 'no file', args: of('no-such.db'), code: 2 },
  { command: 'restore', when: 'no backup', args: ({ file }) => [file()], code: 3 },
  {
    command: 'restore',
    when: 'too long an actor',
    args: ({ backup }) => [backup, '--actor', 'x'.repeat(501)],
    code: 2,
  },
  { command: 'restore', when: 'a backup', args: ({ backup }) => [backup], code: 0, does: 'restore' },
  { command: 'copy', when: 'no address', args: of('marketplace.db', 'sqlite:to.db'), code: 2 },
  {
    command: 'copy',
    when: 'no source',
    args: () => [`sqlite:${temporaryFolder()}/no.db`, `sqlite:${temporaryFolder()}/to.db`],
    code: 3,
  },
  {
    command: 'copy',
    when: 'into a new file',
    args: ({ store }) => [store, `sqlite:${temporaryFolder()}/to.db`],
    code: 0,
  },
  { command: 'register', when: 'no business', args: of('https://a.example/hooks'), code: 2 },
  {
    command: 'register',
    when: 'accepted',
    args: of('https://a.example/hooks', '--business', 'b-paid'),
    code: 0,
  },
  {
    command: 'register',
    when: 'refused',
    args: of('https://a.example/hooks'),
    env: ({ refusing }) => ({ MARKETPLACE_BASE_URL: refusing, MARKETPLACE_TOKEN: 'any-token-1' }),
    code: 1,
  },
  {
    command: 'register',
    when: 'an event of another token',
    args: of('https://a.example/hooks', '--event', 'app_subscription/installed'),
    env: () => ({ MARKETPLACE_TOKEN: 'any-token-1' }),
    code: 2,
  },
  {
    command: 'register',
    when: 'no platform',
    args: of('https://a.example/hooks'),
    env: () => ({ MARKETPLACE_BASE_URL: NOWHERE, MARKETPLACE_TOKEN: 'any-token-1' }),
    code: 3,
  },
  ...(
    [
      ['accepted', '/200', 0],
      ['refused', '/404', 1],
      ['sent elsewhere', '/307', 1],
    ] as const
  ).map(
    ([when, path, code]): Case => ({
      command: 'simulate',
      when,
      args: ({ receiver }) => ['application/installed', '--to', receiver + path],
      env: () => ({ DELIVERY_SECRETS: '' }),
      code,
    }),
  ),
  { command: 'simulate', when: 'nobody', args: of('application/installed', '--to', NOWHERE), code: 3 },
  { command: 'simulate', when: 'no such event', args: of('odd', '--to', NOWHERE), code: 2 },
  { command: 'doctor', when: 'all is well', code: 0 },
  {
    command: 'doctor',
    when: 'no platform',
    args: of('--business', 'b-paid'),
    env: anywhere('MARKETPLACE_BASE_URL', 'http://localhost:1'),
    code: 1,
  },
  { command: 'erase', when: 'not confirmed', args: of('b-paid'), code: 2 },
  { command: 'erase', when: 'another uid', args: of('b-paid', '--yes', 'b-late'), code: 2 },
  {
    command: 'erase',
    when: 'confirmed',
    args: of('b-paid', '--yes', 'b-paid'),
    code: 0,
    does: 'erase',
  },
]

describe('K277 the exit codes of the page', () => {
  let world: World
  beforeAll(async () => {
    world = await forWholeFile(lived)
  })

  it.each(CASES)('$command, $when: $code, and writes only what it says', async (each) => {
    const { command, args = of(), env = () => ({}), input = '', code, does, hastens } = each
    const before = await pictureOf(world.store)
    const line = [...command.split(' '), ...args(world), '--reason', 'ticket 812', '--json']
    const ended = await runCliHere(line, { env: { ...world.env, ...env(world) }, input })
    expect({ ...ended, code: ended.code }).toMatchObject({ code })
    // Stdout has JSON only, and an error is one document on stderr.
    const results = jsonLines(ended.stdout)
    const errors = ended.stderr.split('\n').filter((text) => text.startsWith('{"error"'))
    if (results.length === 0 && code >= 2) expect(errors).toHaveLength(1)
    for (const text of errors) {
      const { error } = JSON.parse(text)
      expect(Object.keys(error)).toEqual(['code', 'message', 'fix', 'exitCode'])
      expect(error.exitCode).toBe(code)
    }
    if (code === 0) expect(errors).toEqual([])
    const after = await pictureOf(world.store)
    if (hastens) delete after.subscriptions
    if (does === undefined) expect(before).toEqual({ ...before, ...after })
    else expect(after.journal?.at(-1)).toMatchObject({ kind: 'action', name: does, status: 'done' })
    // It is a new one, not that of the case before.
    if (does !== undefined) expect(after.journal?.at(-1)?.id).not.toBe(before.journal?.at(-1)?.id)
    if (does !== undefined)
      expect(JSON.parse(String(after.journal?.at(-1)?.payload))).toMatchObject({
        actor: 'ada',
        action: does,
        reason: expect.stringMatching(/^ticket 812( \(.+\))?$/s),
      })
  })

  it.each(COMMANDS)('%s: 2 for an unknown option, and nothing is written', async (command) => {
    const before = await pictureOf(world.store)
    const { env } = world
    expect(await runCliHere([...command.split(' '), '--odd'], { env })).toMatchObject({ code: 2, stdout: '' })
    expect(await pictureOf(world.store)).toEqual(before)
  })

  it.each(COMMANDS)('%s: 2 for each empty value, and nothing is written', async (name) => {
    const before = await pictureOf(world.store)
    const { env } = world
    const { command, global } = commandOf(name)
    const mandatory = command.options
      .filter((option) => option.mandatory)
      .flatMap(({ long, required }) => [String(long), ...(required ? ['http://a'] : [])])
    const lines = [
      ...[...command.options, ...global]
        // An empty name of a person counts as none.
        .filter(({ required, optional, long }) => (required || optional) && long !== '--actor')
        .map(({ long }) => [String(long), '']),
      ...command.registeredArguments.map((_, at, all) => [
        ...mandatory,
        ...all.map((each, i) => (i === at ? '' : (each.argChoices?.[0] ?? 'http://a'))),
      ]),
    ]
    for (const line of lines) {
      const { code, stdout, stderr } = await runCliHere([...name.split(' '), ...line], { env })
      expect({ line, code, stdout, stderr }).toMatchObject({
        ...{ line, code: 2, stdout: '' },
        stderr: expect.stringMatching(/^error: .*(argument|value) '' is invalid/),
      })
    }
    expect(await pictureOf(world.store)).toEqual(before)
  })

  it('70: an error in this program, and 130: interrupted by a signal', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'options.mjs'), "export default { get app() { throw new Error('unheard of') } }")
    const fault = await runCli(['explain', 'b1', '--config', 'options.mjs'], { cwd })
    expect(fault).toEqual({ code: 70, stdout: '', stderr: 'error: An unexpected error: unheard of\n' })
    const tried: readonly number[] = [...CASES.map(({ code }) => code), 70, 130]
    expect([...new Set(tried)].sort()).toEqual(Object.keys(EXIT_CODES).map(Number).sort())
  })

  it('are tried for each command', () => {
    const tried = new Set(CASES.flatMap(({ command, code }) => (code === 0 ? command : [])))
    // The demo is built into the package, where the tests of the package play it.
    expect(COMMANDS.filter((name) => !tried.has(name))).toEqual(['demo'])
  })

  it('an erasure leaves its audit with the hash', async () => {
    const { journal } = await pictureOf(world.store)
    expect(journal?.at(-1)).toMatchObject({ name: 'erase', business_uid: auditUid('b-paid') })
    expect(statSync(world.backup).mode & 0o777).toBe(0o600)
  })
})

/** The command of this name, and the options of every command. */
function commandOf(name: string): { command: Command; global: readonly Option[] } {
  const program = createProgram('0.0.0', () => async () => {})
  const command = name
    .split(' ')
    .reduce((of, word) => of.commands.find((each) => each.name() === word) as Command, program)
  return { command, global: program.options.filter(({ long }) => long !== '--version') }
}

interface World {
  store: string
  env: Record<string, string>
  /** A file of customers: one that is read, and this line. */
  file(line?: string): string
  /** A path for a backup. */
  backup: string
  deadId: string
  eventId: string
  actionId: string
  /** A platform that refuses every call. */
  refusing: string
  /** Answers with the status that the path names. */
  receiver: string
  platform: Simulator
}

/** A database with a business that paid, one that did not, and one that nobody has read. The app is closed. */
async function lived(): Promise<World> {
  const store = await SQLITE.freshAddress()
  const options = { store, handlers: { retryDelaysMs: [] } }
  const { platform, marketplace } = await createScene(options)
  marketplace.onPurchaseChange(() => {
    throw new Error('says-no')
  })
  platform.purchase({ business_uid: 'b-paid', payment: 'succeeded', subscription_uid: 's-paid' })
  platform.purchase({ business_uid: 'b-late', payment: 'failed', subscription_uid: 's-late' })
  await platform.settled()
  const dead = await until('both changes are dead', async () => {
    const found = await marketplace.journal.list({ status: 'dead' })
    return found.length === 2 && found
  })
  await marketplace.settled()
  await marketplace.close()
  const later = openMarketplace(platform, { ...options, worker: false })
  await later.subscriptions.track({ subscriptionUid: 's-new', businessUid: 'b-new' })
  const { id: actionId } = await later.journal.recordAction({ actor: 'bo', action: 'look' })
  const [event] = await later.journal.list({ kind: 'event', limit: 1 })
  await later.close()
  const folder = temporaryFolder()
  let files = 0
  return {
    ...{ store, platform, actionId, deadId: dead[0]?.id as string, eventId: String(event?.id) },
    env: settingsFor(platform, store),
    backup: join(folder, 'backup.db'),
    file(line = '') {
      const path = join(folder, `${++files}.csv`)
      writeFileSync(path, `subscription_uid,business_uid\ns-paid,b-paid\n${line}\n`)
      return path
    },
    refusing: await serve((_req, res) => void res.writeHead(403).end('{}')),
    receiver: await serve((req, res) => {
      const status = Number(req.url?.slice(1)) || 200
      res.writeHead(status, { location: '/200' }).end('{}')
    }),
  }
}
