import { describe, expect, it } from '@jest/globals'
import type { JournalEntry, SubscriptionStatus } from '../../lib/index.js'
import { temporaryFolder } from '../support/clean-up.js'
import { ENGINE_NAMES, ENGINES, useEngine } from '../support/engines/engines.js'
import { notice } from '../support/events.js'
import { jsonLines, runCli, runCliHere, settingsFor, startInTerminal } from '../support/processes/cli.js'
import { createScene, OTHER_ITEM } from '../support/scene.js'
import { until } from '../support/until.js'

const ENGINE = { SQLite: ENGINES.SQLite(), PostgreSQL: ENGINES.PostgreSQL() }

describe('the command copy', () => {
  it('K438 copies a database and says what to do next, and shows no password', async () => {
    const from = await ENGINE.SQLite.freshAddress()
    const platform = await sold(from)
    const to = await ENGINE.PostgreSQL.freshAddress()
    const { password } = new URL(to)
    expect(password.length).toBeGreaterThan(5)
    const { code, stdout, stderr } = await runCliHere([
      'copy',
      from,
      to,
      '--actor',
      'ada',
      '--reason',
      'ticket 812',
    ])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(
      /postgres:\/\/127\.0\.0\.1:\d+\/\w+ has everything of sqlite:.*: 3 subscriptions, and \d+ entries .*\nSet MARKETPLACE_STORE to .*, and start the app.*\nDo not start the app on sqlite:.* again/,
    )
    expect(stdout).not.toContain(password)
    const actions = await runCliHere(['journal', 'list', '--kind', 'action', '--json'], {
      env: settingsFor(platform, to),
    })
    expect(jsonLines<JournalEntry>(actions.stdout).map(({ payload }) => payload)).toEqual([
      { actor: 'ada', action: 'copy', reason: `ticket 812 (from ${from})`, entry_id: null },
    ])

    // The way back, into another schema, with JSON.
    const back = await runCliHere(['copy', to, to, '--to-schema', 'second', '--json'])
    expect(back).toMatchObject({ code: 0, stderr: '' })
    expect(jsonLines(back.stdout)).toEqual([
      {
        from: to.replace(/\/\/.*@/, '//'),
        to: `${to.replace(/\/\/.*@/, '//')} (schema second)`,
        subscriptions: 3,
        entries: { pending: 2, unhandled: expect.any(Number), done: 1, dead: 0 },
      },
    ])
    const again = await runCliHere(['copy', from, to, '--to-schema', 'second', '--json'])
    expect(again).toMatchObject({ code: 3, stdout: '' })
    expect(jsonLines(again.stderr)).toMatchObject([
      { error: { code: 'copy_failed', message: expect.stringContaining('the target is not empty') } },
    ])
  })

  it('ends with 2 for what is not an address, and with 3 for a database that is missing or in use', async () => {
    const from = await ENGINE.SQLite.freshAddress()
    const to = `sqlite:${temporaryFolder()}/to.db`
    const { marketplace } = await createScene({ store: from })
    await marketplace.start()
    const cases: [args: string[], code: number, error: string, fix: RegExp][] = [
      [['marketplace.db', to], 2, 'argument_invalid', /copy --help/],
      [[from, 'mysql://host/app'], 2, 'argument_invalid', /copy --help/],
      [[from, to, '--from-schema', 'x'], 2, 'usage', /copy --help/],
      [['postgres://nobody@127.0.0.1:1/app', to, '--from-schema', 'a b'], 2, 'config_invalid', /^$/],
      [[`${from}-missing`, to], 3, 'copy_failed', /^$/],
      [[from, to], 3, 'store_in_use', /Stop every process of the app, run this command/],
      [['postgres://nobody@127.0.0.1:1/app', to], 3, 'store_unavailable', /Check the two addresses/],
    ]
    for (const [args, code, error, fix] of cases) {
      const refused = await runCliHere(['copy', ...args, '--json'])
      expect({ args, code: refused.code, stdout: refused.stdout }).toEqual({ args, code, stdout: '' })
      // It offers nothing that an argument cannot be.
      expect(refused.stderr).not.toMatch(/memory|postgresStore/)
      const [shown] = jsonLines<{ error: { code: string; fix: string | null } }>(refused.stderr)
      expect({ args, code: shown?.error.code }).toEqual({ args, code: error })
      expect(shown?.error.fix ?? '').toMatch(fix)
    }
    expect((await marketplace.health()).status).toBe('ok')
  })

  it('shows its progress on a terminal, and needs no settings of the app', async () => {
    const from = await ENGINE.SQLite.freshAddress()
    await sold(from)
    const terminal = startInTerminal(['copy', from, `sqlite:${temporaryFolder()}/to.db`])
    const { code, stdout } = await terminal.ended
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/copying \d+ of \d+ rows …/) })
    const piped = await runCli(['copy', from, `sqlite:${temporaryFolder()}/to.db`])
    expect(piped).toMatchObject({ code: 0, stderr: '' })
  })
})

