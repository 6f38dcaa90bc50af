import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { z } from 'zod'
import { ConfigError, MarketplaceError } from '../lib/errors.js'
import { createClassifier } from '../lib/events/classify.js'
import { defineEvent } from '../lib/events/define-event.js'
import { createRegistry, EVENTS } from '../lib/events/registry.js'
import { parseRecord } from '../lib/record.js'

const classify = createClassifier(createRegistry())

const NOTICE = { business_id: 'b-1', purchasable_uid: 'p-1', subscription_uid: 's-1' }
const RECORD = {
  uid: 's-1',
  display_name: 'the-app',
  purchasable_uid: 'p-1',
  buyer_uid: 'u-1',
  business_uid: 'b-1',
  purchase_currency: 'USD',
  purchase_price: '5.00',
  purchase_state: 'purchased',
  cancellation_date: null,
  expiration_date: null,
  updated_at: '2024-05-01T10:00:00.000Z',
  created_at: '2024-05-01T10:00:00.000Z',
  payment_type: 'monthly',
  bundled_from_subscription_uid: null,
  is_active: true,
}
const ESSENTIALS = ['uid', 'business_uid'] as const
const READ_ESSENTIALS = [...ESSENTIALS, 'purchasable_uid', 'purchase_state'] as const

/** Values that an optional field may hold instead of the documented ones. */
const ODD = [null, '', undefined, true, 7, 1.5, [], ['p-1'], {}, { odd: [true] }, 'a\u0000', 'x'.repeat(256)]

