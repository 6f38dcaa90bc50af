import { spawnSync } from 'node:child_process'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { createOutput } from '../../lib/cli/terminal/output.js'
import type { HistoryItem, JournalEntry, PlatformReport, SubscriptionStatus } from '../../lib/index.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { forWholeFile, temporaryFolder } from '../support/clean-up.js'
import { ENGINE_NAMES, ENGINES, useEngine } from '../support/engines/engines.js'
import { whyNotShared } from '../support/engines/sharing.js'
import { openStoreWithSql, pictureOf } from '../support/engines/store-with-sql.js'
import { notice } from '../support/events.js'
import { CLI, jsonLines, runCli, runCliHere, settingsFor, startCli } from '../support/processes/cli.js'
import { createScene } from '../support/scene.js'
import { classify } from '../support/scenes/classify.js'
import { NUMBERS } from '../support/scenes/many-subscriptions.js'
import { until } from '../support/until.js'

describe.each(ENGINE_NAMES)('K277 what commands do on %s', (name) => {
  const engine = useEngine(name)
  let store: string
  let env: Record<string, string>
  let entries: JournalEntry[]
  beforeAll(async () => {
    store = await forWholeFile(() => engine.freshAddress())
    env = settingsFor(await forWholeFile(() => lived(store)), store)
    entries = jsonLines(await stdoutOf('journal', 'list', '--limit', '1000'))
  })
  const stdoutOf = async (...args: string[]) => (await runCliHere([...args, '--json'], { env })).stdout

  it('a dry run writes nothing: of one replay, of several, and of an import with new, known and bad lines', async () => {
    const dead = entries.find(({ status }) => status === 'dead') as JournalEntry
    const lines = 'subscription_uid,business_uid\ns-paid,b-paid\ns-0,b-0\ns-0,b-0\ns-1,\n'
    const before = await pictureOf(store)
    await stdoutOf('journal', 'replay', dead.id, '--dry-run')
    await stdoutOf('journal', 'replay', '--dead', '--dry-run')
    const dryRun = await runCliHere(['import', '-', '--dry-run', '--json'], { env, input: lines })
    expect(await pictureOf(store)).toEqual(before)
    expect(jsonLines(dryRun.stdout).map(({ line, result }) => [line, result])).toEqual([
      [2, 'known'],
      [3, 'new'],
      [4, 'known'],
      [5, 'invalid'],
      [undefined, undefined],
    ])
    expect(dryRun.code).toBe(1)
  })

  it('a dry run of replays puts no read first and requests no search, as a question of the app would', async () => {
    const own = await engine.freshAddress()
    const ofOwn = { env: { ...env, MARKETPLACE_STORE: own } }
    await runCliHere(['migrate'], ofOwn)
    await runCliHere(['track', 's-waiting', '--business', 'b-waiting', '--force'], ofOwn)
    const opened = await openStoreWithSql(own)
    await opened.sql('update subscriptions set refresh_at = refresh_at - 1000')
    for (const business of ['b-waiting', 'b-unsearched'])
      await opened.sql(`insert into journal
        (id, kind, name, topic, key, business_uid, status, attempts, received_at, settled_at, payload) values
        ('${business}', 'change', '', 'change', '${business}', '${business}', 'dead', 5, 1, 1, '{}')`)
    await opened.store.close()
    const file = join(temporaryFolder(), 'options.mjs')
    const library = new URL('../lib/index.js', pathToFileURL(CLI)).href
    writeFileSync(
      file,
      `import { optionsFromEnvironment } from '${library}'
      const options = optionsFromEnvironment()
      export default { ...options, platform: { ...options.platform, findSubscriptions: async () => [] } }`,
    )
    const before = await pictureOf(own)
    const dryRun = await runCli(
      ['journal', 'replay', '--dead', '--dry-run', '--config', file, '--json'],
      ofOwn,
    )
    expect(jsonLines(dryRun.stdout)).toMatchObject([
      { matched: 2, entitled: { 'b-waiting': null, 'b-unsearched': false } },
    ])
    expect(await pictureOf(own)).toEqual(before)
  })

  it('journal list has exactly the entries that each filter names, alone and together', async () => {
    const one = entries.find(({ status, kind }) => status === 'dead' && kind === 'event') as JournalEntry
    const middle = entries[Math.floor(entries.length / 2)] as JournalEntry
    const filters: [args: string[], fits: (entry: JournalEntry) => boolean][] = [
      [['--dead'], ({ status }) => status === 'dead'],
      [['--retrying'], ({ status, attempts }) => status === 'pending' && attempts > 0],
      [['--status', 'pending'], ({ status }) => status === 'pending'],
      [['--status', 'unhandled'], ({ status }) => status === 'unhandled'],
      [['--kind', 'event'], ({ kind }) => kind === 'event'],
      [['--kind', 'change'], ({ kind }) => kind === 'change'],
      [['--name', one.name], (entry) => entry.name === one.name],
      [['--business', 'b-paid'], (entry) => entry.business_uid === 'b-paid'],
      [['--subscription', 's-paid'], (entry) => entry.subscription_uid === 's-paid'],
      [['--since', middle.receivedAt], ({ receivedAt }) => receivedAt >= middle.receivedAt],
      [['--until', middle.receivedAt], ({ receivedAt }) => receivedAt < middle.receivedAt],
    ]
    for (const [args, fits] of filters) {
      const listed = jsonLines<JournalEntry>(await stdoutOf('journal', 'list', ...args))
      expect([args, listed.map(({ id }) => id)]).toEqual([args, entries.filter(fits).map(({ id }) => id)])
      expect([args, listed.length > 0 && listed.length < entries.length]).toEqual([args, true])
    }
    const { name: event, business_uid, subscription_uid, receivedAt } = one
    const together = ['--dead', '--kind', 'event', '--name', event, '--business', String(business_uid)]
    together.push('--subscription', String(subscription_uid), '--since', receivedAt)
    expect(jsonLines(await stdoutOf('journal', 'list', ...together))).toEqual([one])
    expect(await stdoutOf('journal', 'list', ...together, '--until', receivedAt)).toBe('')
    const retrying = await runCliHere(['journal', 'list', '--retrying'], { env })
    expect(retrying.stdout).toMatch(/^.*Z {2}retrying {2}\S+\n +purchasable_subscription\/update b-late/)
    const both = await runCliHere(['journal', 'list', '--dead', '--status', 'done'], { env })
    expect(both.code).toBe(2)
  })

  it('journal export prints each delivery as one that is recognised the same, without its values, and only deliveries', async () => {
    const before = await pictureOf(store)
    const deliveries = entries.filter(({ kind }) => kind === 'event' || kind === 'unrecognised')
    expect(deliveries.length).toBeGreaterThan(4)
    for (const { id, name: event, payload } of deliveries) {
      const printed = await stdoutOf('journal', 'export', '--fixture', id)
      expect(printed).toBe(
        (await runCliHere(['journal', 'export', id, '--fixture', '--json'], { env })).stdout,
      )
      const [fixture] = jsonLines(printed)
      const found = classify(fixture)
      expect([event, found.recognised ? found.name : '']).toEqual([event, event])
      expect(JSON.stringify(payload)).toMatch(/b-(paid|late|none)|odd/)
      expect(printed).not.toMatch(/b-(paid|late|none)|s-(paid|late)|ours/)
    }
    const change = entries.find(({ kind }) => kind === 'change')?.id as string
    const refused = await runCliHere(['journal', 'export', '--fixture', change], { env })
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('Cannot export the entry: it is no delivery, but of the kind change\n')
    const own = await engine.freshAddress()
    const { platform, marketplace, target } = await createScene({ store: own, worker: false })
    const body = `${'['.repeat(3_000)}${']'.repeat(3_000)}`
    const { id } = (await (await fetch(target, { method: 'POST', body })).json()) as { id: string }
    await marketplace.close()
    const nested = await runCliHere(['journal', 'export', '--fixture', id], {
      env: settingsFor(platform, own),
    })
    expect(nested).toMatchObject({ code: 2, stdout: '' })
    expect(nested.stderr).toContain('its payload is a text, or was nested too deeply to be stored')
    const unknown = await runCliHere(['journal', 'export', '--fixture', 'no-such-id'], { env })
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(unknown.stderr).toContain('No entry has the id no-such-id')
    expect(await pictureOf(store)).toEqual(before)
  })

  it('platform-report prints what is stored, without a value, and says when an app stores what it has seen', async () => {
    const before = await pictureOf(store)
    const { code, stdout, stderr } = await runCliHere(['platform-report', '--json'], { env })
    const [report] = jsonLines<PlatformReport>(stdout)
    expect([code, report?.stored.entries]).toEqual([0, entries.length])
    expect(report?.stored.events.map(({ event, deliveries }) => [event, deliveries])).toEqual(
      [...new Set(entries.filter(({ kind }) => kind === 'event').map((entry) => entry.name)), 'unrecognised']
        .sort()
        .map((event) => [
          event,
          entries.filter(({ kind, name: named }) => (kind === 'event' ? named : kind) === event).length,
        ]),
    )
    expect(stderr).toContain('every ten minutes')
    const text = await runCliHere(['platform-report'], { env })
    expect(text.stdout).toMatch(
      /^The newest \d+ entries of the journal, since \S+ \S+Z\n\napplication\/installed: 1 entry\n/,
    )
    expect(text.stdout).toMatch(/^data\.business_id +string \d+$/m)
    expect(text.stdout).toMatch(
      /^purchase_state +string 2 +(purchased 1, suspended 1|suspended 1, purchased 1)$/m,
    )
    for (const shown of [stdout, text.stdout]) expect(shown).not.toMatch(/b-(paid|late|none)|s-(paid|late)/)
    expect(await pictureOf(store)).toEqual(before)
  })

  it('platform-report prints what an app has seen: headers, user agents, tokens and refusals', async () => {
    const nothing = { env: { ...env, MARKETPLACE_STORE: await engine.freshAddress() } }
    await runCliHere(['migrate'], nothing)
    expect((await runCliHere(['platform-report'], nothing)).stdout).toContain(
      'No app on this database has seen anything yet.',
    )
    const own = await engine.freshAddress()
    const { platform, marketplace, target } = await createScene({ store: own })
    platform.addBusiness('b-1')
    platform.faults.add({ on: 'read', kind: 'status', status: 403 })
    const headers = { 'content-type': 'application/json', 'user-agent': 'shop/1.2', 'x-shop': '1' }
    const body = JSON.stringify(notice('b-1', 's-1'))
    expect((await fetch(target, { method: 'POST', headers, body })).status).toBe(200)
    await until('the read was refused', () => platform.requests.some(({ status }) => status === 403))
    await marketplace.settled()
    await marketplace.close()
    const { stdout } = await runCliHere(['platform-report'], { env: settingsFor(platform, own) })
    const shown = stdout.slice(stdout.indexOf('Seen since')).replace(/\s+/g, ' ')
    expect(shown).toMatch(
      /^Seen since \S+ \S+Z purchasable_subscription\/update: 1 delivery, 1 examined headers: (\S+ 1, )*x-shop 1, (\S+ 1, )*\S+ 1 user agents: shop\/1\.2 1 Tokens: (\d+), lifetimes: none \3 Replies /,
    )
    expect(shown).toMatch(
      / without the record or the token that was asked for: 1 shape CALL STATUS COUNT TYPE FIELDS read 403 \d+ application\/json errors: array, errors\[\]\.code: string, errors\[\]\.message: string, errors\[\]: object, success: boolean $/,
    )
  })

  it('history prints each item in a line: what it concerns, its outcome, and how to find a failed entry', async () => {
    for (const business of ['b-paid', 'b-late', 'b-none']) {
      const items = jsonLines<HistoryItem>(await stdoutOf('history', business))
      const { stdout } = await runCliHere(['history', business], { env })
      const shown = stdout.replace(/\s+/g, ' ').trim()
      const sentences = items.map((item) => {
        const about = item.subscription_uid ? ` (${item.subscription_uid})` : ''
        if (item.kind === 'delivery') return `delivery ${item.name}${about}`
        if (item.kind === 'change')
          return `change not read -> ${item.to}, ${item.entitledAfter ? '' : 'no '}access, cause: event${about}`
        if (item.kind !== 'handled') throw new Error(`not expected here: ${item.kind}`)
        const what = item.of === 'change' ? 'the change' : item.name
        return `handled ${what}: ${item.error ? `${item.outcome}: Error: says-no [${item.entryId}]` : 'done'}`
      })
      const times = items.map(({ at }) => `${at.slice(0, 19).replace('T', ' ')}Z`)
      expect(shown).toBe(['WHEN WHAT', ...sentences.map((each, i) => `${times[i]} ${each}`)].join(' '))
    }
  })

  it('a list goes on at the place that its note names, to the end of a page and beyond', async () => {
    for (const [command, option, limit] of [
      [['journal', 'list'], '--before', 3],
      [['history', 'b-paid'], '--before', 2],
      [['subscriptions', 'list'], '--after', 1],
    ] as const) {
      const all = jsonLines(await stdoutOf(...command, '--limit', '1000'))
      const found: unknown[] = []
      let place: string[] = []
      for (let page = 0; page <= all.length; page++) {
        const shown = await runCliHere([...command, '--limit', String(limit), ...place, '--json'], { env })
        const rows = jsonLines(shown.stdout)
        found.push(...rows)
        const next = new RegExp(`${option} (\\S+)`).exec(shown.stderr)?.[1]
        // A full page names the next one, any other ends the list.
        expect([command, next !== undefined]).toEqual([command, rows.length === limit])
        if (next === undefined) break
        place = [option, next]
      }
      expect([command, found]).toEqual([command, all])
    }
    const together = ['--business', 'b-paid', '--state', 'purchased', '--why', 'purchased']
    const [one] = jsonLines<SubscriptionStatus>(await stdoutOf('subscriptions', 'list', ...together))
    expect(one).toMatchObject({ subscription_uid: 's-paid' })
    expect(await stdoutOf('subscriptions', 'list', ...together, '--item', 'odd')).toBe('')
  })

  it('journal replay takes the oldest, at most --limit, and says how many are left', async () => {
    const dead = entries.filter(({ status }) => status === 'dead').map(({ id }) => id)
    expect(dead.length).toBeGreaterThan(1)
    const args = ['journal', 'replay', '--dead', '--limit', '1', '--business', 'b-paid', '--json']
    const { stdout, stderr } = await runCliHere(args, { env })
    const ofBusiness = entries.filter(
      ({ id, business_uid }) => dead.includes(id) && business_uid === 'b-paid',
    )
    expect(jsonLines(stdout)).toEqual([
      { matched: ofBusiness.length, replayed: 1, ids: [ofBusiness.at(-1)?.id], dryRun: false },
    ])
    expect(stderr).toContain(`For the other ${ofBusiness.length - 1} run it again, or raise --limit.`)
    const [action] = jsonLines<JournalEntry>(await stdoutOf('journal', 'list', '--kind', 'action'))
    expect(action).toMatchObject({ name: 'replay', business_uid: 'b-paid' })
    expect(action?.payload).toMatchObject({ reason: '1 entry: {"status":"dead"}' })
  })

  it('journal replay --dry-run shows the event, the business and the error of each entry', async () => {
    const { code, stdout } = await runCliHere(['journal', 'replay', '--dead', '--dry-run'], { env })
    const shown = stdout.replace(/\s+/g, ' ')
    const dead = jsonLines<JournalEntry>(await stdoutOf('journal', 'list', '--dead'))
    expect({ code, dead: dead.length > 1 }).toEqual({ code: 0, dead: true })
    for (const { id, name: event, business_uid, error } of dead)
      expect(shown).toMatch(new RegExp(`dead ${id} ${event || 'change'} ${business_uid} .*${error}`))
  })

  it('two that replay the dead entries at once replay each of them once', async () => {
    const args = ['journal', 'replay', '--dead', '--json']
    const dead = jsonLines<JournalEntry>(await stdoutOf('journal', 'list', '--dead'))
    const both = await Promise.all([runCliHere(args, { env }), runCliHere(args, { env })])
    const ids = both.flatMap(({ stdout }) => jsonLines<{ ids: string[] }>(stdout).flatMap((each) => each.ids))
    expect(ids.sort()).toEqual(dead.map(({ id }) => id).sort())
  })

  if (whyNotShared(name) === undefined)
    it('journal replay --wait ends with 1 if a handler fails again, and with 0 once it has handled them', async () => {
      const own = await engine.freshAddress()
      const { marketplace, deliver, platform } = await createScene({
        store: own,
        handlers: { retryDelaysMs: [] },
      })
      let isMended = false
      marketplace.on('application/installed', () => {
        if (!isMended) throw new Error('says-no')
      })
      const { id } = await deliver(sampleDelivery('application/installed'))
      await until('it is dead', async () => (await marketplace.journal.get(id))?.status === 'dead')
      const ofOwn = { env: settingsFor(platform, own) }
      const again = await runCliHere(['journal', 'replay', id, '--wait', '30', '--json'], ofOwn)
      expect(again.code).toBe(1)
      expect(jsonLines(again.stdout)).toMatchObject([
        { replayed: 1, outcomes: [{ id, outcome: 'failed', error: 'Error: says-no' }] },
      ])
      isMended = true
      const mended = await runCliHere(['journal', 'replay', '--dead', '--wait'], ofOwn)
      expect(mended).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(new RegExp(`^handled +${id}`, 'm')),
      })
    })

  if (whyNotShared(name) === undefined)
    it('journal replay --wait ends with 1 if the app has no handler of an entry any more', async () => {
      const own = await engine.freshAddress()
      const { marketplace, deliver, platform } = await createScene({ store: own, worker: false })
      const { id } = await deliver(sampleDelivery('application/installed'))
      const opened = await openStoreWithSql(own)
      const replaying = runCliHere(['journal', 'replay', id, '--wait', '30', '--json'], {
        env: settingsFor(platform, own),
      })
      await until('it waits', async () => (await marketplace.journal.get(id))?.status === 'pending')
      await opened.sql(`delete from lanes`)
      await opened.sql(`update journal set status = 'unhandled' where id = '${id}'`)
      const { code, stdout } = await replaying
      expect({ code, lines: jsonLines(stdout) }).toMatchObject({
        code: 1,
        lines: [{ replayed: 1, outcomes: [{ id, outcome: 'unhandled', error: null }] }],
      })
      await opened.store.close()
    })

  it('subscriptions list --csv prints all that match with a header, and import takes it', async () => {
    const all = jsonLines<SubscriptionStatus>(await stdoutOf('subscriptions', 'list', '--limit', '1000'))
    const { code, stdout } = await runCliHere(['subscriptions', 'list', '--csv'], { env })
    const [header, ...lines] = stdout.trimEnd().split('\n')
    expect({ code, header }).toEqual({
      code: 0,
      header: 'subscription_uid,business_uid,answer,reason,purchase_state,purchasable_uid,read_at,failure',
    })
    expect(lines.map((line) => line.split(',').slice(0, 2))).toEqual(
      all.map(({ subscription_uid, business_uid }) => [subscription_uid, business_uid]),
    )
    expect(lines).toContainEqual(expect.stringMatching(/^s-paid,b-paid,yes,purchased,purchased,[^,]+,2/))
    const dryRun = await runCliHere(['import', '-', '--dry-run', '--json'], { env, input: stdout })
    expect(dryRun.code).toBe(0)
    expect(jsonLines(dryRun.stdout)).toHaveLength(all.length + 1)
    const one = await runCliHere(['subscriptions', 'list', '--csv', '--limit', '1'], { env })
    expect(one.stdout.trimEnd().split('\n')).toEqual([header, lines[0]])
  })

  it('a command over the database needs neither secrets nor the address of tokens', async () => {
    const { MARKETPLACE_CLIENT_SECRET: _, DELIVERY_SECRETS: __, MARKETPLACE_AUTH_URL: ___, ...few } = env
    for (const args of [
      ['explain', 'b-paid'],
      ['history', 'b-paid'],
      ['subscriptions', 'list'],
      ['journal', 'list'],
      ['export', 'b-paid'],
    ])
      expect({ args, ...(await runCliHere(args, { env: few })) }).toMatchObject({ args, code: 0, stderr: '' })
    const file = join(temporaryFolder(), 'options.mjs')
    const library = new URL('../lib/index.js', pathToFileURL(CLI)).href
    writeFileSync(
      file,
      `import { optionsFromEnvironment } from '${library}'\nexport default optionsFromEnvironment(process.env)`,
    )
    const withFile = await runCli(['explain', 'b-paid', '--config', file], { env: few })
    expect(withFile).toMatchObject({ code: 0, stderr: '' })
    const strict = await runCli(['register', 'https://app.example', '--config', file], { env: few })
    expect(strict).toMatchObject({ code: 2, stderr: expect.stringContaining('DELIVERY_SECRETS is not set') })
    const doctor = await runCliHere(['doctor'], { env: few })
    expect(doctor).toMatchObject({ code: 1, stdout: expect.stringContaining('DELIVERY_SECRETS is not set') })
    const { MARKETPLACE_CLIENT_ID: ____, ...less } = few
    expect(await runCliHere(['explain', 'b-paid'], { env: less })).toMatchObject({ code: 2 })
  })

  it('K438 the journal has what was done beside a reason of any length', async () => {
    const pathOf = (length: number) => `/nowhere/${'p'.repeat(length - '/nowhere/'.length)}`
    for (const [given, path, reason] of [
      ['ticket 7', pathOf(300), `ticket 7 (${pathOf(300)})`],
      ['r'.repeat(600), pathOf(20), `${'r'.repeat(477)} (${pathOf(20)})`],
      ['r'.repeat(600), pathOf(300), `${'r'.repeat(249)} (${pathOf(248)})`],
      [undefined, pathOf(600), pathOf(500)],
    ] as const) {
      // It fails after the record, on each database for another reason.
      await runCliHere(['backup', path, ...(given === undefined ? [] : ['--reason', given])], { env })
      const [action] = jsonLines<JournalEntry>(await stdoutOf('journal', 'list', '--kind', 'action'))
      expect(action?.payload).toMatchObject({ action: 'backup', reason })
    }
  })

  it('explain says that an answer is not known yet, and shows 20 subscriptions and how many more there are', async () => {
    const lines = Array.from({ length: 22 }, (_, i) => `many-${i},b-many`)
    const input = ['subscription_uid,business_uid', ...lines].join('\n')
    await runCliHere(['import', '-', '--no-wait'], { env, input })
    // Of those that were never read only 20 count.
    const opened = await openStoreWithSql(store)
    await opened.sql(`update subscriptions set unread = 0 where business_uid = 'b-many'`)
    await opened.store.close()
    const { code, stdout } = await runCliHere(['explain', 'b-many'], { env })
    expect(code).toBe(3)
    expect(stdout).toMatch(/^b-many: NOT KNOWN YET, so it may not use the app\.\n/)
    expect(stdout.match(/^many-\d+ +- /gm)).toHaveLength(20)
    expect(stdout).toMatch(/\nAnd 2 more: see --json\.\n$/)
  })

  it('--quiet makes a first read quiet, with each command that has it', async () => {
    const file = join(temporaryFolder(), 'customers.csv')
    const commands: [uid: string, args: string[]][] = [
      ['q-track', ['track', 'q-track', '--business', 'b-q', '--force']],
      ['q-requested', ['import', file, '--no-wait']],
      ['q-import', ['import', file, '--wait', '1']],
    ]
    for (const isQuiet of [true, false])
      for (const [each, args] of commands) {
        const uid = `${each}-${isQuiet}`
        writeFileSync(file, `subscription_uid,business_uid\n${uid},b-q\n`)
        const given = [...args.map((text) => (text === each ? uid : text)), ...(isQuiet ? ['--quiet'] : [])]
        await runCliHere(given, { env })
        const { subscriptions = [] } = await pictureOf(store)
        expect([uid, subscriptions.find(({ subscription_uid }) => subscription_uid === uid)]).toMatchObject([
          uid,
          { quiet_until_read: isQuiet ? 1 : 0 },
        ])
      }
  })

  if (whyNotShared(name) === undefined)
    it('import ends with 3 when the reads of a line still fail at the end', async () => {
      const own = await engine.freshAddress()
      const { platform } = await createScene({ store: own, worker: false })
      platform.purchase({ business_uid: 'b-slow', payment: 'succeeded', subscription_uid: 's-slow' })
      // One read fails at once, and another one is answered late.
      const send: typeof fetch = async (...request) => {
        if (String(request[0]).includes('s-fails')) throw new Error('the connection was reset')
        if (String(request[0]).includes('s-slow')) await new Promise((resolve) => setTimeout(resolve, 600))
        return fetch(...request)
      }
      const { baseUrl, authUrl } = platform
      const { marketplace } = await createScene({ store: own, platform: { baseUrl, authUrl, fetch: send } })
      await marketplace.start()
      platform.install('b-fails')
      const { code, stdout } = await runCliHere(['import', '-', '--wait', '4', '--json'], {
        env: settingsFor(platform, own),
        input: 'subscription_uid,business_uid\ns-fails,b-fails\ns-slow,b-slow\n',
      })
      expect(jsonLines(stdout).at(-1)).toMatchObject({ summary: { ended: 'complete', read: 1, pending: 1 } })
      expect(code).toBe(3)
    })
})

