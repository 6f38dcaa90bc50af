import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import type { ImportSummary } from '../../lib/index.js'
import { storeFor } from '../../lib/store-option.js'
import type { Simulator } from '../../lib/testing/index.js'
import { temporaryFolder } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { jsonLines, runCliHere, settingsFor, startCli } from '../support/processes/cli.js'
import { openMarketplace, startPlatform } from '../support/scene.js'
import { until } from '../support/until.js'

/** A line of `--json`, with the names of the columns. */
interface ImportLine extends Pick<ImportSummary['notRead'][number], 'line' | 'why'> {
  subscription_uid: string | null
  business_uid: string | null
  result: string
}

const NOBODY_ANSWERS = 'No read is finished so far'
const NOBODY = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' }

describe('a file of customers', () => {
  it.each([
    ['CSV', 'subscription_uid,business_uid\ns1,b1\ns2,b2\n'],
    [
      'CSV with other columns, quotes, CRLF and a byte order mark',
      '\ufeffname,"business_uid",subscription_uid\r\n"A, ""Ltd""\nLondon",b1,s1\r\nB,b2,s2\r\n',
    ],
    ['CSV with semicolons', 'business_uid;subscription_uid\nb1;s1\n\nb2; s2'],
    [
      'CSV with separators and an end of a line in a quoted name of a column',
      'subscription_uid;business_uid;"Name, of\n""the"" company, city; or both"\ns1;b1;A\ns2;b2;B',
    ],
    ['CSV with tabs', 'subscription_uid\tbusiness_uid\ns1\tb1\ns2\tb2'],
    [
      'JSON Lines',
      '{"subscription_uid":"s1","business_uid":"b1"}\n\n{"business_uid":"b2","subscription_uid":"s2","x":1}',
    ],
  ])('is read as %s', async (_form, text) => {
    const { lines, summary, code } = await dryRun(text)
    expect(lines.map(({ subscription_uid, business_uid }) => [subscription_uid, business_uid])).toEqual([
      ['s1', 'b1'],
      ['s2', 'b2'],
    ])
    expect(summary).toMatchObject({ new: 2 })
    expect(code).toBe(0)
  })

  it('reports each unusable line by its number, and uses the others', async () => {
    const text = `subscription_uid,business_uid,note\ns1,b1,"two\nlines"\n,b2,\ns3,b3\ns4,b4,x\n${'x'.repeat(300)},b5,\ns6,b6,"open\ns7,b7,`
    const { lines, code } = await dryRun(text)
    expect(code).toBe(1)
    expect(lines.map(({ line, result }) => [line, result])).toEqual([
      [2, 'new'],
      [4, 'invalid'],
      [5, 'invalid'],
      [6, 'new'],
      [7, 'invalid'],
      [8, 'invalid'],
    ])
    expect(lines.map(({ why }) => why)).toEqual([
      null,
      expect.stringMatching(/^Cannot use subscription_uid: /),
      'it has 2 columns, but the header has 3',
      null,
      expect.stringMatching(/^Cannot use subscription_uid: /),
      'a quote is not closed',
    ])
    const json = await dryRun(
      '{"subscription_uid":"s1","business_uid":"b1"}\n{"broken"\n[]\n{"subscription_uid":7}',
    )
    expect(json.lines.map(({ line, why }) => [line, why])).toEqual([
      [1, null],
      [2, 'it is not a JSON object'],
      [3, 'it is not a JSON object'],
      [4, expect.stringMatching(/^Cannot use business_uid: /)],
    ])
  })

  it.each([
    ['', 'it is empty'],
    ['uid,business\ns1,b1', 'no column subscription_uid and no business_uid'],
    ['subscription_uid,business_uid,"name\ns1,b1', 'a quote is not closed'],
    ['[{"subscription_uid":"s1"}]', 'it is a JSON array'],
    [Buffer.from([0x73, 0xff, 0xfe, 0x0a]), 'not UTF-8'],
  ])('without a usable line ends the command with 2 before anything is done: %j', async (text, why) => {
    const file = join(temporaryFolder(), 'customers.csv')
    writeFileSync(file, text)
    const { code, stdout, stderr } = await runCliHere(['import', file], {
      env: settingsFor(NOBODY, 'sqlite:none.db'),
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(why)
  })
})

describe.each(ENGINE_NAMES)('import on %s', (name) => {
  const engine = useEngine(name)

  it('only requests reads with --no-wait; a later app makes them, and a second import finds all of them read', async () => {
    const { platform, env, file, count } = await customers(120)
    const asked = await runCliHere(['import', file, '--no-wait', '--json'], { env })
    expect(asked.code).toBe(0)
    expect(jsonLines(asked.stdout).at(-1)).toMatchObject({ summary: { requested: count } })
    const dry = await runCliHere(['import', file, '--dry-run', '--json'], { env })
    expect(jsonLines(dry.stdout).at(-1)).toMatchObject({ summary: { known: count } })

    const marketplace = openMarketplace(platform, { store: env.MARKETPLACE_STORE as string })
    await until(
      'the app has read them',
      async () => (await marketplace.health()).counts?.requested === 0,
      60_000,
    )
    if (name === 'SQLite') await marketplace.close()
    const again = await runCliHere(['import', file, '--json'], { env })
    expect(again).toMatchObject({ code: 0, stderr: '' })
    expect(jsonLines(again.stdout).at(-1)).toMatchObject({ summary: { read: count, ended: 'complete' } })
    expect(reads(platform)).toBe(count)
  })

  it('continues after a kill', async () => {
    // On PostgreSQL the kill must come before all are read. On SQLite nobody reads them before it.
    const { platform, env, file, count } = await customers(name === 'PostgreSQL' ? 250 : 50)
    const options = { store: env.MARKETPLACE_STORE as string }
    const beside = name === 'PostgreSQL' ? openMarketplace(platform, options) : undefined
    const first = startCli(['import', file, '--json'], { env })
    if (beside) await until('some are read', () => jsonLines(whole(first.stdout())).length >= 60)
    else await first.prints(NOBODY_ANSWERS)
    first.signal('SIGKILL')
    expect(await first.ended).toMatchObject({ code: 'SIGKILL' })
    const done = jsonLines<ImportLine>(whole(first.stdout())).length
    expect(done).toBeLessThan(count)

    const marketplace = beside ?? openMarketplace(platform, options)
    const isRead = async () => {
      const { counts } = await marketplace.health()
      return counts?.requested === 0 && counts.subscriptions > 0
    }
    await until('the request is read', isRead)
    if (!beside) {
      await marketplace.close()
      const rest = await runCliHere(['import', file, '--no-wait'], { env })
      expect(rest).toMatchObject({ code: 0 })
      return
    }
    const second = await runCliHere(['import', file, '--json'], { env })
    expect(jsonLines(second.stdout).at(-1)).toMatchObject({ summary: { read: count, ended: 'complete' } })
    expect(second.code).toBe(0)
    // No subscription was read twice.
    expect(reads(platform)).toBe(count)
  })

  it('ends with 3 and the next step when no worker reads', async () => {
    const { env, file, count } = await customers(3)
    const { code, stdout, stderr } = await runCliHere(['import', file, '--wait', '1', '--json'], { env })
    expect(code).toBe(3)
    expect(jsonLines(stdout).at(-1)).toMatchObject({ summary: { pending: count, ended: 'unanswered' } })
    expect(stderr).toContain('--no-wait')
    const many = await customers(300)
    const cut = await runCliHere(['import', many.file, '--wait', '1', '--json'], { env: many.env })
    const lines = jsonLines<ImportLine>(cut.stdout).slice(0, -1)
    const last = Math.max(...lines.map(({ line }) => line))
    expect(last).toBeLessThan(301)
    expect(cut.stderr).toContain(`It has requested nothing after line ${last} of the file.`)
  })

  it('stops at Ctrl+C with 130 and a summary; its requests stay stored', async () => {
    const { env, file } = await customers(3)
    const running = startCli(['import', file, '--json'], { env })
    await running.prints(NOBODY_ANSWERS)
    running.signal('SIGINT')
    const { code, stdout } = await running.ended
    expect(code).toBe(130)
    expect(jsonLines(stdout).at(-1)).toMatchObject({ summary: { ended: 'aborted', pending: 3 } })
  })

  if (name === 'PostgreSQL')
    it('lists subscriptions that the platform does not show, and makes no changes with --quiet', async () => {
      const { platform, env } = await customers(2)
      const marketplace = openMarketplace(platform, { store: env.MARKETPLACE_STORE as string })
      const changes: string[] = []
      marketplace.onPurchaseChange(({ business_uid }) => void changes.push(business_uid))
      const text = 'subscription_uid,business_uid\ns0,b0\ns-gone,b0\ns1,b1\ns1,b-nobody\n'
      const file = join(temporaryFolder(), 'mixed.csv')
      writeFileSync(file, text)
      const { code, stdout, stderr } = await runCliHere(['import', file, '--quiet'], { env })
      expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
      expect(stdout).toMatch(/^line 3: missing: s-gone of b0: platform_record_missing/m)
      expect(stdout).toMatch(/^line 5: refused: s1 of b-nobody: /m)
      expect(stdout).toContain('2 read, 1 missing, 1 refused, 0 invalid, 0 pending.')
      expect(changes).toEqual([])
    })

  /** A platform with this many purchases and no deliveries, the file that names them, and a store with its tables. */
  async function customers(count: number) {
    const platform = await startPlatform()
    const store = await engine.freshAddress()
    const env = settingsFor(platform, store)
    const lines = Array.from({ length: count }, (_, i) => {
      platform.purchase({ business_uid: `b${i}`, payment: 'succeeded', subscription_uid: `s${i}` })
      return `s${i},b${i}`
    })
    const file = join(temporaryFolder(), 'customers.csv')
    writeFileSync(file, ['subscription_uid,business_uid', ...lines].join('\n'))
    await createTables(store)
    return { platform, env, file, count }
  }
})

async function dryRun(text: string) {
  const store = `sqlite:${join(temporaryFolder(), 'marketplace.db')}`
  await createTables(store)
  const env = settingsFor(NOBODY, store)
  const { code, stdout } = await runCliHere(['import', '-', '--dry-run', '--json'], { env, input: text })
  const all = jsonLines(stdout) as unknown as (ImportLine & { summary?: Record<string, unknown> })[]
  return { code, lines: all.slice(0, -1), summary: all.at(-1)?.summary }
}

async function createTables(address: string) {
  const store = storeFor(address, systemClock)
  await store.open()
  await store.close()
}

/** The text without its last line if that line is incomplete. */
function whole(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

function reads(platform: Simulator): number {
  return platform.requests.filter(({ endpoint, status }) => endpoint === 'read' && status === 200).length
}
