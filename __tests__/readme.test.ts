import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { REASONS } from '../lib/entitlement/decide.js'
import { ERROR_CODES, type ErrorCode } from '../lib/errors.js'
import { EVENTS, type EventName } from '../lib/events/registry.js'
import { readOptions } from '../lib/options.js'
import { INSTRUMENTS, SPANS } from '../lib/telemetry/instruments.js'
import { FAULT_KINDS, sampleDelivery } from '../lib/testing/index.js'
import { HANDLER_RETRY_DELAYS_MS } from '../lib/work/call-handlers.js'
import { VERIFY_DELAYS_MS } from '../lib/work/read-schedule.js'
import { createProject, type Project } from './installed-package.js'

const LIB = join(__dirname, '..', 'lib')
const README = readFileSync(join(__dirname, '..', 'README.md'), 'utf8')

describe('the README on events', () => {
  const rows = tableOf('Events')

  it('has every event with its wire pair and tokens, in the order in which they are told apart', () => {
    const told = rows.map(({ Event, 'Wire pair': pair, Tokens }) => [names(Event)[0], names(pair), Tokens])
    expect(told).toEqual(
      Object.entries(EVENTS).map(([name, { entity_name, event_type, tokens }]) => [
        name,
        [entity_name, event_type],
        tokens.join(', '),
      ]),
    )
  })

  it('has the documented fields of their data', () => {
    for (const { Event, data } of rows) {
      const [name] = names(Event) as [EventName]
      const documented = Object.keys(sampleDelivery(name).data)
      if (name === 'purchasable_subscription/updated')
        expect(documented).toEqual(expect.arrayContaining(names(data)))
      else expect(names(data)).toEqual(documented)
    }
  })
})

describe('the README on options', () => {
  const rows = tableOf('Options')
  const optionNames = rows.map((row) => names(row.Option)[0] as string)

  it('has every option, in the order of the code', () => {
    expect(optionNames).toEqual(optionsInCode())
  })

  it('has the defaults of the code', () => {
    const used: Record<string, unknown> = {
      ...flat(readOptions(MINIMAL)),
      ...DEFAULTS_ELSEWHERE,
    }
    for (const row of rows) {
      const [name] = names(row.Option) as [string]
      const told = row.Default as string
      if (told === 'required') expect(() => read(without(name))).toThrow(name.split('.').at(-1))
      else if (Array.isArray(used[name]) && told !== 'none')
        expect([name, told.split(', ').map(amount)]).toEqual([name, used[name]])
      else if (typeof used[name] === 'number') expect([name, amount(told)]).toEqual([name, used[name]])
      else if (typeof used[name] === 'string') expect([name, names(told)[0]]).toEqual([name, used[name]])
    }
    const numbers = Object.keys(used).filter((name) => typeof used[name] === 'number')
    expect(optionNames).toEqual(expect.arrayContaining(numbers))
  })

  it('has the bounds of the code: both ends are taken, what is beyond them is refused', () => {
    const bounded = rows.filter(({ Bounds }) => /\d .*\bto\b|\d to \d/.test(Bounds ?? ''))
    expect(bounded.length).toBeGreaterThan(15)
    for (const row of bounded) {
      const [name] = names(row.Option) as [string]
      const [least, most] = (row.Bounds as string)
        .replace(/^.*each /, '')
        .split(' to ')
        .map(amount)
      const asValue = (number: number) => (row.Bounds?.includes('each') ? [number] : number)
      for (const number of [least, most] as number[]) {
        expect(() => read(given(name, asValue(number)))).not.toThrow()
      }
      for (const number of [(least as number) - 1, (most as number) + 1]) {
        expect(() => read(given(name, asValue(number)))).toThrow(name.split('.').at(-1))
      }
    }
  })

  it('has the re-reads after an event', () => {
    const [, told] =
      README.match(/A read that lags behind its event is repeated\*\*: after ([\w ,]+), until/) ?? []
    expect(told?.split(', ').map(amount)).toEqual(VERIFY_DELAYS_MS)
  })
})