describe('K277 import', () => {
  it('reports a line that is not UTF-8, or too long, and takes the others', async () => {
    const { env } = await emptyStore()
    const file = join(temporaryFolder(), 'customers.csv')
    const long = `"${'x'.repeat(1024 * 1024)}`
    const text = [
      'name,subscription_uid,business_uid',
      'A,s1,b1',
      'M\u00fcller,s2,b2',
      `${long},s3,b3`,
      'B,s4,b4',
    ]
    writeFileSync(file, Buffer.from(text.join('\n'), 'latin1'))
    const { code, stdout, stderr } = await runCliHere(['import', file, '--no-wait', '--json'], { env })
    const [summary, ...lines] = jsonLines(stdout).reverse()
    expect(lines.reverse().map(({ line, result, why }) => [line, result, why])).toEqual([
      [2, 'requested', null],
      [3, 'invalid', 'it is not UTF-8'],
      [4, 'invalid', 'it is longer than 1 MiB'],
      [5, 'requested', null],
    ])
    expect({ code, stderr, summary }).toMatchObject({
      code: 1,
      stderr: '',
      summary: { summary: { requested: 2, invalid: 2 } },
    })
    const json = ['s5', 'M\u00fcller', 's6'].map((uid) =>
      JSON.stringify({ subscription_uid: uid, business_uid: 'b' }),
    )
    writeFileSync(file, Buffer.from(json.join('\n'), 'latin1'))
    const ofJson = await runCliHere(['import', file, '--no-wait', '--json'], { env })
    expect(ofJson.code).toBe(1)
    expect(jsonLines(ofJson.stdout).map(({ result }) => result)).toEqual([
      'requested',
      'invalid',
      'requested',
      undefined,
    ])
  })

  it.each([['--no-wait'], ['--wait', '1']])(
    'ends with the error of the store, which is none of a line: %j',
    async (...how) => {
      const { store, env } = await emptyStore()
      await refuseInserts(store, 'subscriptions')
      const { code, stdout, stderr } = await runCliHere(['import', '-', '--json', ...how], {
        env,
        input: 'subscription_uid,business_uid\ns1,b1\n',
      })
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
      expect(jsonLines(stderr)).toMatchObject([{ error: { code: 'store_unavailable', exitCode: 3 } }])
    },
  )

  it.each(['SIGINT', 'SIGTERM'] as const)('ends at %s with 130 and a summary', async (signal) => {
    const { env } = await emptyStore()
    const running = startCli(['import', '-', '--json'], { env })
    running.end('subscription_uid,business_uid\ns1,b1\n')
    await running.prints('No read is finished so far')
    running.signal(signal)
    const { code, stdout } = await running.ended
    expect(code).toBe(130)
    expect(jsonLines(stdout).at(-1)).toMatchObject({ summary: { ended: 'aborted', pending: 1 } })
  })
})

