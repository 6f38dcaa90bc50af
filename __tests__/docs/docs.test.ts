import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from '@jest/globals'
import { ERROR_CODES, type ErrorCode, REFUSALS } from '../../lib/base/errors.js'
import { PROBLEMS } from '../../lib/base/health.js'
import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../../lib/base/record.js'
import { WARNINGS } from '../../lib/base/warnings.js'
import { FACTS } from '../../lib/entitlement/next-step.js'
import { PURCHASE_STATES } from '../../lib/entitlement/purchase-state.js'
import { REASONS } from '../../lib/entitlement/reasons.js'
import { FAILURES } from '../../lib/entitlement/words.js'
import { EVENTS, type EventName } from '../../lib/events/registry.js'
import { createMarketplace } from '../../lib/index.js'
import { INSTRUMENTS, SPANS } from '../../lib/telemetry/instruments.js'
import { FAULT_KINDS, sampleDelivery } from '../../lib/testing/index.js'
import { TRANSITIONS } from '../../lib/testing/transitions.js'
import { names, page, tablesWith, tableWith } from '../support/docs/pages.js'

const ROOT = join(__dirname, '..', '..')
const LIB = join(ROOT, 'lib')

describe("the page on the platform's interface", () => {
  it('has every chapter that a comment of the code cites', () => {
    const headings = [...page('docs/platform-interface.md').matchAll(/^#+ (.*)$/gm)].map(([, title]) => title)
    const cited = readdirSync(LIB, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) => [
        ...readFileSync(join(LIB, file), 'utf8').matchAll(/interface document, ([A-Z][\w ]*\w)[).;]/g),
      ])
      .map(([, chapter]) => chapter)
    expect(cited.length).toBeGreaterThan(3)
    expect(headings).toEqual(expect.arrayContaining([...new Set(cited)]))
  })
})

describe('the pages on events', () => {
  const rows = tableWith('Event', 'Wire pair', 'data', 'Tokens', 'Sent when')

  it('have every event with its wire pair and tokens, in the order in which they are distinguished', () => {
    const written = rows.map(({ Event, 'Wire pair': pair, Tokens }) => [names(Event)[0], names(pair), Tokens])
    expect(written).toEqual(
      Object.entries(EVENTS).map(([name, { entity_name, event_type, tokens }]) => [
        name,
        [entity_name, event_type],
        tokens.join(', '),
      ]),
    )
  })

  it('have the documented fields of their data', () => {
    for (const { Event, data } of rows) {
      const [name] = names(Event) as [EventName]
      const documented = Object.keys(sampleDelivery(name).data)
      if (name === 'purchasable_subscription/updated')
        expect(documented).toEqual(expect.arrayContaining(names(data)))
      else expect(names(data)).toEqual(documented)
    }
  })

  it('have every field of a record', () => {
    const written = tableWith('Record field', 'Documented as').map((row) => [
      names(row['Record field'])[0],
      row['Documented as'],
    ])
    expect(written).toEqual(Object.entries({ ...RECORD_FIELDS, ...UPDATED_EVENT_FIELDS }))
  })

  it('have every transition of a purchase', () => {
    const written = tableWith('From', 'What happens', 'To', 'Event').map(({ From, To, Event }) =>
      [names(From).join() || From, names(To)[0], names(Event)[0] ?? null].join(' '),
    )
    const inCode = TRANSITIONS.map(({ current, next, emits }) => {
      const from = [...current].sort().join()
      return [from, next, emits].join(' ')
    })
    expect([...written].sort()).toEqual([...inCode].sort())
  })
})