describe('classify', () => {
  it('distinguishes the two update events by the shape of data', () => {
    expect(nameOf(purchase('update', NOTICE))).toBe('purchasable_subscription/update')
    expect(nameOf(purchase('update', RECORD))).toBe('purchasable_subscription/updated')
  })

  it('takes data that has both shapes as a record', () => {
    const both = { ...NOTICE, ...RECORD, subscription_uid: 's-other' }
    expect(classify(purchase('update', both))).toMatchObject({
      name: 'purchasable_subscription/updated',
      subject: { kind: 'record', subscription_uid: 's-1' },
    })
    expect(classify(purchase('created', both))).toMatchObject({
      name: 'purchasable_subscription/create',
      data: { subscription_uid: 's-1' },
      subject: { kind: 'notice', subscription_uid: 's-1' },
    })
  })

  it('takes a notice that carries part of a record as a notice', () => {
    for (const type of ['created', 'update']) {
      expect(classify(purchase(type, { ...NOTICE, uid: 's-2', purchase_state: 'purchased' }))).toMatchObject({
        recognised: true,
        subject: { kind: 'notice', subscription_uid: 's-1', business_uid: 'b-1', purchasable_uid: 'p-1' },
      })
    }
  })

  it('reads created with a full record as create, with identifiers from the record and all its fields', () => {
    expect(classify(purchase('created', RECORD))).toEqual({
      recognised: true,
      name: 'purchasable_subscription/create',
      data: { ...RECORD, business_id: 'b-1', subscription_uid: 's-1' },
      subject: {
        subscription_uid: 's-1',
        business_uid: 'b-1',
        purchasable_uid: 'p-1',
        app: null,
        event_time: null,
        kind: 'notice',
      },
    })
  })

  it('names the subject of every event', () => {
    const install = { subscription_uid: null, business_uid: 'b-1', purchasable_uid: null, event_time: null }
    const ids = { subscription_uid: 's-1', business_uid: 'b-1', purchasable_uid: 'p-1' }
    const notice = { ...ids, app: null, event_time: null }
    const event_time = '2024-05-01T10:00:00.000+02:00'
    expect(subjectOf(purchase('created', NOTICE))).toEqual({ ...notice, kind: 'notice' })
    expect(subjectOf(purchase('update', NOTICE))).toEqual({ ...notice, kind: 'notice' })
    expect(subjectOf(purchase('update', RECORD))).toEqual({ ...notice, app: 'the-app', kind: 'record' })
    for (const kind of ['installed', 'uninstalled']) {
      const own = {
        entity_name: 'application',
        event_type: kind,
        data: { business_id: 'b-1', app_code_name: 'x' },
      }
      const other = {
        entity_name: 'app_subscription',
        event_type: kind,
        data: { business_id: 'b-1', app_id: 'x' },
      }
      expect(nameOf(own)).toBe(`application/${kind}`)
      expect(nameOf(other)).toBe(`app_subscription/${kind}`)
      for (const envelope of [own, other]) expect(subjectOf(envelope)).toEqual({ ...install, app: 'x', kind })
      const timed = { ...own, data: { ...own.data, event_time } }
      expect(subjectOf(timed)).toEqual({ ...install, app: 'x', event_time, kind })
      expect(subjectOf({ ...own, data: { ...own.data, event_time: 7 } })).toMatchObject({ event_time: null })
    }
  })

  it('takes identifiers that are numbers as strings', () => {
    const data = { business_id: 0, app_id: 72 }
    expect(classify({ entity_name: 'app_subscription', event_type: 'installed', data })).toMatchObject({
      data: { business_id: '0', app_id: '72' },
      subject: { business_uid: '0', app: '72' },
    })
    const record = { ...RECORD, uid: 1, business_uid: 2, purchasable_uid: 3 }
    expect(subjectOf(purchase('update', record))).toMatchObject({
      subscription_uid: '1',
      business_uid: '2',
      purchasable_uid: '3',
    })
  })

  it.each([[null], [''], [undefined]])('takes %j in an optional field as absent', (none) => {
    expect(classify(purchase('created', { ...NOTICE, purchasable_uid: none }))).toMatchObject({
      name: 'purchasable_subscription/create',
      data: { purchasable_uid: null },
    })
    const data = { business_id: 'b', app_code_name: 'a', event_time: none }
    expect(classify({ entity_name: 'application', event_type: 'installed', data })).toMatchObject({
      data: { event_time: null },
    })
  })

  it('recognises a notice without purchasable_uid and an install without event_time', () => {
    for (const type of ['created', 'update']) {
      expect(classify(purchase(type, { business_id: 'b', subscription_uid: 's' }))).toMatchObject({
        recognised: true,
        data: { purchasable_uid: null },
        subject: { kind: 'notice', purchasable_uid: null },
      })
    }
    const data = { business_id: 'b', app_code_name: 'a' }
    expect(classify({ entity_name: 'application', event_type: 'uninstalled', data })).toMatchObject({
      data: { event_time: null },
    })
  })

  it('keeps event_time in any form', () => {
    for (const event_time of [
      '2024-05-01T12:00:00.123+02:00',
      '2024-05-01T10:00:00Z',
      'yesterday',
      1714557600,
    ]) {
      const data = { business_id: 'b', app_code_name: 'a', event_time }
      expect(classify({ entity_name: 'application', event_type: 'installed', data })).toMatchObject({ data })
    }
  })

  it('keeps prices, states and unknown fields unchanged', () => {
    const forms = {
      purchase_price: [99.99, 10, '5.00', null],
      purchase_state: ['expired', 'pending', 'cancelled', ''],
    }
    for (const [field, values] of Object.entries(forms)) {
      for (const value of values) {
        expect(classify(purchase('update', { ...RECORD, [field]: value }))).toMatchObject({
          data: { [field]: value },
        })
      }
    }
    const extra = { a: [{ b: 1 }], c: null }
    expect(classify(purchase('update', { ...NOTICE, extra }))).toMatchObject({ data: { ...NOTICE, extra } })
  })

  it('B22 needs only the identifiers of the subscription and of the business in a record', () => {
    const bare = Object.fromEntries(ESSENTIALS.map((field) => [field, RECORD[field]]))
    const none = { purchasable_uid: null, purchase_state: null }
    for (const [type, name, kind] of [
      ['update', 'purchasable_subscription/updated', 'record'],
      ['created', 'purchasable_subscription/create', 'notice'],
    ] as const) {
      expect(classify(purchase(type, bare))).toMatchObject({
        name,
        data: { ...bare, ...none },
        subject: { kind, subscription_uid: 's-1', business_uid: 'b-1', purchasable_uid: null },
      })
      for (const odd of ODD) {
        const record = Object.fromEntries(Object.keys(RECORD).map((field) => [field, odd]))
        const found = classify(purchase(type, { ...record, ...bare }))
        const { purchasable_uid, purchase_state, ...others } = record
        expect(found).toMatchObject({ name, data: { ...others, ...bare }, subject: { kind } })
        if (!found.recognised) throw new Error('unreachable')
        const fit = typeof odd === 'number' && Number.isSafeInteger(odd) ? String(odd) : null
        expect([purchasable_uid, found.data.purchasable_uid]).toEqual([odd, fit])
        expect([purchase_state, found.data.purchase_state]).toEqual([
          odd,
          typeof odd === 'string' ? odd : null,
        ])
      }
    }
  })

  it('B22 needs only the identifiers in a notice or an install', () => {
    for (const odd of ODD) {
      const fit = typeof odd === 'number' && Number.isSafeInteger(odd) ? String(odd) : null
      for (const type of ['created', 'update']) {
        expect(classify(purchase(type, { ...NOTICE, purchasable_uid: odd }))).toMatchObject({
          data: { ...NOTICE, purchasable_uid: fit },
          subject: { kind: 'notice', purchasable_uid: fit },
        })
      }
      for (const event_type of ['installed', 'uninstalled']) {
        for (const [entity_name, field] of [
          ['application', 'app_code_name'],
          ['app_subscription', 'app_id'],
        ] as const) {
          expect(
            classify({ entity_name, event_type, data: { business_id: 'b-1', [field]: odd } }),
          ).toMatchObject({
            data: { business_id: 'b-1', [field]: fit ?? '' },
            subject: { kind: event_type, business_uid: 'b-1', app: fit },
          })
        }
      }
    }
  })

  it('is stricter with a record from a read: without an item and a state nothing can be decided', () => {
    const bare = Object.fromEntries(READ_ESSENTIALS.map((field) => [field, RECORD[field]]))
    expect(parseRecord(bare)).toEqual(bare)
    for (const field of READ_ESSENTIALS) expect(parseRecord({ ...bare, [field]: null })).toBeUndefined()
  })

  it('returns equal results for two deliveries with the same content, and leaves the envelope unchanged', () => {
    const envelope = purchase('update', { ...NOTICE, business_id: 5 })
    const before = JSON.stringify(envelope)
    expect(classify(envelope)).toEqual(classify(JSON.parse(before)))
    expect(JSON.stringify(envelope)).toBe(before)
  })
})

