import { describe, expect, it } from '@jest/globals'
import {
  announcedRecord,
  identifier,
  identifierOf,
  MAX_IDENTIFIER_LENGTH,
  parseRecord,
  RECORD_FIELDS,
  requireIdentifier,
  requireStorable,
  type SubscriptionRecord,
  storable,
  UPDATED_EVENT_FIELDS,
  updatedAtMs,
} from '../../lib/base/record.js'

const RECORD = { uid: 's', business_uid: 'b', purchasable_uid: 'p', purchase_state: 'purchased' }

describe('an identifier', () => {
  it.each([
    ['s-1', 's-1'],
    [' é ', ' é '],
    ['😀', '😀'],
    [0, '0'],
    [-7, '-7'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    ['x'.repeat(MAX_IDENTIFIER_LENGTH), 'x'.repeat(MAX_IDENTIFIER_LENGTH)],
  ])('may be %j', (value, text) => {
    expect(identifierOf(value)).toBe(text)
    expect(identifier.parse(value)).toBe(text)
    expect(requireIdentifier(value, 'businessUid')).toBe(text)
  })

  const NONE = 'expected an identifier, got none'
  const UNFIT = 'expected an identifier without control characters or lone surrogates'
  const NUMBER = 'expected an identifier, got a number that is not a safe integer'
  const OTHER = 'expected an identifier, got neither a string nor a number'
  it.each([
    [undefined, NONE],
    [null, NONE],
    ['', NONE],
    [1.5, NUMBER],
    [2 ** 53, NUMBER],
    [Number.NaN, NUMBER],
    [true, OTHER],
    [{}, OTHER],
    [[], OTHER],
    ['x'.repeat(256), 'expected an identifier of at most 255 characters'],
    ['a\u0000', UNFIT],
    ['\u007f', UNFIT],
    ['\u0085', UNFIT],
    ['\ud800', UNFIT],
  ])('may not be %j', (value, words) => {
    expect(identifierOf(value)).toBeNull()
    expect(identifier.safeParse(value).error?.issues).toMatchObject([
      { code: 'custom', message: words, path: [] },
    ])
    expect(() => requireIdentifier(value, 'businessUid')).toThrow(
      expect.objectContaining({
        code: 'argument_invalid',
        message: `Cannot use businessUid: ${words}`,
      }),
    )
  })
})

describe('a record', () => {
  it('has a note for each documented field', () => {
    for (const note of Object.values({ ...RECORD_FIELDS, ...UPDATED_EVENT_FIELDS })) {
      expect(note).toMatch(/^[A-Z].+\.$/)
    }
  })

  it('from a read has three identifiers and a state, and all other fields unchanged', () => {
    const extra = { odd: [1, { deep: true }], purchase_price: 10 }
    expect(parseRecord({ ...RECORD, uid: 5, ...extra })).toEqual({ ...RECORD, uid: '5', ...extra })
    for (const field of Object.keys(RECORD)) {
      const { [field as 'uid']: _missing, ...rest } = RECORD
      expect(parseRecord(rest)).toBeUndefined()
      expect(parseRecord({ ...RECORD, [field]: null })).toBeUndefined()
    }
  })

  it('from an event has two identifiers, and null for an absent item or state', () => {
    expect(announcedRecord.parse({ uid: 's', business_uid: 'b', extra: 1 })).toEqual({
      uid: 's',
      business_uid: 'b',
      purchasable_uid: null,
      purchase_state: null,
      extra: 1,
    })
    expect(announcedRecord.parse({ ...RECORD, purchasable_uid: [], purchase_state: 5 })).toMatchObject({
      purchasable_uid: null,
      purchase_state: null,
    })
    expect(announcedRecord.parse(RECORD)).toEqual(RECORD)
    for (const field of ['uid', 'business_uid']) {
      expect(announcedRecord.safeParse({ ...RECORD, [field]: '' }).success).toBe(false)
    }
  })
})

describe('a text for the database', () => {
  it('has a replacement for NUL and for each lone surrogate, and for nothing else', () => {
    expect(storable('a\0b\0')).toBe('a\ufffdb\ufffd')
    expect(storable('\ud800x\udfff')).toBe('\ufffdx\ufffd')
    expect(storable('😀\n\t\u0085é')).toBe('😀\n\t\u0085é')
  })
})

describe('updated_at', () => {
  const at = (updated_at: unknown) => updatedAtMs({ ...RECORD, updated_at } as SubscriptionRecord)
  const TIME = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

  it.each([
    ['2026-01-02T03:04:05.678Z', TIME],
    ['2026-01-02T03:04:05.678', TIME],
    ['2026-01-02 03:04:05.678', TIME],
    ['2026-01-02T05:04:05.678+02:00', TIME],
    ['2026-01-01T22:04:05.678-05:00', TIME],
    ['2026-01-02T03:04', TIME - 5_678],
    ['2026-01-02 3:04 -0500', Date.UTC(2026, 0, 2, 8, 4)],
    ['2026-01-02', Date.UTC(2026, 0, 2)],
  ])('%s is UTC unless it names an offset', (text, ms) => {
    expect(at(text)).toBe(ms)
  })

  it.each([undefined, null, 17, 2026, ['2026-01-02T03:04:05Z'], '', 'yesterday', {}])(
    'is not a time when it is %j',
    (value) => {
      expect(at(value)).toBeNaN()
    },
  )
})

describe('a row for the database', () => {
  const ROW = { id: 'e', key: 'k', businessUid: 'b', subscriptionUid: 's', purchasableUid: 'p' }
  const NAMES = Object.keys(ROW) as (keyof typeof ROW)[]

  it.each(NAMES.flatMap((name) => [[name, 'a\0b'] as const, [name, 'a\ud800'] as const]))(
    'is refused for a %s that a database would change: %j',
    (name, text) => {
      const why = `Cannot store ${name}: it contains NUL or half of a surrogate pair`
      expect(() => requireStorable({ ...ROW, [name]: text })).toThrow(
        expect.objectContaining({ code: 'argument_invalid', message: why }),
      )
    },
  )

  it('may have any other text, and no text', () => {
    for (const text of ['', ' ', '😀', '\n', null, undefined])
      for (const name of NAMES)
        expect(() => requireStorable({ ...ROW, [name]: text as string })).not.toThrow()
  })
})
