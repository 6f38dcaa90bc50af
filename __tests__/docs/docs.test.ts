import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from '@jest/globals'
import { ERROR_CODES, type ErrorCode, REFUSALS } from '../../lib/base/errors.js'
import { PROBLEMS } from '../../lib/base/health.js'
import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../../lib/base/record.js'
import { WARNINGS } from '../../lib/base/warnings.js'
import { FACTS } from '../../lib/entitlement/next-step.js'
import { PURCHASE_STATES } from '../../lib/entitlement/purchase-state.js'
import { REASONS, type ReasonRow } from '../../lib/entitlement/reasons.js'
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
  const rows = tablesWith('code', 'Status', 'Meaning').flatMap((table) => table.rows)

  it('have every code with its status, and say which are retryable', () => {
    const [, others = ''] =
      /with 408 or 503 but `closed`, and for (.*)\.$/m.exec(page('docs/errors.md')) ?? []
    const written = rows.map(({ code, Status, Meaning }) => {
      expect(Meaning).toMatch(/\S\.$/)
      const [name = ''] = names(code)
      const isTemporary = ['408', '503'].includes(Status ?? '') && name !== 'closed'
      return [name, { status: Number(Status), retryable: isTemporary || names(others).includes(name) }]
    })
    expect(written).toEqual(
      Object.entries(ERROR_CODES).map(([code, { status, retryable }]) => [code, { status, retryable }]),
    )
  })

  it('have the words for every failure of a read', () => {
    const words = rows.map(({ code, Meaning }) => [names(code)[0], /^\*(.*?)\*/.exec(Meaning ?? '')?.[1]])
    expect(Object.fromEntries(words.filter(([, each]) => each !== undefined))).toEqual(FAILURES)
  })

  it('name the refusals', () => {
    const [, listed = ''] = /A refusal is one of (.*?), by which/.exec(page('docs/errors.md')) ?? []
    expect(names(listed).sort()).toEqual([...REFUSALS].sort())
  })

  it('have every code of a reply to a delivery in their chapter', () => {
    const [, chapter = ''] = page('docs/errors.md').split('## Replies to deliveries\n')
    const written = [...(chapter.split('\n## ')[0] ?? '').matchAll(/^\| <a id="(\w+)">/gm)].map(
      ([, code]) => code,
    )
    const source = ['take-delivery.ts', 'envelopes.ts', 'body.ts', 'open-bodies.ts']
      .map((file) => readFileSync(join(LIB, 'express', file), 'utf8'))
      .join()
    const given = [...source.matchAll(/(?:MarketplaceError|unreadable)\(\s*'(\w+)'/g)].map(
      ([, code]) => code as ErrorCode,
    )
    const expected = new Set(given.filter((code) => code !== 'argument_invalid'))
    expect([...written].sort()).toEqual([...expected].sort())
  })

  it('name only existing codes, each with its status', () => {
    for (const { 'The request': _, Reply, Code } of tableWith('The request', 'Reply', 'Code')) {
      const [code] = names(Code) as [ErrorCode | undefined]
      if (code)
        expect([code, Number(/^\d+/.exec(Reply ?? '')?.[0])]).toEqual([code, ERROR_CODES[code].status])
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

  it('have ten causes of "I paid and cannot get in", by the beginning of the step that is shown for their reasons', () => {
    const rows = tableWith('The next step begins', 'Reason', 'Do')
    expect(rows).toHaveLength(10)
    for (const { 'The next step begins': words = '', Reason } of rows) {
      expect(names(Reason)).not.toEqual([])
      for (const reason of names(Reason)) {
        const { next, nextIf = {} }: ReasonRow = REASONS[reason as keyof typeof REASONS]
        const steps = [next, ...Object.values(nextIf).map((each) => each.next)]
        expect([reason, words, steps.some((step) => step.startsWith(words))]).toEqual([reason, words, true])
      }
    }
  })

  it('are of states, failures and facts that exist', () => {
    const keys: string[] = [FAILURES, PURCHASE_STATES, FACTS].flatMap((table) => Object.keys(table))
    for (const row of Object.values(REASONS))
      for (const key of Object.keys('nextIf' in row ? row.nextIf : {})) expect(keys).toContain(key)
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
    const written = tableWith('Method', 'What it does').flatMap(({ Method }) => names(Method))
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

  it('have every warning', () => {
    const [, listed = ''] =
      /differ, and then one that says so\. The codes:\n(.*)\.$/m.exec(page('docs/operating.md')) ?? []
    expect(names(listed)).toEqual(Object.keys(WARNINGS))
  })

  it.each(['failing', 'degraded'])(
    'have every %s problem of health with its next step, some with a sentence of their meaning',
    (status) => {
      const written = tableWith(status, 'What to do').map((row) =>
        Object.values(row).map((cell) => cell.replaceAll('`', '')),
      )
      const ofStatus = Object.entries(PROBLEMS).filter(([, row]) => row.status === status)
      expect(written.map(([code]) => code)).toEqual(ofStatus.map(([code]) => code))
      for (const [i, [, { means, next }]] of ofStatus.entries()) {
        const [, cell = ''] = written[i] ?? []
        const said = means.split(/(?<=\.) /).filter((sentence) => cell.includes(sentence))
        expect(cell).toBe([...said, next].join(' '))
      }
    },
  )

  it('have every instrument with its kind, attributes and description', () => {
    const kinds = { counter: 'Counter', histogram: 'Histogram, in seconds' }
    for (const [kind, head] of Object.entries(kinds))
      expect(tableWith(head, 'Attributes', 'Meaning').map((row) => Object.values(row))).toEqual(
        instrumentsOf(kind).map(([name, { attributes, description }]) => [name, attributes, description]),
      )
    const gauges = instrumentsOf('gauge')
    expect(tableWith('Gauge', 'Meaning').map((row) => Object.values(row))).toEqual(
      gauges.map(([name, { description }]) => [name, description]),
    )
    // What the page says of all in a sentence.
    const withAttributes = gauges.filter(([, { attributes }]) => attributes !== 'none')
    expect(withAttributes.map(([name]) => name)).toEqual(['`marketplace_webhooks.health.problem`'])
    for (const [name, { kind, unit }] of Object.entries(INSTRUMENTS))
      expect([name, unit === 's']).toEqual([name, kind === 'histogram' || name.endsWith('_age')])
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
})

/** The instruments of a kind, by their whole names as the pages write them. */
function instrumentsOf(kind: string) {
  return Object.entries(INSTRUMENTS)
    .filter(([, instrument]) => instrument.kind === kind)
    .map(([name, instrument]) => [`\`marketplace_webhooks.${name}\``, instrument] as const)
}