describe('an envelope that is not recognised', () => {
  it.each([[null], [undefined], ['text'], [1], [true], [[]], [[purchase('update', NOTICE)]]])(
    'includes one that is not an object: %j',
    (envelope) => {
      expect(classify(envelope)).toEqual({ recognised: false, issues: ['envelope: expected object'] })
    },
  )

  it('B11 includes one of an unknown pair, named without its values', () => {
    for (const envelope of [
      { entity_name: 'canary', event_type: 'created', data: NOTICE },
      { entity_name: 'purchasable_subscription', event_type: 'canary', data: NOTICE },
      { entity_name: 'purchasable_subscription\ncreated', event_type: '', data: NOTICE },
      { entity_name: 'application', event_type: 'created', data: NOTICE },
      { entity_name: 'constructor', event_type: '__proto__', data: NOTICE },
    ]) {
      const issues = issuesOf(envelope)
      expect(issues).toEqual(['entity_name: no known event has it with this event_type'])
    }
    expect(issuesOf({ event_type: 'created', data: NOTICE })).toEqual(['entity_name: expected string'])
    expect(issuesOf({ entity_name: 'application', event_type: 7 })).toEqual(['event_type: expected string'])
  })

  it('has its missing fields listed by path, for the shape that was probably meant', () => {
    expect(issuesOf(purchase('update', { business_id: 'b', purchasable_uid: 'p' }))).toEqual([
      'data.subscription_uid: expected an identifier, got none',
    ])
    expect(issuesOf(purchase('created', { subscription_uid: 's' }))).toEqual([
      'data.business_id: expected an identifier, got none',
    ])
    for (const type of ['created', 'update']) {
      expect(issuesOf(purchase(type, { ...RECORD, uid: null }))).toEqual([
        'data.uid: expected an identifier, got none',
      ])
    }
  })

  it.each([[undefined], [null], [[]], ['text'], [5]])('includes one whose data is %j', (data) => {
    for (const { entity_name, event_type } of Object.values(EVENTS)) {
      const issues = issuesOf({ entity_name, event_type, data })
      expect(issues).toHaveLength(1)
      expect(issues[0]).toMatch(/^data: expected object, received /)
    }
  })

  it.each([
    ['empty', ''],
    ['null', null],
    ['an array', ['s-1']],
    ['an object', { toString: 'canary' }],
    ['a boolean', true],
    ['with NUL', 'canary\u0000'],
    ['with a line break', 'canary\n'],
    ['with a C1 control', 'canary\u0085'],
    ['with a lone surrogate', 'canary\ud800'],
    ['of 256 characters', 'c'.repeat(256)],
    ['of 10,000 characters', 'canary'.repeat(2_000)],
    ['infinite', Number.POSITIVE_INFINITY],
    ['not a number', Number.NaN],
    ['beyond 2^53', 2 ** 53],
    ['a fraction', 1.5],
  ])('includes one with an identifier that is %s', (_, bad) => {
    for (const field of ['business_id', 'subscription_uid']) {
      for (const type of ['created', 'update']) {
        const issues = issuesOf(purchase(type, { ...NOTICE, [field]: bad }))
        expect(issues).toHaveLength(1)
        expect(issues[0]).toMatch(new RegExp(`^data\\.${field}: expected an identifier`))
        expect(issues[0]).not.toContain('canary')
      }
    }
    for (const field of ['uid', 'business_uid']) {
      for (const type of ['created', 'update']) {
        expect(issuesOf(purchase(type, { ...RECORD, [field]: bad }))[0]).toMatch(`data.${field}: `)
      }
    }
    for (const field of ['uid', 'business_uid', 'purchasable_uid']) {
      expect(parseRecord({ ...RECORD, [field]: bad })).toBeUndefined()
    }
  })

  it('never includes one with an odd but well-formed identifier', () => {
    for (const id of [
      'x'.repeat(255),
      '/..%2f',
      '@#?&',
      ' ',
      'é',
      'e\u0301',
      '😀',
      '__proto__',
      'constructor',
      -7,
    ]) {
      const data = { business_id: id, purchasable_uid: id, subscription_uid: id }
      expect(subjectOf(purchase('update', data))).toMatchObject({ subscription_uid: String(id) })
    }
  })
})