describe('the README on errors', () => {
  it('has every code with its status and whether to try again', () => {
    const told = tableOf('Error codes').map(({ code, Status, Retryable, Meaning }) => {
      expect(Meaning).toMatch(/\S\.$/)
      return [names(code)[0], { status: Number(Status), retryable: Retryable === 'yes' }]
    })
    expect(told).toEqual(Object.entries(ERROR_CODES))
  })

  it('has every reply to a delivery with its status', () => {
    const told = tableOf('Replies to deliveries').flatMap(({ Reply }) => {
      const status = Number(/^\d+/.exec(Reply as string)?.[0])
      return names(Reply)
        .filter((name) => name in ERROR_CODES)
        .map((code) => [code, status])
    })
    const source = ['take-delivery.ts', 'body.ts', 'body-text.ts', 'body-read-before.ts']
      .map((file) => readFileSync(join(LIB, 'express', file), 'utf8'))
      .join()
    const given = [...source.matchAll(/(?:MarketplaceError|unreadable)\(\s*'(\w+)'/g)].map(
      ([, code]) => code as ErrorCode,
    )
    const expected = new Set(given.filter((code) => code !== 'argument_invalid'))
    expect(Object.fromEntries(told)).toEqual(
      Object.fromEntries([...expected].map((code) => [code, ERROR_CODES[code].status])),
    )
  })
})

describe('the README on decisions', () => {
  it('has every reason in the words of the code', () => {
    const told = tableOf('The gate').map(({ reason, entitled, known, Meaning }) => [
      names(reason)[0],
      { entitled: entitled === 'true', known: known === 'true', words: Meaning },
    ])
    const ranked = Object.entries(REASONS).sort(([, a], [, b]) => a.rank - b.rank)
    expect(told).toEqual(
      ranked.map(([name, { entitled, known, words }]) => [name, { entitled, known, words }]),
    )
  })

  it('has the reasons that only the guard gives', () => {
    const source = readFileSync(join(LIB, 'express', 'require-entitlement.ts'), 'utf8')
    const given = [...source.matchAll(/reason: '(\w+)'/g)].map(([, reason]) => reason)
    expect(given.length).toBeGreaterThan(0)
    for (const reason of given) expect(section('The gate')).toContain(`\`${reason}\` (`)
  })
})

describe('the README on operating and testing', () => {
  it('has every instrument with its kind, unit, attributes and description', () => {
    const told = tableOf('Operating', 'Metric').map((row) => Object.values(row))
    expect(told).toEqual(
      Object.entries(INSTRUMENTS).map(([name, { kind, unit, attributes, description }]) => [
        `\`marketplace_webhooks.${name}\``,
        `${kind}, \`${unit}\``,
        attributes,
        description,
      ]),
    )
  })

  it('has every span', () => {
    const told = tableOf('Operating', 'Span').map(({ Span, Meaning }) => [names(Span)[0], Meaning])
    expect(told).toEqual(
      Object.entries(SPANS).map(([name, meaning]) => [`marketplace_webhooks.${name}`, meaning]),
    )
  })

  it('has every fault of the simulator', () => {
    const told = tableOf('Testing your app').map((row) => [names(row.Fault)[0], row['What it does']])
    expect(told).toEqual(Object.entries(FAULT_KINDS).map(([kind, { does }]) => [kind, does]))
  })

  it('links only to headings and files that are there', () => {
    const headings = [...README.matchAll(/^## (.*)$/gm)].map(([, title = '']) =>
      title.toLowerCase().replaceAll(' ', '-'),
    )
    const links = [...README.matchAll(/\]\(([^)]+)\)/g)].map(([, target = '']) => target)
    expect(
      links.filter(
        (link) =>
          !(link.startsWith('#')
            ? headings.includes(link.slice(1))
            : existsSync(join(__dirname, '..', link))),
      ),
    ).toEqual([])
  })
})

