import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from '@jest/globals'
import type { Decision, HistoryItem, JournalEntry, Marketplace } from '../../lib/index.js'
import { auditUid } from '../../lib/store/journal/audit.js'
import type { Simulator } from '../../lib/testing/index.js'
import { forWholeFile, temporaryFolder } from '../support/clean-up.js'
import { eventOf } from '../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { whyNotShared } from '../support/engines/sharing.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { internals } from '../support/internals.js'
import { jsonLines, runCli, runCliHere, settingsFor, startInTerminal } from '../support/processes/cli.js'
import type { Ended } from '../support/processes/running-process.js'
import { createScene, OUR_ITEM, openMarketplace } from '../support/scene.js'
import { addDeadEntries, addSubscriptions } from '../support/scenes/large-tables.js'
import { gate, until } from '../support/until.js'

describe.each(ENGINE_NAMES)('the command line on %s', (name) => {
  const engine = useEngine(name)
  /** Used by the tests that write nothing. */
  let unchanged: Seeded
  beforeAll(async () => {
    unchanged = await forWholeFile(seeded)
  })

  it('explains with 0 for yes, 1 for no, 2 for an invalid identifier, and prints the next step', async () => {
    const { runEach } = unchanged
    const [yes, no, unknown, ...invalid] = (await runEach([
      ['explain', 'b-paid'],
      ['explain', ' b-late '],
      ['explain', 'b-unknown', '--json'],
      ['explain', 'x'.repeat(300)],
      ['explain', 'b-paid', '--item', 'another-item'],
    ])) as [Ended, Ended, Ended, ...Ended[]]
    expect(yes).toMatchObject({ code: 0, stderr: '' })
    expect(yes.stdout).toMatch(/^b-paid: YES, it may use the app\.\nreason +purchased\n/)
    expect(no.code).toBe(1)
    expect(no.stdout).toMatch(
      /^b-late: NO, .*next step +The payment failed or has not arrived\. .*\nread again +npx marketplace-webhooks refresh b-late\ntrack +npx marketplace-webhooks track '<subscription>' --business b-late\n/s,
    )
    expect(unknown.code).toBe(1)
    expect(jsonLines<Decision>(unknown.stdout)).toMatchObject([
      { reason: 'unknown_business', entitled: false },
    ])
    expect(unknown.stderr).toMatch(/has not searched the platform.* add --config/)
    expect(invalid.map(({ code }) => code)).toEqual([2, 2])
  })

  it('explains a payer whose handler failed by the entry to look at', async () => {
    const { run, env } = await seeded({ failing: true })
    const { code, stdout } = await run(['explain', 'b-paid'])
    expect(code).toBe(0)
    const words = stdout.replace(/\s+/g, ' ')
    expect(words).toContain('next step The purchase is fine; setting it up failed, and')
    const [, entry] = /\nfailed entry +npx marketplace-webhooks journal show (\S+)\n/.exec(stdout) ?? []
    expect(stdout).toContain(`\nreplay        npx marketplace-webhooks journal replay ${entry} --wait\n`)
    const shown = await runCliHere(['journal', 'show', entry as string, '--json'], { env })
    expect(jsonLines<JournalEntry>(shown.stdout)).toMatchObject([{ status: 'dead', business_uid: 'b-paid' }])
  })

  it('prints the history of a business, a page at a time', async () => {
    const { run, runEach } = unchanged
    const [whole, first, text, unknown] = (await runEach([
      ['history', 'b-late', '--json'],
      ['history', 'b-late', '--json', '--limit', '2'],
      ['history', 'b-late'],
      ['history', 'b-unknown'],
    ])) as [Ended, Ended, Ended, Ended]
    const all = jsonLines<HistoryItem>(whole.stdout)
    expect(all.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['delivery', 'change', 'handled']))
    const [, id] = /--before (\S+)/.exec(first.stderr) ?? []
    const rest = await run(['history', 'b-late', '--json', '--before', id as string])
    expect([...jsonLines(first.stdout), ...jsonLines(rest.stdout)]).toEqual(all)
    expect(text).toMatchObject({ code: 0 })
    expect(text.stdout).toContain('purchased -> suspended, no access, cause: event')
    expect(Math.max(...text.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
  })

  it('K438 lists, shows and replays entries of the journal, and records who did what and why', async () => {
    const { run, runEach } = await seeded({ failing: true })
    const [list, text] = (await runEach([
      ['journal', 'list', '--dead', '--json'],
      ['journal', 'list', '--dead'],
    ])) as [Ended, Ended]
    const dead = jsonLines<JournalEntry>(list.stdout)
    expect(dead.length).toBeGreaterThan(0)
    expect(text.stdout).toContain('says-no')
    expect(Math.max(...text.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)

    const { id } = dead[0] as JournalEntry
    const [shown, preview, ...unknown] = (await runEach([
      ['journal', 'show', id],
      ['journal', 'replay', '--dead', '--dry-run', '--json'],
      ['journal', 'show', 'no-such-id'],
      ['journal', 'replay', 'no-such-id'],
    ])) as [Ended, Ended, ...Ended[]]
    expect(shown.stdout).toMatch(/status +dead/)
    expect(shown.stdout).toContain('"purchase_state"')
    expect(unknown).toMatchObject(Array(2).fill({ code: 1, stdout: '' }))
    const changes = dead.filter(({ kind }) => kind === 'change')
    const now = await runEach(changes.map(({ business_uid }) => ['explain', String(business_uid), '--json']))
    const answers = now.map(({ stdout }) => jsonLines<Decision>(stdout)[0]?.entitled)
    expect(new Set(answers)).toEqual(new Set([true, false]))
    expect(jsonLines(preview.stdout)).toEqual([
      {
        matched: dead.length,
        replayed: 0,
        ids: dead.map((each) => each.id).reverse(),
        dryRun: true,
        entries: dead
          .map(({ id, kind, name, business_uid, subscription_uid, status, attempts, error }) => ({
            ...{ id, kind, name, business_uid, subscription_uid, status, attempts, error },
          }))
          .reverse(),
        entitled: Object.fromEntries(changes.map((each, i) => [each.id, answers[i]])),
      },
    ])
    expect(jsonLines((await run(['journal', 'list', '--dead', '--json'])).stdout)).toHaveLength(dead.length)

    expect(await run(['journal', 'replay', id, '--reason', 'ticket 812'])).toMatchObject({ code: 0 })
    const rest = await run(['journal', 'replay', '--dead', '--json', '--reason', 'ticket 7'])
    expect(jsonLines(rest.stdout)[0]).toMatchObject({ replayed: dead.length - 1 })
    expect(await run(['journal', 'replay', '--dead'])).toMatchObject({ code: 1 })
    const actions = await run(['journal', 'list', '--kind', 'action', '--json'])
    const rest7 = dead.slice(1)
    const about = `${rest7.length} ${rest7.length === 1 ? 'entry' : 'entries'}: {"status":"dead"}`
    const businesses = [...new Set(rest7.toReversed().map(({ business_uid }) => business_uid))]
    expect(jsonLines<JournalEntry>(actions.stdout)).toMatchObject([
      // The timeline of each business has the replay of several too.
      ...businesses.toReversed().map((business_uid) => ({
        business_uid,
        payload: {
          ...{ actor: 'ada', action: 'replay', reason: `ticket 7 (one of ${about})` },
          entry_id: rest7.findLast((each) => each.business_uid === business_uid)?.id,
        },
      })),
      { payload: { actor: 'ada', action: 'replay', entry_id: null, reason: `ticket 7 (${about})` } },
      { payload: { actor: 'ada', action: 'replay', reason: 'ticket 812', entry_id: id } },
    ])
    const [shownActions, history] = (await runEach([
      ['journal', 'list', '--kind', 'action'],
      ['history', String(businesses[0])],
    ])) as [Ended, Ended]
    for (const { stdout } of [shownActions, history])
      expect(stdout.replace(/\s+/g, ' ')).toMatch(/ by ada( b-\w+)?: ticket 7 \(one of /)
  })

  it('H72 previews a replay with the rule of the app, or says that the default rule decided', async () => {
    const { env, run } = unchanged
    const file = join(temporaryFolder(), 'options.mjs')
    writeFileSync(
      file,
      `const { MARKETPLACE_CLIENT_ID: clientId, MARKETPLACE_CLIENT_SECRET: clientSecret, ...env } = process.env
export default {
  app: { clientId, clientSecret, purchasableUid: env.MARKETPLACE_PURCHASABLE_UID },
  platform: { baseUrl: env.MARKETPLACE_BASE_URL, authUrl: env.MARKETPLACE_AUTH_URL },
  deliverySecrets: env.DELIVERY_SECRETS.split(','),
  store: env.MARKETPLACE_STORE,
  entitledWhen: () => false,
}`,
    )
    expect(env.MARKETPLACE_STORE).toBeDefined()
    const command = ['journal', 'replay', '--kind', 'change', '--status', 'done', '--business', 'b-paid']
    const ofDefault = await run([...command, '--dry-run', '--json'])
    const ofApp = await runCli([...command, '--dry-run', '--json', '--config', file], { env })
    const answers = [ofDefault, ofApp].map(({ stdout }) =>
      Object.values(jsonLines<{ entitled: Record<string, boolean> }>(stdout)[0]?.entitled ?? {}),
    )
    expect(answers).toEqual([[true], [false]])
    expect(ofDefault.stderr).toMatch(/^`entitled` is by the default rule\..*--config.*\n$/)
    expect(ofApp.stderr).toBe('')
  })

  it('tracks a subscription and refreshes a business; without a worker it prints a warning, and the request stays stored', async () => {
    const { run, platform, open } = await seeded()
    platform.purchase({ business_uid: 'b-lost', payment: 'succeeded', subscription_uid: 's-lost' })
    expect(await run(['track', 's-lost'])).toMatchObject({ code: 2 })
    expect(await run(['track', 's-lost', '--business', 'b-lost'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('is added'),
    })
    const alone = await run(['refresh', 'b-lost', '--wait', '1', '--json'])
    expect(alone.code).toBe(3)
    expect(alone.stderr).toContain('Check that the app runs with its worker on')
    expect(jsonLines(alone.stdout)[0]).toMatchObject({ isRead: false, reason: 'not_read_yet' })

    const marketplace = open()
    await until('the app has read it', () => marketplace.isEntitled('b-lost'))
    if (name === 'PostgreSQL') {
      // Longer than an answer waits for a read. Node runs a timer of more than 24.8 days at once.
      platform.faults.add({ on: 'read', kind: 'slow', ms: 3_000 })
      const beside = await run(['refresh', 'b-lost', '--wait', '999999999', '--json'])
      expect(beside).toMatchObject({ code: 0, stderr: '' })
      expect(jsonLines(beside.stdout)[0]).toMatchObject({ isRead: true, entitled: true })
    }
    await marketplace.close()
    const history = await run(['history', 'b-lost', '--json'])
    const actions = jsonLines<HistoryItem>(history.stdout).filter(({ kind }) => kind === 'action')
    expect(actions).toMatchObject([
      ...(name === 'PostgreSQL' ? [{ action: 'refresh', actor: 'ada' }] : []),
      { action: 'refresh', actor: 'ada' },
      { action: 'track', actor: 'ada', reason: null, subscription_uid: 's-lost' },
    ])
  })

  it('prints that no worker has read a subscription, also if a search for one was answered before', async () => {
    const { run, platform } = await seeded({ searching: 'b-new' })
    platform.purchase({ business_uid: 'b-new', payment: 'succeeded', subscription_uid: 's-new' })
    expect(await run(['track', 's-new', '--business', 'b-new'])).toMatchObject({ code: 0 })
    const { code, stdout, stderr } = await run(['refresh', 'b-new', '--wait', '1', '--json'])
    expect(jsonLines(stdout)).toMatchObject([{ isRead: false, reason: 'not_read_yet' }])
    expect(stderr).toContain('Check that the app runs with its worker on')
    expect(code).toBe(3)
  })

  // On SQLite the command may not share the file with the app.
  if (name === 'PostgreSQL')
    it('prints that no worker has read a subscription that a search has found meanwhile', async () => {
      const { run, platform, env } = await seeded()
      const begun = gate()
      const findSubscriptions = () => begun.opened.then(() => ['s-new'])
      const options = { store: env.MARKETPLACE_STORE as string, platform: { findSubscriptions } }
      const marketplace = openMarketplace(platform, {
        ...options,
        freshness: { waitMs: 0 },
        ...internals({ callTimeoutMs: 30_000 }),
      })
      platform.faults.add({ on: 'delivery', kind: 'drop' })
      platform.faults.add({ on: 'read', kind: 'slow', ms: 9_000 })
      platform.purchase({ business_uid: 'b-new', payment: 'succeeded', subscription_uid: 's-new' })
      expect(await marketplace.isEntitled('b-new')).toBe(false)
      const refreshed = run(['refresh', 'b-new', '--wait', '4', '--json'])
      await until('it has begun', async () => (await marketplace.journal.list({ kind: 'action' })).length > 0)
      await sleep(500)
      begun.open()
      const { code, stdout, stderr } = await refreshed
      expect(jsonLines(stdout)).toMatchObject([
        { isRead: false, reason: 'not_read_yet', search: { answered: true } },
      ])
      expect(stderr).toContain('Check that the app runs with its worker on')
      expect(code).toBe(3)
    })

  it('tracks nothing that the platform does not show, or that it cannot ask for, except with --force', async () => {
    const { run, env } = await seeded()
    const withoutPlatform = { ...env, MARKETPLACE_AUTH_URL: 'http://127.0.0.1:1' }
    const { DELIVERY_SECRETS: _, ...withoutSecret } = env
    const stored = ['subscriptions', 'list', '--business', 'b-late', '--json']
    const before = await run(stored)
    const refused = [
      await run(['track', 'typo', '--business', 'b-late', '--json']),
      await run(['track', 's-paid', '--business', 'b-late', '--json']),
      await runCliHere(['track', 's-x', '--business', 'b-late', '--json'], { env: withoutSecret }),
      await runCliHere(['track', 's-x', '--business', 'b-late', '--json'], { env: withoutPlatform }),
    ]
    // On a busy machine a note may come first.
    const errors = refused.map(({ stdout, stderr }) => ({
      ...{ stdout, ...JSON.parse(stderr.slice(stderr.indexOf('{"error"'))).error },
    }))
    expect(errors).toMatchObject([
      { code: 'platform_record_missing', stdout: '', fix: expect.stringContaining('--force') },
      {
        code: 'platform_record_missing',
        stdout: '',
        fix: expect.stringContaining('belongs to this business'),
      },
      { code: 'config_invalid', stdout: '', message: expect.stringContaining('DELIVERY_SECRETS is not set') },
      { code: 'platform_unreachable', stdout: '', fix: expect.stringContaining('--force') },
    ])
    expect(refused.map(({ code }) => code)).toEqual([1, 1, 2, 3])
    expect(await run(stored)).toEqual(before)
    const forced = ['track', 'late-on-the-platform', '--business', 'b-late', '--force']
    expect(await runCliHere(forced, { env: withoutSecret })).toMatchObject({ code: 0 })
    expect((await run(['explain', 'b-late'])).stdout).toContain('late-on-the-platform')
  })

  const itOnPostgres = name === 'PostgreSQL' ? it : it.skip
  itOnPostgres('A227 refreshes a business without waiting for what events have just named', async () => {
    const { run, platform, env, open } = await seeded()
    const { store } = await openStoreWithSql(env.MARKETPLACE_STORE as string)
    const made = 'made up'
    const slow = platform.faults.add({ on: 'read', kind: 'slow', ms: 15_000, subscription_uid: made })
    await open().start()
    await store.accept([eventOf(made, { businessUid: 'b-paid' })])
    await until('it is being read', () => slow.strikes > 0)
    const { code, stdout, stderr } = await run(['refresh', 'b-paid', '--json'])
    const [decision] = jsonLines<Decision>(stdout)
    expect({ code, stderr, decision }).toMatchObject({ code: 0, stderr: '', decision: { isRead: true } })
    const isBeingRead = { subscription_uid: made, pending: true, failure: null }
    expect(decision?.subscriptions).toContainEqual(expect.objectContaining(isBeingRead))
  })

  it('exports a business, and erases it after the user has typed its uid again', async () => {
    const { run, runEach, env } = await seeded()
    const cwd = temporaryFolder()
    const exported = await run(['export', 'b-paid'])
    expect(JSON.parse(exported.stdout)).toMatchObject({
      business_uid: 'b-paid',
      subscriptions: [{ purchase_state: 'purchased' }],
    })
    const file = join(cwd, 'b-paid.json')
    expect(await run(['export', 'b-paid', '--out', file])).toMatchObject({ code: 0 })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await run(['export', 'b-paid', '--out', file])).toMatchObject({ code: 2 })

    const [unconfirmed, misnamed] = await runEach([
      ['erase', 'b-paid'],
      ['erase', 'b-paid', '--yes', 'b-late'],
    ])
    expect(unconfirmed).toMatchObject({ code: 2, stdout: '' })
    expect(unconfirmed?.stderr).toContain('--yes <uid>')
    expect(misnamed).toMatchObject({ code: 2 })
    const mistyped = startInTerminal(['erase', 'b-paid'], { env })
    await mistyped.prints('Type the uid')
    mistyped.write('b-pai\r')
    expect(await mistyped.ended).toMatchObject({ code: 2 })
    for (const [key, code, why] of [
      ['\x03', 130, 'Nothing was erased: interrupted'],
      ['\x04', 2, 'Nothing was erased: the erasure was not confirmed'],
    ] as const) {
      const left = startInTerminal(['erase', 'b-paid'], { env })
      await left.prints('Type the uid')
      left.write(key)
      expect(await left.ended).toMatchObject({ code, stdout: expect.stringContaining(why) })
    }
    expect(await run(['explain', 'b-paid'])).toMatchObject({ code: 0 })

    const typed = startInTerminal(['erase', 'b-paid'], { env })
    await typed.prints(/deletes 1 subscription of b-paid, [1-9]\d* journal\s+entries that name it, and/)
    await typed.prints('Type the uid')
    typed.write('b-paid\r')
    const erased = await typed.ended
    expect(erased.code).toBe(0)
    expect(erased.stdout).toMatch(/Erased the data of b-paid \([1-9]\d* rows\)\. .*sha256:/s)
    const answers = await runEach([
      ['explain', 'b-paid', '--json'],
      ['explain', 'b-late', '--json'],
    ])
    expect(answers.map(({ code }) => code)).toEqual([1, 1])
    const last = ['erase', 'b-late', '--yes', 'b-late', '--reason', 'request 12 of b-late', '--json']
    expect(await run(last)).toMatchObject({
      code: 0,
      stderr: '',
    })
    const kept = jsonLines<JournalEntry>(
      (await run(['journal', 'list', '--kind', 'action', '--json'])).stdout,
    )
    expect(
      kept.map((each) => [each.name, each.business_uid, (each.payload as { reason: string }).reason]),
    ).toEqual([
      ['erase', auditUid('b-late'), `request 12 of ${auditUid('b-late')}`],
      ['erase', auditUid('b-paid'), null],
      ['export', auditUid('b-paid'), null],
      ['export', auditUid('b-paid'), null],
    ])
    const ofErased = await run(['history', 'b-late'])
    expect(ofErased).toMatchObject({ code: 0, stdout: expect.stringMatching(/erase by .*: request 12 of/) })
  })

  it('erase asks for what it deletes by few rows, however many subscriptions senders made up', async () => {
    const { env } = await seeded()
    const opened = await openStoreWithSql(env.MARKETPLACE_STORE as string)
    await addSubscriptions(opened, 1_200, OUR_ITEM)
    await addDeadEntries(opened, 1_200)
    for (const table of ['subscriptions', 'journal'])
      await opened.sql(`update ${table} set business_uid = 'b-paid' where business_uid like 'b-0%'`)
    await opened.store.close()
    const typed = startInTerminal(['erase', 'b-paid'], { env })
    await typed.prints(/deletes 1000 subscriptions or more of b-paid, \d+ journal\s+entries or more that/)
    typed.write('b-paid\r')
    const { code, stdout } = await typed.ended
    expect(code).toBe(0)
    expect(Number(/\((\d+) rows\)/.exec(stdout)?.[1])).toBeGreaterThan(2_400)
  })

  it('K438 backs up SQLite, and names pg_dump for PostgreSQL', async () => {
    const { run, env } = unchanged
    const copy = join(temporaryFolder(), 'copy.db')
    const backup = await run(['backup', copy, '--json', '--reason', 'ticket 812'])
    if (name === 'PostgreSQL') {
      expect(backup).toMatchObject({ code: 3, stdout: '' })
      expect(backup.stderr).toContain('pg_dump')
      return
    }
    expect(backup).toMatchObject({ code: 0, stderr: '' })
    const ofCopy = { ...env, MARKETPLACE_STORE: `sqlite:${copy}` }
    expect(await runCli(['explain', 'b-paid'], { env: ofCopy })).toMatchObject({ code: 0 })
    expect(await run(['backup', copy])).toMatchObject({ code: 3 })
    const actions = jsonLines<JournalEntry>(
      (await run(['journal', 'list', '--kind', 'action', '--name', 'backup', '--json'])).stdout,
    )
    const reasons = actions.map(({ payload }) => (payload as { reason: string }).reason)
    expect(reasons).toEqual([copy, `ticket 812 (${copy})`])
  })

  it('prints the next step while an app holds its SQLite file, and works beside an app on PostgreSQL', async () => {
    const { env, open } = unchanged
    const marketplace = open()
    await marketplace.start()
    const { code, stdout, stderr } = await runCli(['explain', 'b-paid'], { env })
    if (whyNotShared(name) === undefined) expect(code).toBe(0)
    else {
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
      expect(stderr).toContain('Use the console')
    }
  })

  it('prints colours only on a terminal, and not with NO_COLOR', async () => {
    const { env } = unchanged
    const inTerminal = (more: Record<string, string>) =>
      startInTerminal(['explain', 'b-paid'], { env: { ...env, ...more } }).ended
    const [piped, coloured, plain] = await Promise.all([
      runCli(['explain', 'b-paid'], { env }),
      inTerminal({ TERM: 'xterm' }),
      inTerminal({ NO_COLOR: '1' }),
    ])
    expect(piped.stdout).not.toContain('\u001b')
    expect(coloured.stdout).toContain('\u001b[32mYES')
    expect(plain.stdout).toContain('YES')
    expect(plain.stdout).not.toContain('\u001b')
  })

  /**
   * A database with two businesses, one of them suspended. The app that wrote it is closed. It has searched the platform for
   * subscriptions of `searching`, which has none.
   */
  async function seeded({ failing = false, searching = '' } = {}): Promise<Seeded> {
    const store = await engine.freshAddress()
    const platformOptions = searching ? { platform: { findSubscriptions: async () => [] } } : {}
    const options = {
      store,
      ...platformOptions,
      handlers: { retryDelaysMs: [] },
      ...internals({ pollMs: 50 }),
    }
    const scene = await createScene(options)
    const { platform } = scene
    scene.marketplace.onPurchaseChange(() => {
      if (failing) throw new Error('says-no')
    })
    await scene.marketplace.start()
    platform.purchase({ business_uid: 'b-paid', payment: 'succeeded', subscription_uid: 's-paid' })
    const { uid } = platform.purchase({ business_uid: 'b-late', payment: 'succeeded' })
    await until('both are read', async () => {
      const both = await Promise.all(['b-paid', 'b-late'].map((each) => scene.marketplace.isEntitled(each)))
      return both.every(Boolean)
    })
    platform.paymentIssue(uid)
    await platform.settled()
    await until('the suspension is read', async () => !(await scene.marketplace.isEntitled('b-late')))
    if (searching) {
      platform.install(searching)
      await until('it is searched', async () => {
        await scene.marketplace.isEntitled(searching)
        return (await scene.marketplace.explain(searching)).search?.answered === true
      })
    }
    await scene.marketplace.settled()
    await scene.marketplace.close()
    const env = settingsFor(platform, store)
    return {
      platform,
      env,
      run: (args) => runCliHere(args, { env }),
      async runEach(commands) {
        const results: Ended[] = []
        for (const args of commands) results.push(await runCliHere(args, { env }))
        return results
      },
      open: () => openMarketplace(platform, options),
    }
  }
})

interface Seeded {
  platform: Simulator
  env: Record<string, string>
  run(args: readonly string[]): Promise<Ended>
  runEach(commands: readonly (readonly string[])[]): Promise<Ended[]>
  /** Opens the app again, with a worker. */
  open(): Marketplace
}