describe('hostile data', () => {
  it('B8 in __proto__ and constructor changes no prototype', () => {
    const keys =
      '"__proto__":{"polluted":1,"purchase_state":"purchased"},"constructor":{"prototype":{"polluted":1}}'
    const result = classify(
      JSON.parse(`{"entity_name":"purchasable_subscription","event_type":"update",${keys},
        "data":{"business_id":"b","subscription_uid":"s",${keys}}}`),
    )
    expect(result).toMatchObject({ recognised: true, name: 'purchasable_subscription/update' })
    if (!result.recognised) throw new Error('unreachable')
    expect(Object.getPrototypeOf(result.data)).toBe(Object.prototype)
    expect(Object.keys(result.data)).not.toContain('__proto__')
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    expect((result.data as { polluted?: number }).polluted).toBeUndefined()
  })

  it('B8 cannot pass identifiers through __proto__', () => {
    const data = JSON.parse('{"__proto__":{"business_id":"b","subscription_uid":"s"}}')
    expect(classify(purchase('update', data)).recognised).toBe(false)
  })

  it('B9 nested 500,000 levels deep in an unknown field is kept unchanged', () => {
    const depth = 500_000
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const deep = JSON.parse(`${open.repeat(depth)}1${close.repeat(depth)}`)
      for (const data of [NOTICE, RECORD]) {
        for (const type of ['created', 'update']) {
          const result = classify(purchase(type, { ...data, deep }))
          expect(result.recognised && result.data.deep === deep).toBe(true)
        }
      }
      expect(parseRecord({ ...RECORD, deep })?.deep === deep).toBe(true)
      expect(classify(purchase('update', deep)).recognised).toBe(false)
      expect(classify(purchase('update', { ...NOTICE, business_id: deep })).recognised).toBe(false)
    }
  })

  it('never makes classify throw, and issues stay few, short and printable', () => {
    const pair = fc.constantFrom(...Object.values(EVENTS).map((e) => [e.entity_name, e.event_type] as const))
    const field = fc.constantFrom(...Object.keys(NOTICE), ...Object.keys(RECORD), 'app_id', '__proto__')
    const data = fc.oneof(fc.jsonValue(), fc.dictionary(field, fc.jsonValue()))
    const envelope = fc
      .tuple(pair, data)
      .map(([[entity_name, event_type], value]) => ({ entity_name, event_type, data: value }))
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.anything(), envelope), (value) => {
        const result = classify(value)
        if (result.recognised) return
        expect(result.issues.length).toBeGreaterThan(0)
        expect(result.issues.length).toBeLessThanOrEqual(10)
        for (const issue of result.issues)
          expect(issue).toMatch(/^(envelope|entity_name|event_type|data)\P{Cc}{1,200}$/u)
      }),
      { numRuns: 500 },
    )
  })

  it('that throws when it is read is not recognised', () => {
    const trap = () => {
      throw new Error('canary')
    }
    const issues = ['envelope: it cannot be examined']
    expect(classify(new Proxy({}, { get: trap }))).toEqual({ recognised: false, issues })
    const data = Object.defineProperty({}, 'business_id', { get: trap, enumerable: true })
    expect(classify(purchase('update', data)).recognised).toBe(false)
  })

  it('B7 with distinct identifiers gives distinct strings', () => {
    const id = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 4 }),
      fc.string({ unit: 'grapheme', maxLength: 4 }),
    )
    fc.assert(
      fc.property(id, id, (one, other) => {
        const [a, b] = [one, other].map((uid) => parseRecord({ ...RECORD, uid })?.uid)
        if (one !== other && a !== undefined && b !== undefined) expect(a).not.toBe(b)
      }),
    )
  })
})