describe('K277 a process of the command line', () => {
  it.each([
    ['its results', 'import many.csv --dry-run --json', 0],
    ['its errors, with its own code', 'history nobody 2>&1 >/dev/null', 1],
    ['its notes beside its work', 'dev --port 0 2>&1 >/dev/null', 0],
  ])('ends well when the reader of %s has ended, as `head` does', async (_what, command, code) => {
    const { store, env } = await emptyStore()
    const script = `{ "$NODE" "$CLI" ${command}; echo "ended $?" >&3; } 3>ended | true; cat ended`
    const { PATH } = process.env
    const cwd = dirname(store.slice('sqlite:'.length))
    const lines = Array.from({ length: 500 }, (_, i) => `s${i},b${i}`)
    writeFileSync(join(cwd, 'many.csv'), ['subscription_uid,business_uid', ...lines].join('\n'))
    const { stdout } = spawnSync('bash', ['-c', script], {
      cwd,
      env: { ...env, PATH, NODE: process.execPath, CLI },
      encoding: 'utf8',
      input: 'quit\n',
    })
    expect(stdout).toBe(`ended ${code}\n`)
  })

  it('writes an export that only its user can read, whatever the umask', async () => {
    const { env } = await paid()
    for (const umask of [0o000, 0o377]) {
      const file = join(temporaryFolder(), 'b.json')
      const before = process.umask(umask)
      const { code } = await runCliHere(['export', 'b-paid', '--out', file], { env }).finally(() =>
        process.umask(before),
      )
      expect({ code, mode: statSync(file).mode & 0o777 }).toEqual({ code: 0, mode: 0o600 })
    }
  })

  it('leaves no file of an export that fails', async () => {
    const { store, env } = await emptyStore()
    await refuseInserts(store, 'journal')
    const file = join(temporaryFolder(), 'b.json')
    const { code, stderr } = await runCliHere(['export', 'b1', '--out', file, '--json'], { env })
    expect(jsonLines(stderr)).toMatchObject([{ error: { code: 'store_unavailable' } }])
    expect({ code, isLeft: existsSync(file) }).toEqual({ code: 3, isLeft: false })
  })

  it('names the former database after a restore whose action cannot be recorded', async () => {
    const { store, env } = await emptyStore()
    await refuseInserts(store, 'journal')
    const backup = store.slice('sqlite:'.length)
    const file = join(temporaryFolder(), 'm.db')
    writeFileSync(file, 'no database')
    const { code, stdout, stderr } = await runCliHere(['restore', backup, '--json'], {
      env: { ...env, MARKETPLACE_STORE: `sqlite:${file}` },
    })
    expect(jsonLines(stderr)).toMatchObject([{ error: { code: 'store_unavailable' } }])
    expect({ code, result: jsonLines(stdout) }).toMatchObject({
      code: 3,
      result: [{ path: file, formerPath: expect.stringContaining('.before-restore-') }],
    })
  })

  it('refresh --all spreads the reads over --within, at most a day and by default ten minutes', async () => {
    const { store, env } = await emptyStore()
    const lines = Array.from({ length: 3_000 }, (_, i) => `s${i},b${i}`)
    await runCliHere(['import', '-', '--no-wait'], {
      env,
      input: ['subscription_uid,business_uid', ...lines].join('\n'),
    })
    const opened = await openStoreWithSql(store)
    await opened.sql(
      'update subscriptions set unread = 0, settled_generation = generation, refresh_at = null',
    )
    await opened.store.close()
    for (const [args, minutes] of [
      [['--within', '1440'], 1440],
      [[], 10],
      [['--within', '1'], 1],
    ] as const) {
      const before = Date.now()
      const { code, stdout } = await runCliHere(['refresh', '--all', ...args, '--json'], { env })
      expect([code, jsonLines(stdout)]).toEqual([0, [{ subscriptions: 3_000, withinMinutes: minutes }]])
      const { subscriptions = [], journal } = await pictureOf(store)
      const last = Math.max(...subscriptions.map(({ refresh_at }) => Number(refresh_at) - before))
      // Four a second take 750 s, and of so many one is due close to the end.
      expect(last / 1_000).toBeLessThan(Math.min(minutes * 60, 750) + 5)
      expect(last / 1_000).toBeGreaterThan(Math.min(minutes * 60, 750) * 0.9)
      expect(JSON.parse(String(journal?.at(-1)?.payload))).toMatchObject({
        reason: `all within ${minutes} min`,
      })
    }
    const { stdout: text } = await runCliHere(['refresh', '--all'], { env })
    expect(text).toMatch(/^Reads of 3000 subscriptions are requested\. .*a stopped one, once it runs\.$/m)
  })

  it('records the person of --actor, else of the setting, else the user, and at most 500 characters of the reason', async () => {
    const { env } = await paid()
    for (const [args, setting, actor] of [
      [['--actor', 'bo'], 'ada', 'bo'],
      [[], 'ada', 'ada'],
      [['--actor', ''], ' ada ', 'ada'],
      [['--actor', ' '], '', userInfo().username],
    ] as const) {
      await runCliHere(['erase', 'nobody', '--yes', 'nobody', '--reason', 'r'.repeat(600), ...args], {
        env: { ...env, MARKETPLACE_ACTOR: setting },
      })
      const [entry] = jsonLines<JournalEntry>(
        (await runCliHere(['journal', 'list', '--kind', 'action', '--json'], { env })).stdout,
      )
      expect(entry?.payload).toMatchObject({ actor, action: 'erase', reason: 'r'.repeat(500) })
    }
  })

  it('records the person that an env file names, also with copy, which takes no other setting', async () => {
    const { store, env } = await emptyStore()
    const { MARKETPLACE_ACTOR: _, ...others } = env
    const file = join(temporaryFolder(), '.env')
    writeFileSync(file, 'MARKETPLACE_ACTOR=bo')
    const to = `sqlite:${temporaryFolder()}/to.db`
    for (const args of [
      ['track', 's1', '--business', 'b1', '--force'],
      ['copy', store, to],
    ])
      expect(await runCli([...args, '--env', file], { env: others })).toMatchObject({ code: 0 })
    const { journal = [] } = await pictureOf(to)
    expect(journal.map(({ payload }) => JSON.parse(String(payload)))).toMatchObject([
      { action: 'track', actor: 'bo' },
      { action: 'copy', actor: 'bo' },
    ])
  })

  async function paid() {
    const store = await ENGINES.SQLite().freshAddress()
    return { env: settingsFor(await lived(store), store) }
  }
})

