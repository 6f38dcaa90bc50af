import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parseRecord } from '../../lib/base/record.js'
import { EVENTS } from '../../lib/events/registry.js'
import { classify, purchase, RECORD, subjectOf } from '../support/scenes/classify.js'

const NOTICE = { business_id: 'b-1', purchasable_uid: 'p-1', subscription_uid: 's-1' }

describe('the unrecognised envelopes', () => {
  it.each([[null], [undefined], ['text'], [1], [true], [[]], [[purchase('update', NOTICE)]]])(
    'include one that is not an object: %j',
    (envelope) => {
      expect(classify(envelope)).toEqual({
        recognised: false,
        isKnownEvent: false,
        issues: ['envelope: expected object'],
      })
    },
  )

  it("B11 include one with an unknown pair, and the issue does not contain the pair's values", () => {
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

  it('get a list of missing fields by path, for the shape that was probably meant', () => {
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

  it.each([[undefined], [null], [[]], ['text'], [5]])('include one whose data is %j', (data) => {
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
  ])('include one with an identifier that is %s', (_, bad) => {
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

  it('never include one with an odd but well-formed identifier', () => {
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

  it('B9 nested 500,000 levels deep in an unknown field is returned unchanged', () => {
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

  it('never makes classify throw, and the issues stay few, short and printable', () => {
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

  it('that throws when it is read is unrecognised', () => {
    const trap = () => {
      throw new Error('canary')
    }
    const issues = ['envelope: it cannot be examined']
    expect(classify(new Proxy({}, { get: trap }))).toEqual({ recognised: false, isKnownEvent: false, issues })
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

function issuesOf(envelope: unknown) {
  const result = classify(envelope)
  if (result.recognised) throw new Error(`recognised as ${result.name}`)
  return result.issues
}