describe('an event of the app’s own', () => {
  const renewal = defineEvent({
    entity_name: 'purchasable_subscription',
    event_type: 'renewed',
    data: z.object({ subscription: z.string() }),
    tokens: ['app'],
    subject: (data) => ({ subscription_uid: data.subscription, kind: 'notice' }),
  })

  it('is recognised with its own data and subject', () => {
    const own = createClassifier(createRegistry({ renewal }))
    expect(own(purchase('renewed', { subscription: 's-9' }))).toEqual({
      recognised: true,
      name: 'renewal',
      data: { subscription: 's-9' },
      subject: {
        subscription_uid: 's-9',
        business_uid: null,
        purchasable_uid: null,
        app: null,
        event_time: null,
        kind: 'notice',
      },
    })
    expect(own(purchase('update', NOTICE))).toEqual(classify(purchase('update', NOTICE)))
  })

  it('has nothing to act on unless its definition names a subject', () => {
    const { subject, ...plain } = renewal
    const own = createClassifier(createRegistry({ plain }))
    expect(typeof subject).toBe('function')
    expect(own(purchase('renewed', { subscription: 's-9' }))).toMatchObject({
      subject: {
        subscription_uid: null,
        business_uid: null,
        purchasable_uid: null,
        app: null,
        kind: 'other',
      },
    })
  })

  it('passes on no malformed identifier from its subject', () => {
    const own = createClassifier(createRegistry({ renewal }))
    expect(own(purchase('renewed', { subscription: 'a\u0000' }))).toMatchObject({
      subject: { subscription_uid: null },
    })
  })

  it('cannot replace a built-in event of the same pair', () => {
    const greedy = defineEvent({ ...EVENTS['purchasable_subscription/create'], data: z.any() })
    const own = createClassifier(createRegistry({ greedy }))
    expect(own(purchase('created', NOTICE))).toMatchObject({ name: 'purchasable_subscription/create' })
    expect(own(purchase('created', 'anything'))).toMatchObject({ name: 'greedy' })
  })

  it('whose definition throws, or answers later, leaves the delivery unrecognised', () => {
    const boom = () => {
      throw new Error('canary')
    }
    for (const definition of [
      { ...renewal, data: z.unknown().transform(boom) },
      { ...renewal, subject: boom },
      { ...renewal, data: z.unknown().refine(async () => true) },
    ]) {
      const own = createClassifier(createRegistry({ definition }))
      expect(own(purchase('renewed', { subscription: 's' }))).toEqual({
        recognised: false,
        issues: ['data: the schema of this event failed'],
      })
    }
  })

  it('has at most ten issues, of the closest option of a union, none of which repeats a value', () => {
    const many = defineEvent({
      entity_name: 'many',
      event_type: 'many',
      data: z.union([
        z.object(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, z.string()]))),
        z.object(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`g${i}`, z.literal('x')]))),
      ]),
      tokens: ['app'],
    })
    const own = createClassifier(createRegistry({ many }))
    const result = own({ entity_name: 'many', event_type: 'many', data: { f0: 'canary', g0: 'canary' } })
    expect(result).toMatchObject({ recognised: false })
    const issues = result.recognised ? [] : result.issues
    expect(issues).toHaveLength(10)
    expect(issues[0]).toBe('data.f1: expected string, received undefined')
    expect(issues.join()).not.toContain('canary')
  })

  it('cannot use a built-in name, and every fault is listed at once', () => {
    const broken = {
      entity_name: 'a\nb',
      event_type: '',
      data: {},
      tokens: ['admin'],
    } as unknown as typeof renewal
    const faulty = { 'application/installed': renewal, broken, nothing: null as unknown as typeof renewal }
    const error = thrownBy(() => createRegistry(faulty))
    expect(error).toBeInstanceOf(MarketplaceError)
    expect(error).toBeInstanceOf(ConfigError)
    expect(error).toMatchObject({ code: 'config_invalid' })
    expect((error as ConfigError).faults).toEqual([
      'event "application/installed" is built in and cannot be defined again',
      'event "broken" has no usable entity_name',
      'event "broken" has no usable event_type',
      'event "broken" needs a schema as data',
      'event "broken" needs tokens, each of them one of app, business, directory',
      'event "nothing" is not an object',
    ])
  })
})

function purchase(event_type: string, data: unknown) {
  return { entity_name: 'purchasable_subscription', event_type, data }
}

function nameOf(envelope: unknown) {
  const result = classify(envelope)
  return result.recognised ? result.name : result.issues
}

function subjectOf(envelope: unknown) {
  const result = classify(envelope)
  return result.recognised ? result.subject : result.issues
}

function issuesOf(envelope: unknown) {
  const result = classify(envelope)
  if (result.recognised) throw new Error(`recognised as ${result.name}`)
  return result.issues
}

function thrownBy(action: () => unknown): unknown {
  try {
    action()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