describe('K277 the command copy', () => {
  it('that Ctrl+C interrupts ends with 130 and leaves nothing, and then succeeds', async () => {
    const folder = temporaryFolder()
    const { sql, store } = await openStoreWithSql(`sqlite:${folder}/from.db`)
    await sql(`insert into journal (id, kind, name, topic, key, status, attempts, received_at, payload)
      ${NUMBERS(30_000)} select 'id-' || n, 'event', 'application/installed', 'event:application/installed',
        'lane ' || n, 'done', 0, 1, '{}' from numbers`)
    await store.close()
    const args = ['copy', `sqlite:${folder}/from.db`, `sqlite:${folder}/to.db`, '--json']
    const running = startCli(args, { cwd: folder })
    await until('the target is there', () => statSync(`${folder}/to.db`, { throwIfNoEntry: false }))
    running.signal('SIGINT')
    expect(await running.ended).toMatchObject({ code: 'SIGINT', stdout: '' })
    expect((await pictureOf(`sqlite:${folder}/to.db`)).journal).toEqual([])
    const again = await runCli(args, { cwd: folder })
    expect(again).toMatchObject({ code: 0, stderr: '' })
    expect(jsonLines(again.stdout)).toMatchObject([{ entries: { done: 30_000 } }])
  })
})

