import { describe, expect, it } from '@jest/globals'
import { MarketplaceError, thrownText } from '../../lib/base/errors.js'
import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../../lib/base/record.js'
import { createActionTokens, createRateLimit, createSigner } from '../../lib/console/server/access.js'
import { HEADLINES } from '../../lib/console/server/business/business.js'
import { searchTerms } from '../../lib/console/server/business/search-terms.js'
import {
  errorClassOf,
  isKnownEventName,
  isKnownName,
  MASK,
  maskedRecord,
  shapeOf,
} from '../../lib/console/server/masking.js'
import { EVENTS, REASONS } from '../../lib/index.js'

const ID = '427e4b4e-7226-46fc-b413-be288e4fa468'

describe('searchTerms', () => {
  const pasted: Record<string, string> = {
    'as it is': ID,
    'with spaces': `  ${ID}\n`,
    'with quotes': `"${ID}"`,
    'with typographic quotes': `“${ID}”,`,
    'with an invisible character': `\ufeff${ID}\u200b`,
    'in backticks and a full stop': `\`${ID}\`.`,
    'with a label': `business_uid: ${ID}`,
    'with a label of words': `Business: ${ID}`,
    'in a sentence': `The business is ${ID} and it has paid`,
    'as a URL': `https://platform.example/businesses/${ID}`,
    'as a URL with a query': `https://platform.example/b?page=2&business_uid=${ID}`,
    'as a delivery': JSON.stringify(
      { entity_name: 'a', event_type: 'b', data: { id: 'x', business_uid: ID } },
      null,
      2,
    ),
    'as a list of records': JSON.stringify([{ uid: 's', business_uid: ID }]),
    'as a piece of JSON': `"business_uid": "${ID}", "uid": "s"`,
    'as JSON that is cut off': `{"data":{"business_uid":"${ID}","uid`,
    'after a word of a log': `POST 200 {"business_id":"${ID}"}`,
  }
  for (const [how, text] of Object.entries(pasted)) {
    it(`finds an identifier ${how}`, () => {
      const terms = searchTerms(text)
      expect(how === 'in a sentence' ? terms : terms.slice(0, 1)).toContain(ID)
    })
  }

  it('keeps an identifier with spaces and colons in one piece', () => {
    expect(searchTerms('Bakery Lindt: 12')[0]).toBe('Bakery Lindt: 12')
  })

  it('finds nothing in an empty text, and stays fast with a long one', () => {
    expect(searchTerms(' "" ')).toEqual([])
    expect(searchTerms('{'.repeat(20_000)).length).toBeLessThanOrEqual(8)
    expect(searchTerms(JSON.stringify(Array.from({ length: 999 }, (_, n) => ({ uid: n })))).length).toBe(8)
  })
})

describe('the headline', () => {
  it('exists for every reason, and begins with "May use" only if the business may use the app', () => {
    expect(Object.keys(HEADLINES)).toEqual(Object.keys(REASONS))
    for (const [reason, headline] of Object.entries(HEADLINES))
      expect({ reason, is: /^May use/.test(headline) }).toEqual({ reason, is: reason === 'purchased' })
  })
})

describe('masking', () => {
  it('shows which fields a record has, and only those values that support needs', () => {
    const record = {
      uid: 's',
      purchase_state: 'purchased',
      buyer_uid: 'b',
      purchase_price: 12,
      cancellation_date: null,
      '12345': 1,
    }
    expect(maskedRecord(record)).toEqual({
      uid: 's',
      purchase_state: 'purchased',
      buyer_uid: MASK,
      purchase_price: MASK,
      cancellation_date: null,
      [MASK]: MASK,
    })
  })

  it('shows the names and types of a payload, for support only the names that the platform documents', () => {
    const payload = { data: [{ uid: 'x' }, 1], event_type: null, jo_miller: true }
    const shape = { data: [{ uid: 'text' }], event_type: 'null' }
    expect(shapeOf(payload, () => true)).toEqual({ ...shape, jo_miller: 'boolean' })
    expect(shapeOf(payload, isKnownName)).toEqual({ ...shape, [MASK]: 'boolean' })
    for (const name of Object.keys({ ...RECORD_FIELDS, ...UPDATED_EVENT_FIELDS }))
      expect([name, isKnownName(name)]).toEqual([name, true])
  })

  it('shows the entity and type of an event only if the platform documents them', () => {
    const names = Object.values(EVENTS).flatMap(({ entity_name, event_type }) => [entity_name, event_type])
    for (const name of names) expect([name, isKnownEventName(name)]).toEqual([name, true])
    expect(isKnownEventName('jo_miller')).toBe(false)
  })

  it('finds the class of an error whatever was thrown, and nothing of its text', () => {
    class LedgerError extends Error {}
    const anonymous = new (class extends Error {})('Jo')
    const thrown: [unknown, string][] = [
      [new LedgerError('Jo: no ledger'), 'LedgerError'],
      [new TypeError('x is not a function'), 'TypeError'],
      [new MarketplaceError('handler_timeout', 'Cannot wait: it took 1 s'), 'MarketplaceError'],
      [Object.assign(new Error('no'), { name: 'Jo Miller' }), 'Error'],
      [anonymous, 'Error'],
      ['Jo: no ledger', 'string'],
      [{ message: 'Jo: no ledger' }, 'object'],
      [null, 'object'],
    ]
    for (const [value, name] of thrown) {
      const text = thrownText(value, 500)
      expect([text, errorClassOf(text)]).toEqual([text, name])
      expect(text).toMatch(new RegExp(`^${name}: .`))
    }
    expect(errorClassOf('no handler was registered for it before its retention ended')).toBe(
      'MarketplaceError',
    )
  })
})

describe('a token for actions', () => {
  it('works for at least half a day and at most a day', () => {
    let now = 1_000
    const tokens = createActionTokens({ sign: createSigner(undefined), now: () => now })
    const person = { name: 'sue', role: 'support' } as const
    const token = tokens.tokenFor(person)
    expect(tokens.isValid(person, token)).toBe(true)
    expect(tokens.isValid({ ...person, role: 'operator' }, token)).toBe(false)
    expect(tokens.isValid({ ...person, name: 'sue2' }, token)).toBe(false)
    now += 12 * 3_600_000
    expect(tokens.isValid(person, token)).toBe(true)
    now += 12 * 3_600_000
    expect(tokens.isValid(person, token)).toBe(false)
    expect(tokens.isValid(person, undefined)).toBe(false)
  })
})

describe('the limit of calls', () => {
  it('refills evenly, also after the clock was set back, and forgets the person whose last call is oldest', () => {
    let now = 0
    const take = createRateLimit({ perMinute: 2, now: () => now })
    expect([take('a'), take('a'), take('a'), take('b')]).toEqual([true, true, false, true])
    now = 30_000
    expect([take('a'), take('a')]).toEqual([true, false])
    now = 0
    expect(take('a')).toBe(false)
    for (let n = 0; n < 1_000; n++) take(`other-${n}`)
    expect(take('a')).toBe(true)
  })
})