describe('the code in the README', () => {
  const snippets = [...README.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ''], i) => ({
    code,
    file: /^\/\/ ([\w-]+\.m?[jt]s)$/m.exec(code)?.[1] ?? `snippet-${i + 1}.ts`,
  }))
  let project: Project

  beforeAll(() => {
    project = createProject()
    project.write('prelude.ts', PRELUDE)
    for (const { file, code } of snippets) {
      const known = PRELUDE_NAMES.filter((name) => !declares(code, name))
      const own = file.endsWith('.mjs') ? code : `import { ${known.join(', ')} } from './prelude.js'\n${code}`
      project.write(file, own)
      // The same text as TypeScript: JavaScript is checked as strictly as the rest.
      if (file.endsWith('.mjs')) project.write(file.replace(/\.mjs$/, '.mts'), own)
      else project.write(`run-${file}`, `${runs(file)}\n`)
    }
  })
  afterAll(() => project?.remove())

  it('has its types in order', async () => {
    const files = snippets.map(({ file }) => file.replace(/\.mjs$/, '.mts'))
    const { code, stdout } = await project.tsc(files, { module: 'nodenext', skipLibCheck: true })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  })

  it('gives a stranger a gate that works: the first app does what the README says, under plain node', async () => {
    const [, expected = ''] = README.match(/^```text\n([\s\S]*?)^```$/m) ?? []
    const lines = expected.trim().split('\n')
    const port = await freePort()
    const child = spawn(process.execPath, ['first-app.mjs'], {
      cwd: project.folder,
      env: { ...process.env, PORT: String(port) },
    })
    try {
      const printed = await linesOf(child, lines.length)
      // What a handler prints and what a request prints may cross each other.
      for (const about of ['GET', 'business-1']) {
        expect(printed.filter((line) => line.startsWith(about))).toEqual(
          lines.filter((line) => line.startsWith(about)),
        )
      }
      const reply = await fetch(`http://localhost:${port}/reports`, {
        headers: { 'x-business': 'business-1' },
      })
      expect([reply.status, await reply.json()]).toMatchObject([402, { code: 'not_entitled' }])
    } finally {
      child.kill('SIGKILL')
    }
  })

  for (const { file, code: text } of snippets.filter((each) => !each.file.endsWith('.mjs'))) {
    it(`runs: ${file}`, async () => {
      const { code, stdout, stderr } = await project.tsx(`run-${file}`, {
        ...APP_ENV,
        PORT: String(await freePort()),
      })
      const complaints = stderr.replace(/^.*(ExperimentalWarning|node --trace-warnings).*\n/gm, '')
      expect({ code, complaints }).toEqual({ code: 0, complaints: '' })
      for (const [phrase, printed] of Object.entries(PRINTED)) {
        if (text.includes(phrase)) expect(stdout).toContain(printed)
      }
    })
  }
})

/** A script that runs a snippet to its end. The app in it serves, and has to end by itself when it is told to. */
function runs(file: string): string {
  const module = `./${file.replace(/\.ts$/, '.js')}`
  if (file !== 'app.ts') return `await import('${module}')\nprocess.exit(0)`
  return `const { marketplace } = await import('${module}')
await marketplace.start()
const reply = await fetch('http://localhost:' + process.env.PORT + '/healthz')
console.log(reply.status, await reply.text())
process.kill(process.pid, 'SIGTERM')`
}

/** What a snippet must have printed that holds a phrase: it did what it says, and not just nothing. */
const PRINTED: Record<string, string> = {
  "process.once('SIGTERM'": '200 {"status":"ok","problems":[]}\n',
  'registrar.registerWebhook(': 'application/uninstalled created\n',
  'explanation, subscriptions } = await marketplace.explain(': 'false unknown_business ',
  'marketplace.journal.replayAll(': 'ok [] {',
  'sampleDelivery(': 'application installed business-1\n',
  'platform.settled(': "purchase_state: 'canceled'",
}

/** What the snippets go on from, as the README has it by then: an app that stands, with a business that has bought. */
const PRELUDE = `
import express from 'express'
import { createMarketplace } from 'marketplace-webhooks'
import { createSimulator } from 'marketplace-webhooks/testing'

const credentials = { clientId: 'my-app', clientSecret: 'my-client-secret' }
export const platform = createSimulator({ ...credentials, apps: [{ purchasableUid: 'my-item' }] })
export const options = {
  app: { ...credentials, purchasableUid: 'my-item' },
  platform: await platform.start(),
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
  store: 'sqlite::memory:',
}
export const marketplace = createMarketplace(options)
export const app = express()
platform.purchase({ business_uid: 'business-1', payment: 'succeeded', subscription_uid: 'subscription-1' })
process.env.BUSINESS_UID = 'business-1'
`
const PRELUDE_NAMES = ['platform', 'options', 'marketplace', 'app']

const APP_ENV = {
  CLIENT_ID: 'my-app',
  CLIENT_SECRET: 'my-client-secret',
  DELIVERY_SECRETS: 'q8Zr3mW5xK1vT7yB9nL2cD4f,b7Xk2pR9wM4tZ6yH1nQ8sV3d',
  PLATFORM_BASE_URL: 'http://127.0.0.1:1',
  PLATFORM_AUTH_URL: 'http://127.0.0.1:1',
}

const MINIMAL = {
  app: { clientId: 'my-app', clientSecret: 'my-client-secret' },
  platform: { baseUrl: 'https://api.platform.example', authUrl: 'https://auth.platform.example' },
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
}