describe('the output', () => {
  it('of the progress fits into a line of the terminal, and names lines by their number in the file', async () => {
    let printed = ''
    const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 20 })
    stderr.on('data', (chunk) => {
      printed += chunk
    })
    const out = createOutput({ stdout: new PassThrough(), stderr, env: {}, isJson: false })
    out.progress('x'.repeat(50))
    expect(printed).toBe(`\r\u001b[K${'x'.repeat(19)}`)
    const { env } = await emptyStore()
    const input = 'subscription_uid,business_uid\ns1,b1\n\ns2,\n'
    const shown = await runCliHere(['import', '-', '--dry-run'], { env, input, isTerminal: true })
    expect(shown.stderr).toMatch(/line 2: .*line 4: 0 read, 0 missing, 0 refused, 1 invalid/s)
    expect(shown.stdout).toMatch(/^line 4: invalid/m)
  })

  it('as CSV has no formula, and quotes around commas and quotes', async () => {
    const { env } = await emptyStore()
    await runCliHere(['track', '=1+1', '--business', 'b,"1"', '--force'], { env })
    const { stdout } = await runCliHere(['subscriptions', 'list', '--csv'], { env })
    expect(stdout).toMatch(/^'=1\+1,"b,""1""",unknown,not_read_yet,,,,$/m)
  })

  it('as CSV is taken by import as it was, whatever an identifier begins and ends with', async () => {
    const { env } = await emptyStore()
    const uids = ['=1+1', '+1', '-1', '@a', "'b", "'=c", "''-d", 'e,"f"', ' g', 'h ', ' "i', '\u00a0j', 'k']
    const lines = uids.map((uid) => JSON.stringify({ subscription_uid: uid, business_uid: uid })).join('\n')
    await runCliHere(['import', '-', '--no-wait'], { env, input: lines })
    const { stdout: input } = await runCliHere(['subscriptions', 'list', '--csv'], { env })
    const other = await emptyStore()
    expect(await runCliHere(['import', '-', '--no-wait'], { env: other.env, input })).toMatchObject({
      code: 0,
    })
    const { stdout } = await runCliHere(['subscriptions', 'list', '--json'], { env: other.env })
    const stored = jsonLines<SubscriptionStatus>(stdout)
    expect(stored.map(({ subscription_uid }) => subscription_uid).sort()).toEqual(uids.sort())
    for (const { subscription_uid, business_uid } of stored) expect(business_uid).toBe(subscription_uid)
  })

  const SECRETS = ['canary-one "two" ü/%', 'canary-one', 'canary-pw%2F1']

  it('L1 hides a secret in every form, in results, notes, progress, warnings and errors, as text and as JSON', () => {
    for (const isJson of [false, true]) {
      const printed: string[] = []
      const stream = () => Object.assign(new PassThrough(), { isTTY: true })
      const streams = { stdout: stream(), stderr: stream() }
      for (const each of Object.values(streams)) each.on('data', (chunk) => printed.push(String(chunk)))
      const out = createOutput({ ...streams, env: { NO_COLOR: '1' }, isJson })
      out.hide([...SECRETS, undefined])
      for (const secret of SECRETS)
        for (const text of [secret, encodeURIComponent(secret), JSON.stringify({ secret })]) {
          out.result({ text }, () => text)
          out.note(text)
          out.progress(text)
          out.warning(text)
          out.error({ name: 'Stop', message: text, fix: text, code: 'usage', exitCode: 2 })
        }
      expect(printed.join('')).not.toMatch(/canary|two|pw/)
      expect(printed.length).toBeGreaterThan(40)
    }
  })

  it('are masked whole where one contains another, in whatever order they become known', () => {
    for (const secrets of [
      ['canary-1', 'canary-1-of-two'],
      ['canary-1-of-two', 'canary-1'],
    ]) {
      let printed = ''
      const stdout = new PassThrough().on('data', (chunk) => {
        printed += chunk
      })
      const out = createOutput({ stdout, stderr: new PassThrough(), env: {}, isJson: false })
      for (const secret of secrets) out.hide([secret])
      out.result(null, () => '[canary-1-of-two] [canary-1]')
      expect(printed).toBe('[…] […]\n')
    }
  })
})

