import { describe, expect, it } from '@jest/globals'
import { MarketplaceError } from '../../lib/base/errors.js'
import { createSaid } from '../../lib/telemetry/received.js'

const WITHHELD = 'Error, whose message repeats what was received'
const UNKNOWN = ', whose message may repeat what was received'
const RECEIVED = JSON.stringify({
  entity_name: 'purchasable_subscription',
  event_type: 'created',
  data: {
    business_id: 'business-1',
    purchase_state: 'purchased',
    name: 'Anna "Nan" Ümlaut\nof the Bakery',
    city: 'Ulm',
    zip: 89073,
    price: '19.90',
    one: 1,
    list: [{ deep: 'deeply hidden' }],
    'customer-4711': true,
  },
})

describe('what a log says of an error', () => {
  const said = createSaid(['purchasable_subscription', 'created', 'purchased'])
  const messageOf = (text: string, received: string | undefined = RECEIVED) =>
    said(new Error(text), [received], text).message

  it.each([
    'the mail server is away',
    'no business has this subscription',
    'purchasable_subscription/created: business_id is missing',
    'the state is not purchased',
    'answered 500 after 1 try',
    '',
  ])('is its message when that shares no value with what was received: %j', (text) => {
    expect(messageOf(text)).toBe(text)
  })

  it.each([
    'no account for business-1',
    'no account for "business-1".',
    'Unexpected token \'A\', "Anna \\"Nan\\" Ü"... is not valid JSON',
    'cannot greet ANNA "NAN"',
    'e "Nan" Ümla',
    'nobody in Ulm',
    'no table at the bakery',
    'zip=89073',
    'price: 19.90',
    'deeply   hidden',
    'Unrecognized key: "customer-4711"',
    RECEIVED,
    JSON.stringify(RECEIVED),
  ])('is its class when the message quotes a value: %j', (text) => {
    expect(messageOf(text)).toBe(WITHHELD)
  })

  it('is its class, and the code of the system, when it is not known what was received', () => {
    const error = Object.assign(new TypeError('connect 10.0.0.1'), { code: 'ECONNREFUSED' })
    expect(said(error, undefined).message).toBe(`TypeError ECONNREFUSED${UNKNOWN}`)
    expect(said(error, undefined).stack).toMatch(/^TypeError ECONNREFUSED at .*received\.test\.ts:\d+:\d+/)
    expect(said('a text', undefined)).toEqual({ message: `string${UNKNOWN}` })
    expect(said({ code: 'a text' }, undefined).message).toBe(`object${UNKNOWN}`)
  })

  it.each([
    ['Jo Li', 'unknown customer Jo Li'],
    ['JoLi', 'unknown customer Jo Li'],
    ['Jo Li', 'unknown customer "JO  LI".'],
    ['Jo-Li', 'unknown customer Jo/Li'],
    ["O'Hara", "unknown customer O'Hara"],
    ['OHara', 'unknown customer O HARA'],
    ['Al & Bo', 'unknown customer Al & Bo'],
    ['b:1', 'no row b:1'],
    ['A/1', 'no room A/1'],
    ['b/12/3', 'no room b/12/3'],
    ['x|y', 'no column x|y'],
    ['1,50', 'the price is 1,50'],
    [1500, 'the price is 1,500'],
    [-1.5, 'the price is -1,5'],
    ['9:30', 'closed at 9:30'],
    ['1/2/25', 'closed on 1/2/25'],
    ['x', 'no column x'],
    ['x', 'no column "X".'],
    ['李', 'unknown customer 李'],
    ['é', 'no letter e\u0301'],
    ['42', 'no file for invoice-42'],
    ['Jo', 'no file cust_Jo.pdf'],
    ['Zoe\u0308 L', 'unknown customer Zoë L'],
    ['नि ३', 'unknown customer नि ३'],
    ['Groß', 'unknown customer GROSS'],
    ['A\ufe0fB', 'unknown customer A\ufffdB'],
    ['Jo\nLi', 'unknown customer "Jo\\nLi"'],
    ['Jo\nLi\tBo', 'unknown customer "Jo\\nLi\\tBo"'],
    ['App 1', 'unknown customer App 1'],
    ['App 12', 'unknown customer App 12'],
    ['App 123', 'unknown customer App 123'],
    ['Subscription 12', 'unknown customer Subscription 12'],
  ])('is its class when the message quotes the value %j: %j', (value, text) => {
    expect(messageOf(text, JSON.stringify({ value }))).toBe(WITHHELD)
  })

  it.each([
    ['Jo Li', 'Unrecognized key: "Jo Li"'],
    ['Ann Lee', 'Unrecognized key: "Ann Lee"'],
    ['The name of a field with a sentence', 'Unrecognized key: "The name of a field with a sentence"'],
  ])('is its class when the message quotes the name %j of a field: %j', (name, text) => {
    expect(messageOf(text, JSON.stringify({ [name]: true }))).toBe(WITHHELD)
  })

  it.each([
    ['Jo Li', 'unknown customer Jo, not Li'],
    ['Jo Li', 'Li Jo is away'],
    ['Jo Li', 'the major limit'],
    ['Al & Bo', 'also a bottle'],
    ['b/12/3', 'row b of 12'],
    ['x', 'the next box'],
    [1, 'answered 500 after 1 try'],
    ['-1', 'answered 500 after 1 try'],
    ['٣', 'answered ٣ times'],
    ['::', 'the state is :: and more'],
    ['', 'the state is ""'],
    ['business id', 'the business id is missing'],
    ['created', 'it was created'],
    ['purchasable_subscription/created', 'no handler of purchasable_subscription/created'],
    ['The subscription is over', 'the subscription is away'],
  ])('is its message when that does not have the value %j as a whole: %j', (value, text) => {
    expect(messageOf(text, JSON.stringify({ value }))).toBe(text)
  })

  it('compares a text that is not JSON as a whole', () => {
    expect(messageOf('cannot parse {"name":Anna', '{"name":Anna')).toBe(WITHHELD)
    expect(messageOf('cannot parse it', '{"name":Anna')).toBe('cannot parse it')
  })

  it('compares each of several texts, also by the values of an address', () => {
    const given = [RECEIVED, '/pay?shop=Nora&n=2', 'signature 7731']
    for (const text of ['nobody in Ulm', 'no shop for Nora', 'signature 7731 is wrong'])
      expect(said(new Error(text), given, text).message).toBe(WITHHELD)
    const text = 'the key of the shops is not valid JSON'
    expect(said(new Error(text), given, text).message).toBe(text)
  })

  it('is the message of an error of this package, except that a call to the platform may quote its reply', () => {
    const store = new MarketplaceError('store_unavailable', 'Cannot use the store: the disk is full')
    expect(said(store, undefined)).toEqual({
      message: 'MarketplaceError: Cannot use the store: the disk is full',
    })
    const refused = new MarketplaceError('platform_refused', 'Cannot register: it answered 400 (a reply)')
    for (const received of [undefined, [RECEIVED]])
      expect(said(refused, received)).toEqual({ message: 'MarketplaceError: platform_refused' })
    const odd = new MarketplaceError('a reply' as never, 'a reply')
    expect(said(odd, undefined).message).toBe(`MarketplaceError${UNKNOWN}`)
  })

  it('is cut off, and compared as far as it is said', () => {
    const text = `${'no answer. '.repeat(400)}no account for business-1`
    const { message } = said(new Error(text), [RECEIVED], text)
    expect(message).toBe(text.slice(0, 4_000))
  })

  it('has of the stack the frames with a place in the code', () => {
    const error = new Error('away')
    error.stack = [
      'Error: away',
      '    at send (/app/mail.js:7:9)',
      '    at new Promise (<anonymous>)',
      '    at Array.map (<anonymous>)',
      '    at async Promise.all (index 0)',
      '    at /app/main.js:3:1',
    ].join('\n')
    expect(said(error, [RECEIVED]).stack).toBe(
      'Error at send (/app/mail.js:7:9) at new Promise (<anonymous>) at Array.map (<anonymous>) at /app/main.js:3:1',
    )
  })

  it('is its class when what was received is too long to be compared', () => {
    const received = JSON.stringify({ text: 'x y '.repeat(100_000) })
    expect(messageOf('the mail server is away', received)).toBe(`Error${UNKNOWN}`)
  })
})