/** Defaults that stand beside the code that uses them. */
const DEFAULTS_ELSEWHERE = { 'worker.handlerRetryDelaysMs': HANDLER_RETRY_DELAYS_MS }

function read(options: unknown) {
  return readOptions(options)
}

/** The minimal options with one more, or without one, by its dotted name. */
function given(name: string, value: unknown): unknown {
  const [last, ...folders] = name.split('.').reverse() as [string, ...string[]]
  const options = structuredClone(MINIMAL) as Record<string, unknown>
  let group = options
  for (const folder of folders.reverse()) {
    group[folder] ??= {}
    group = group[folder] as Record<string, unknown>
  }
  group[last] = value
  return options
}

function without(name: string): unknown {
  return given(name, undefined)
}

function flat(value: object, path: string[] = []): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) =>
      typeof each === 'object' && !Array.isArray(each) && name !== 'clock'
        ? Object.entries(flat(each, [...path, name]))
        : [[[...path, name].join('.'), each]],
    ),
  )
}

/** The dotted names of the interface `MarketplaceOptions`, read from its source. */
function optionsInCode(): string[] {
  const source = readFileSync(join(LIB, 'options.ts'), 'utf8')
  const [, body = ''] = source.match(/export interface MarketplaceOptions[^\n]*\{\n([\s\S]*?)^\}/m) ?? []
  const found: string[] = []
  const folders: { name: string; indent: number }[] = []
  // A union of one line is split, so that its fields stand at the start of a line like the others.
  for (const line of body.replace(/\{ (?=\w+\?)|; (?=\w+\?)/g, '{\n      ').split('\n')) {
    const [, space = '', name = '', rest = ''] = /^( +)(\w+)\??:(.*)$/.exec(line) ?? []
    if (name === '') continue
    while ((folders.at(-1)?.indent ?? -1) >= space.length) folders.pop()
    const path = [...folders.map((folder) => folder.name), name].join('.')
    const isGroup = rest.trim() === '{' || rest.trim() === ''
    // A group is an option of its own only where it can be something else than its fields, as `worker: false`.
    if (!isGroup || name === 'worker') found.push(path)
    if (isGroup) folders.push({ name, indent: space.length })
  }
  return found
}

const UNITS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  KiB: 1_024,
  MiB: 1_048_576,
}

/** "10 min" or "4" as a number, in ms or bytes. */
function amount(text: string): number {
  const [, number, unit] = /^(\d+)(?: (\w+))?$/.exec(text.trim()) ?? []
  const factor = unit === undefined ? 1 : UNITS[unit]
  if (number === undefined || factor === undefined) throw new Error(`"${text}" is no amount`)
  return Number(number) * factor
}

function section(title: string): string {
  const text = README.split(/^## /m).find((each) => each.startsWith(`${title}\n`))
  if (text === undefined) throw new Error(`the README has no section "${title}"`)
  return text
}

/** The rows of a section's first table, or of the one whose first column is called `first`. */
function tableOf(title: string, first?: string): Record<string, string>[] {
  const tables = section(title).match(/(?:^\|.*\|\n)+/gm) ?? []
  for (const table of tables) {
    const [head = [], , ...rows] = table.trim().split('\n').map(cells)
    if (first !== undefined && head[0] !== first) continue
    return rows.map((row) =>
      Object.fromEntries(head.map((name, i) => [name.replaceAll('`', ''), row[i] ?? ''])),
    )
  }
  throw new Error(`the section "${title}" has no such table`)
}

function cells(row: string): string[] {
  return row
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
}

/** What stands between backticks. */
function names(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string)
}

function declares(code: string, name: string): boolean {
  return new RegExp(`\\b(const|let|function|import)\\b[^=\\n]*\\b${name}\\b[^=\\n]*(=|from)`).test(code)
}

/** The first `count` lines a process prints. Rejects with all it said when it ends, or takes too long. */
function linesOf(child: ChildProcess, count: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let [out, all] = ['', '']
    const fail = () => reject(new Error(`it printed only:\n${all}`))
    const timer = setTimeout(fail, 15_000)
    child.once('exit', fail)
    child.stderr?.on('data', (data) => {
      all += data
    })
    child.stdout?.on('data', (data) => {
      out += data
      all += data
      const lines = out.split('\n').slice(0, -1)
      if (lines.length < count) return
      clearTimeout(timer)
      resolve(lines)
    })
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