describe('the pages on errors', () => {
  it('have every code with its status and whether it is retryable', () => {
    const written = tableWith('code', 'Status', 'Retryable', 'Meaning').map(
      ({ code, Status, Retryable, Meaning }) => {
        expect(Meaning).toMatch(/\S\.$/)
        return [names(code)[0], { status: Number(Status), retryable: Retryable === 'yes' }]
      },
    )
    expect(written).toEqual(
      Object.entries(ERROR_CODES).map(([code, { status, retryable }]) => [code, { status, retryable }]),
    )
  })

  it('name the refusals', () => {
    const [, listed = ''] = /A refusal is one of (.*?), by which/.exec(page('docs/errors.md')) ?? []
    expect(names(listed).sort()).toEqual([...REFUSALS].sort())
  })

  it('have every reply to a delivery with its status', () => {
    const written = tableWith('Request', 'Reply').flatMap(({ Reply }) => {
      const status = Number(/^\d+/.exec(Reply as string)?.[0])
      return names(Reply)
        .filter((name) => name in ERROR_CODES)
        .map((code) => [code, status])
    })
    const source = ['take-delivery.ts', 'envelopes.ts', 'body.ts']
      .map((file) => readFileSync(join(LIB, 'express', file), 'utf8'))
      .join()
    const given = [...source.matchAll(/(?:MarketplaceError|unreadable)\(\s*'(\w+)'/g)].map(
      ([, code]) => code as ErrorCode,
    )
    const expected = new Set(given.filter((code) => code !== 'argument_invalid'))
    expect(Object.fromEntries(written)).toEqual(
      Object.fromEntries([...expected].map((code) => [code, ERROR_CODES[code].status])),
    )
  })

  it('name only existing codes, each with its status', () => {
    for (const { 'The request': _, Reply, Code } of tableWith('The request', 'Reply', 'Code')) {
      const [code] = names(Code) as [ErrorCode | undefined]
      if (code)
        expect([code, Number(/^\d+/.exec(Reply ?? '')?.[0])]).toEqual([code, ERROR_CODES[code].status])
    }
    for (const { Code } of tablesWith('Code', 'The cause is', 'Do').flatMap(({ rows }) => rows)) {
      for (const code of names(Code)) expect(Object.keys(ERROR_CODES)).toContain(code)
    }
  })
})

describe('the pages on decisions', () => {
  it('have every reason with the meaning that the code states', () => {
    const written = tableWith('reason', 'entitled', 'known', 'Meaning').map(
      ({ reason, entitled, known, Meaning }) => [
        names(reason)[0],
        { entitled: entitled === 'true', known: known === 'true', meaning: Meaning },
      ],
    )
    const ranked = Object.entries(REASONS).sort(([, a], [, b]) => a.rank - b.rank)
    expect(written).toEqual(
      ranked.map(([name, { entitled, known, meaning }]) => [name, { entitled, known, meaning }]),
    )
  })

  it('have a next step for every reason', () => {
    const written = tableWith('Why', 'What to do').map((row) => [names(row.Why)[0], row['What to do']])
    expect(written).toEqual(Object.entries(REASONS).map(([reason, { next }]) => [reason, next]))
    const specific = tableWith('Why', 'State, failure or fact', 'What to do').flatMap((row) =>
      names(row['State, failure or fact']).map((key) => [names(row.Why)[0], key, row['What to do']]),
    )
    const inCode = Object.entries(REASONS).flatMap(([reason, row]) =>
      'nextIf' in row ? Object.entries(row.nextIf).map(([key, { next }]) => [reason, key, next]) : [],
    )
    expect(specific).toEqual(inCode)
    const keys: string[] = [FAILURES, PURCHASE_STATES, FACTS].flatMap((table) => Object.keys(table))
    for (const [, key] of inCode) expect(keys).toContain(key)
  })

  it('have the words for every failure, and every fact', () => {
    const words = tableWith('Failure', 'In words').map((row) => [names(row.Failure)[0], row['In words']])
    expect(words).toEqual(Object.entries(FAILURES))
    const facts = tableWith('Fact', 'What it means')
    expect(facts.map((row) => [names(row.Fact)[0], row['What it means']])).toEqual(Object.entries(FACTS))
  })

  it('have the reasons that only the guard gives', () => {
    const source = readFileSync(join(LIB, 'express', 'decision-for-request.ts'), 'utf8')
    const given = [...source.matchAll(/reason: '(\w+)'/g)].map(([, reason]) => reason)
    expect(given.length).toBeGreaterThan(0)
    for (const reason of given) expect(page('docs/gate.md')).toContain(`\`${reason}\` (`)
  })
})

describe('the pages on operating', () => {
  const marketplace = createMarketplace({
    app: { clientId: 'my-app', clientSecret: 'my-client-secret', purchasableUid: 'my-item' },
    platform: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' },
    deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
    store: 'sqlite::memory:',
  })
  afterAll(() => marketplace.close())

  it('have every method', () => {
    const written = tableWith('Method', 'Returns', 'What it does').map(({ Method }) =>
      names(Method)[0]?.replace(/\(.*/, ''),
    )
    const inCode = Object.entries(marketplace).flatMap(([name, value]) =>
      typeof value === 'object' ? Object.keys(value).map((inner) => `${name}.${inner}`) : [name],
    )
    expect([...written].sort()).toEqual([...inCode].sort())
  })

  it('have every import path', () => {
    const { name, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const paths = Object.keys(exports).filter((path) => !path.endsWith('.json'))
    expect(tableWith('Import from', 'What it has').map((row) => names(row['Import from'])[0])).toEqual(
      paths.map((path) => join(name, path)),
    )
  })

  it('have every count', async () => {
    const { counts } = await marketplace.health()
    const written = tableWith('Count', 'Of').flatMap(({ Count }) => names(Count))
    expect([...written].sort()).toEqual(Object.keys(counts ?? {}).sort())
  })

  it('have every warning', () => {
    expect(
      tableWith('Warning', 'What it means', 'What to do').map(({ Warning }) => names(Warning)[0]),
    ).toEqual(Object.keys(WARNINGS))
  })

  it('have every problem of health with its status, meaning and next step', () => {
    const written = tableWith('Problem', 'Status', 'What it means', 'What to do').map((row) =>
      Object.values(row).map((cell) => cell.replaceAll('`', '')),
    )
    expect(written).toEqual(
      Object.entries(PROBLEMS).map(([code, { status, means, next }]) => [
        code,
        status,
        means.replaceAll('`', ''),
        next,
      ]),
    )
  })

  it('have every instrument with its kind, unit, attributes and description', () => {
    const written = tableWith('Metric', 'Kind, unit', 'Attributes', 'Meaning').map((row) =>
      Object.values(row),
    )
    expect(written).toEqual(
      Object.entries(INSTRUMENTS).map(([name, { kind, unit, attributes, description }]) => [
        `\`marketplace_webhooks.${name}\``,
        `${kind}, \`${unit}\``,
        attributes,
        description,
      ]),
    )
  })

  it('have every span', () => {
    const written = tableWith('Span', 'Meaning').map(({ Span, Meaning }) => [names(Span)[0], Meaning])
    expect(written).toEqual(
      Object.entries(SPANS).map(([name, meaning]) => [`marketplace_webhooks.${name}`, meaning]),
    )
  })
})

describe('the pages on testing', () => {
  it('have every fault of the simulator', () => {
    const written = tableWith('Kind', 'Strikes', 'What it does', 'Fields').map((row) => [
      names(row.Kind)[0],
      row['What it does'],
    ])
    expect(written).toEqual(Object.entries(FAULT_KINDS).map(([kind, { does }]) => [kind, does]))
  })

  it('have every option of the simulator', () => {
    const source = readFileSync(join(LIB, 'testing', 'options.ts'), 'utf8')
    const [, body = ''] = /export interface SimulatorOptions \{\n([\s\S]*?)^\}/m.exec(source) ?? []
    const inCode = [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, name]) => name)
    const written = tableWith('Option', 'Meaning', 'Default').flatMap(({ Option }) => names(Option))
    expect([...written].sort()).toEqual([...inCode].sort())
  })
})