describe.each(ENGINE_NAMES)('the command subscriptions list on %s', (name) => {
  const engine = useEngine(name)

  it('lists subscriptions with the answer of each, a page at a time, in printable characters', async () => {
    const store = await engine.freshAddress()
    const platform = await sold(store)
    const env = settingsFor(platform, store)
    const run = (...args: string[]) => runCliHere(['subscriptions', 'list', ...args], { env })
    const all = await run('--json')
    expect(all).toMatchObject({ code: 0, stderr: '' })
    const rows = jsonLines<SubscriptionStatus>(all.stdout)
    expect(rows.map(({ business_uid, reason }) => [business_uid, reason]).sort()).toEqual([
      ['b-late', 'not_purchased'],
      ['b-other', 'other_app'],
      ['b-paid', 'purchased'],
    ])

    const text = (await run()).stdout
    const lineOf = (business: string) =>
      text
        .replace(/\n {4,}/g, ' ')
        .split('\n')
        .find((line) => line.includes(business))
    expect(lineOf('b-paid')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +yes +\S+ +b-paid +purchased, item/)
    expect(lineOf('b-late')).toMatch(/Z +no +\S+ +b-late +suspended, not_purchased, item/)

    const pages: SubscriptionStatus[] = []
    for (let after: string | undefined; ; ) {
      const page = await run('--json', '--limit', '2', ...(after === undefined ? [] : ['--after', after]))
      pages.push(...jsonLines<SubscriptionStatus>(page.stdout))
      after = /--after (\S+)/.exec(page.stderr)?.[1]
      if (after === undefined) break
    }
    expect(pages).toEqual(rows)

    const which = async (...args: string[]) =>
      jsonLines<SubscriptionStatus>((await run('--json', ...args)).stdout).map(
        ({ business_uid }) => business_uid,
      )
    expect(await which('--business', 'b-late')).toEqual(['b-late'])
    expect(await which('--state', 'suspended')).toEqual(['b-late'])
    expect(await which('--why', 'purchased')).toEqual(['b-paid'])
    expect(await which('--item', OTHER_ITEM)).toEqual(['b-other'])
    expect(await run('--business', 'nobody')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'No subscription matches.\n',
    })
    expect(await run('--why', 'because')).toMatchObject({ code: 2, stdout: '' })
    expect(await run('--limit', '1001')).toMatchObject({ code: 2, stdout: '' })
  })
})

/** A database with a business that paid, one whose payment failed, and one that bought another item. The app is closed. */
async function sold(store: string) {
  const { platform, marketplace, deliver } = await createScene({ store })
  const uids = [
    platform.purchase({ business_uid: 'b-paid', payment: 'succeeded' }).uid,
    platform.purchase({ business_uid: 'b-late', payment: 'failed' }).uid,
    platform.purchase({ business_uid: 'b-other', payment: 'succeeded', purchasable_uid: OTHER_ITEM }).uid,
  ]
  for (const [i, uid] of uids.entries())
    await deliver(notice(['b-paid', 'b-late', 'b-other'][i] as string, uid))
  await until('all are read', async () => {
    const found = await marketplace.subscriptions.list()
    return found.length === 3 && found.every(({ readAt }) => readAt !== null)
  })
  await marketplace.settled()
  await marketplace.close()
  return platform
}
