import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import type { JournalEntry } from '../../lib/index.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { temporaryFolder } from '../support/clean-up.js'
import { useEngine } from '../support/engines/engines.js'
import { internals } from '../support/internals.js'
import { quietWarnings } from '../support/output.js'
import { jsonLines, runCliHere, settingsFor, startInTerminal } from '../support/processes/cli.js'
import { createScene, serve } from '../support/scene.js'
import { until } from '../support/until.js'

/** Titles, screens, colours (those of this program too), directions, separators, annotations, invisible characters. */
const ODD =
  'a\u001b]0;title\u0007\u001b[2J\u001b[31mred\u001b[0m\u009b35m\u0085\u202e\u2066\u200b\u2028\u2029\ufff9\ufeff\u00ad\u{e0041}\t\r\nforged: line'
const NOBODY = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' }
/** What an identifier may contain. */
const UID = 'b\u202e\u2066\u200b\ufeff\ufe0f\u{e0000}1'
// biome-ignore lint/suspicious/noControlCharactersInRegex: the colours of the program
const OWN_COLOURS = /\u001b\[(?:0|1|2|31|32|33)m/g
/** Commands that repeat what a person typed or pasted, at each `?`. */
const NAMED = [
  ['explain', '?'],
  ['explain', '?', '--item', '?'],
  ['history', '?'],
  ['history', '?', '--before', '?'],
  ['journal', 'list', '--name', '?', '--before', '?'],
  ['journal', 'list', '--business', '?'],
  ['journal', 'replay', '?'],
  ['subscriptions', 'list', '--business', '?'],
  ['subscriptions', 'list', '--why', '?'],
  ['subscriptions', 'list', '--after', '?'],
  ['track', '?', '--business', '?'],
  ['refresh', '?', '--wait', '1'],
  ['erase', '?', '--yes', '?'],
  ['export', '?'],
  ['export', 'b1', '--out', '/nowhere/?'],
  ['import', '?'],
  ['simulate', '?', '--to', 'http://127.0.0.1:1/'],
  ['simulate', 'application/installed', '--to', '?'],
  ['doctor', '--business', '?', '--subscription', '?'],
  ['register', 'http://127.0.0.1:1/', '--event', '?', '--business', 'b1'],
  ['register', 'http://127.0.0.1:1/', '--business', '?'],
  ['copy', '?', '?'],
  ['copy', 'sqlite:?', 'sqlite:?'],
  ['copy', 'postgres://?', 'sqlite:?'],
  ['restore', '?'],
  ['backup', '/nowhere/?'],
  ['migrate', '--print-grants', '?'],
  ['explain', 'b1', '--config', '?'],
  ['explain', 'b1', '--config', '?.mjs'],
  ['explain', 'b1', '--env', '?'],
  ['journal', 'list', '--limit', '?'],
] as const
const PRINTABLE = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]*$/u