/** A database with done, dead, retrying, pending and unhandled entries of several kinds and businesses. The app is closed. */
async function lived(store: string) {
  const { platform, marketplace, deliver } = await createScene({ store, handlers: { retryDelaysMs: [] } })
  marketplace.onPurchaseChange(() => {
    throw new Error('says-no')
  })
  marketplace.on('purchasable_subscription/update', () => {
    throw new Error('says-no')
  })
  marketplace.on('purchasable_subscription/create', () => {})
  for (const business of ['paid', 'late']) {
    platform.purchase({
      business_uid: `b-${business}`,
      payment: business === 'paid' ? 'succeeded' : 'failed',
      subscription_uid: `s-${business}`,
    })
    await deliver(notice(`b-${business}`, `s-${business}`))
  }
  await platform.settled()
  await deliver({ odd: true })
  await until('four are dead', async () => (await marketplace.journal.list({ status: 'dead' })).length >= 4)
  await marketplace.settled()
  await marketplace.close()
  const { baseUrl, authUrl } = platform
  const later = await createScene({ store, platform: { baseUrl, authUrl } })
  later.marketplace.on('purchasable_subscription/update', () => {
    throw new Error('says-no')
  })
  later.marketplace.on('application/installed', () => {})
  await later.deliver(notice('b-late', 's-late'))
  await until('one is tried again', async () => {
    const found = await later.marketplace.journal.list({ status: 'retrying' })
    return found.length > 0 && (await later.marketplace.health()).counts?.requested === 0
  })
  await later.marketplace.close()
  // This one nobody has tried.
  const last = await createScene({ store, worker: false, platform: { baseUrl, authUrl } })
  await last.deliver(sampleDelivery('application/installed', { business_id: 'b-none' }))
  await last.marketplace.close()
  return platform
}

/** From now on the database refuses each new row of the table. */
async function refuseInserts(store: string, table: string) {
  const opened = await openStoreWithSql(store)
  await opened.sql(`create trigger broken before insert on ${table} begin select json('broken'); end`)
  await opened.store.close()
}

async function emptyStore() {
  const store = await ENGINES.SQLite().freshAddress()
  const env = settingsFor({ baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' }, store)
  await runCliHere(['migrate'], { env })
  return { store, env }
}