describe('L51 what the command line prints', () => {
  const engine = useEngine('SQLite')

  it('L51 has no control and no format character but its own colours; with --json the values stay as they are', async () => {
    quietWarnings()
    const { env, store, entries, hostile, file } = await hostileWorld()
    const commands = [
      ['explain', UID],
      ['history', UID],
      ['journal', 'list'],
      ...entries.map((id) => ['journal', 'show', id]),
      ['journal', 'show', ODD],
      ['journal', 'replay', '--dead', '--dry-run'],
      ['export', UID],
      ['track', 's1', '--business', UID],
      ['import', file, '--dry-run'],
      ['simulate', 'application/installed', '--to', `${hostile}/hooks`],
      ['doctor', '--business', UID, '--public-url', `${hostile}/hooks`],
      ['register', `${hostile}/hooks`, '--business', UID],
      [ODD],
      ['explain', UID, `--${ODD}`],
      ['subscriptions', 'list'],
      ['subscriptions', 'list', '--limit', '1'],
      ['subscriptions', 'list', '--csv'],
      ['copy', store, 'sqlite::memory:'],
      ...NAMED.map((args) => args.map((arg) => arg.replaceAll('?', ODD))),
    ]
    // The platform of `register` answers with odd texts too.
    const envOf = ([name]: readonly (string | undefined)[]) =>
      name === 'register' ? { ...env, MARKETPLACE_BASE_URL: hostile } : env
    let coloured = 0
    for (const args of commands) {
      for (const isTerminal of [true, false]) {
        const { code, stdout, stderr } = await runCliHere(args, { env: envOf(args), isTerminal })
        const printed = stdout + stderr
        expect({ args, code }).not.toEqual({ args, code: 70 })
        expect(printed).not.toBe('')
        expect(printed).not.toContain('\u001b[31mred')
        if (isTerminal) coloured += printed.match(OWN_COLOURS)?.length ?? 0
        else expect(printed).not.toContain('\u001b')
        const lines = printed.replaceAll(OWN_COLOURS, '').replaceAll('\r\u001b[K', '').split('\n')
        expect({ args, odd: lines.filter((line) => !PRINTABLE.test(line)) }).toEqual({ args, odd: [] })
        // An end of a line in a received text ends no line. A document of JSON shows it as an escape.
        expect({ args, forged: lines.filter((line) => line.startsWith('forged')) }).toEqual({
          args,
          forged: [],
        })
      }
      const { stdout, stderr } = await runCliHere([...args, '--json'], { env: envOf(args) })
      for (const line of (stdout + stderr).split('\n')) expect(line).toMatch(PRINTABLE)
      if (args[0] !== 'export') jsonLines(stdout)
      for (const line of stderr.split('\n')) if (line.startsWith('{')) jsonLines(line)
    }
    expect(coloured).toBeGreaterThan(20)
    const [decision] = jsonLines((await runCliHere(['explain', UID, '--json'], { env })).stdout)
    expect(decision).toMatchObject({ business_uid: UID, subscriptions: [{ purchase_state: ODD }] })
    const { stdout } = await runCliHere(['export', UID], { env })
    expect(JSON.stringify(JSON.parse(stdout))).toContain(JSON.stringify(ODD))
  }, 60_000)

  it("L51 shows the stack of a handler's error, a line for each frame", async () => {
    quietWarnings()
    const { env, failed } = await hostileWorld()
    const { stdout } = await runCliHere(['journal', 'show', failed], { env })
    expect(stdout).toMatch(/^Error: a.*forged: line\n {4,}at .*failOddly \(.*terminal\.test\.ts/m)
    const { data } = JSON.parse(stdout.slice(stdout.indexOf('\n{')))
    expect(data.note).toBe(ODD)
    const [entry] = jsonLines<JournalEntry>(
      (await runCliHere(['journal', 'show', failed, '--json'], { env })).stdout,
    )
    expect(entry?.stack).toMatch(/\n {4}at .*failOddly/)
  })

  it('L51 is clean in dev, whatever calls the platform', async () => {
    const dev = startInTerminal(['dev', '--port', '0'])
    await dev.prints('quit')
    const [, baseUrl = ''] = /MARKETPLACE_BASE_URL=(\S+)/.exec(dev.stdout()) ?? []
    const [, authUrl = ''] = /MARKETPLACE_AUTH_URL=(\S+)/.exec(dev.stdout()) ?? []
    const odd = new URLSearchParams({ business_uid: ODD, 'filter[uid]': ODD, client_id: ODD })
    await fetch(`${authUrl}/oauth/token?${odd}`, { method: 'POST' })
    await fetch(`${baseUrl}/${encodeURIComponent(ODD)}?${odd}`)
    await dev.prints('forged: line')
    dev.write('q')
    const { stdout } = await dev.ended
    expect(stdout).not.toContain('\u001b[31mred')
    const lines = stdout.replaceAll(OWN_COLOURS, '').split(/\r?\n/)
    expect(lines.filter((line) => !PRINTABLE.test(line) || line.startsWith('forged'))).toEqual([])
  }, 60_000)

  it.each(["o'brien & co", '-x', 'two  spaces', '$(id)`id`"!\u00a0;'])(
    'has commands that a shell and this program take as they are, about %j',
    async (uid) => {
      const env = settingsFor(NOBODY, await engine.freshAddress())
      await runCliHere(['migrate'], { env })
      const tracked = await runCliHere(['track', '--business', uid, '--force', '--', uid], { env })
      const explained = await runCliHere(['explain', '--', uid], { env })
      const unknown = await runCliHere(['explain', '--', `${uid}?`], { env })
      const listed = await runCliHere(['subscriptions', 'list', '--limit', '1'], { env })
      const explain = wordsOf(/marketplace-webhooks (explain .*)/.exec(tracked.stderr))
      const refresh = wordsOf(/marketplace-webhooks (refresh .*)/.exec(explained.stdout))
      const track = wordsOf(/marketplace-webhooks (track .*)/.exec(unknown.stdout))
      const after = wordsOf(/--after .*/.exec(listed.stderr))
      for (const [args, result] of [
        [explain, { business_uid: uid }],
        [['refresh', '--wait', '0', ...refresh.slice(1)], { business_uid: uid }],
        [[...track, '--force'], { business_uid: `${uid}?`, subscription_uid: '<subscription>' }],
      ] as const)
        expect(jsonLines((await runCliHere(['--json', ...args], { env })).stdout)).toMatchObject([result])
      const all = await runCliHere(['subscriptions', 'list', '--json'], { env })
      const rest = await runCliHere(['subscriptions', 'list', '--json', ...after], { env })
      const uids = jsonLines(all.stdout).map(({ subscription_uid }) => subscription_uid)
      expect(jsonLines(rest.stdout)).toHaveLength(uids.length - 1 - uids.indexOf(uid))
    },
  )

  /** A database full of odd texts, and a server whose replies have them. */
  async function hostileWorld() {
    const store = await engine.freshAddress()
    const { marketplace, platform, deliver } = await createScene({
      store,
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
    })
    const failOddly = () => {
      throw new Error(ODD)
    }
    marketplace.on('application/installed', failOddly)
    const { id: failed } = await deliver(
      sampleDelivery('application/installed', { business_id: UID, note: ODD, [ODD]: 1 }),
    )
    await deliver({ entity_name: ODD, event_type: ODD, data: [ODD] })
    const { uid } = platform.purchase({ business_uid: UID, payment: 'succeeded', subscription_uid: 's1' })
    platform.set(uid, { purchase_state: ODD, note: ODD })
    await platform.settled()
    await until('it is read', async () => (await marketplace.explain(UID)).subscriptions[0]?.asOf)
    await marketplace.journal.recordAction({ actor: ODD, action: 'refresh', businessUid: UID, reason: ODD })
    await marketplace.settled()
    const all = await marketplace.journal.list()
    await marketplace.close()
    const hostile = await serve((_req, res) => {
      res.writeHead(400, { 'content-type': 'application/json' })
      res.end(
        JSON.stringify({
          received: true,
          id: ODD,
          code: ODD,
          issues: [ODD, 7, { a: ODD }],
          error: ODD,
          message: ODD,
        }),
      )
    })
    const file = join(temporaryFolder(), 'customers.csv')
    writeFileSync(file, `subscription_uid,business_uid\n"${ODD}",b1\ns3,"${ODD}"\n`)
    const env = {
      ...settingsFor(platform, store),
      MARKETPLACE_TOKEN: 'a-token-of-the-app',
    }
    return { env, store, entries: all.map(({ id }) => id), hostile, file, failed }
  }
})

/** The words of a printed command, as a shell reads them. */
function wordsOf(found: RegExpExecArray | null): string[] {
  const command = found?.at(-1) ?? ''
  const { stdout } = spawnSync('sh', ['-c', `set -- ${command}\nprintf '%s\\0' "$@"`], { encoding: 'utf8' })
  return stdout.split('\0').slice(0, -1)
}
