import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { createClassifier } from '../../lib/events/classify.js'
import { documentedEvent } from '../../lib/events/documented-shapes.js'
import { createRegistry, EVENTS, type EventName } from '../../lib/events/registry.js'
import { sampleDelivery } from '../../lib/testing/index.js'

const registry = createRegistry()
let taken = 0
const classify = createClassifier(registry, (...given) => {
  const event = documentedEvent(...given)
  if (event !== undefined) taken++
  return event
})
const bySchemas = createClassifier(registry, () => undefined)

const NOTICE = ['business_id', 'purchasable_uid', 'subscription_uid']
const RECORD = ['uid', 'business_uid', 'purchasable_uid', 'purchase_state', 'display_name', 'extra']
const APPLICATION = ['business_id', 'app_code_name', 'event_time']
const APP_SUBSCRIPTION = ['business_id', 'app_id']
const FITTING: readonly (readonly [entity: string, type: string, fields: readonly string[]])[] = [
  ['purchasable_subscription', 'created', NOTICE],
  ['purchasable_subscription', 'created', RECORD],
  ['purchasable_subscription', 'update', NOTICE],
  ['purchasable_subscription', 'update', RECORD],
  ['application', 'installed', APPLICATION],
  ['application', 'uninstalled', APPLICATION],
  ['app_subscription', 'installed', APP_SUBSCRIPTION],
  ['app_subscription', 'uninstalled', APP_SUBSCRIPTION],
  ['application', 'update', NOTICE],
  ['moon', 'installed', APPLICATION],
]
const PLAIN = ['a-1', 'b 2', '~']
const ODD_KEYS = ['constructor', 'toString', 'more']
const ODD = [
  ...['', ' ', 'a\u0000', 'a\u007f', '\ud800', 'x\udc00y', 'é', '💳', '\u0085', '\n', 'a\n', '\u2028'],
  ...['x'.repeat(255), 'x'.repeat(256), 'é'.repeat(255), '💳'.repeat(128)],
  ...[null, true, false, 0, -0, 7, 1.5, Number.MAX_VALUE, 2 ** 53, [], ['a'], {}, { a: 1 }],
]
/** A delivery as documented, with none to three places changed. */
const envelope = fc
  .record({
    base: fc.constantFrom(...FITTING),
    other: fc.constantFrom(...FITTING),
    values: fc.array(fc.constantFrom(...PLAIN), { minLength: 6, maxLength: 6 }),
    changes: fc.array(
      fc.record({
        kind: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'add', 'pollute', 'pair'),
        at: fc.nat(),
        value: fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom<unknown>(...ODD) },
          { weight: 1, arbitrary: fc.constantFrom<unknown>(...PLAIN) },
          { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 5 }) },
          { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
        ),
      }),
      { maxLength: 3 },
    ),
    order: fc.nat(5),
  })
  .map(({ base: [entity_name, event_type, names], other, values, changes, order }) => {
    let pair = { entity_name, event_type }
    let fields: [string, unknown][] = names.map((name, i) => [name, values[i]])
    for (const { kind, at, value } of changes) {
      const place = at % fields.length || 0
      const added = [...other[2], ...ODD_KEYS]
      if (kind === 'pair') pair = { entity_name: other[0], event_type: other[1] }
      else if (kind === 'remove') fields = fields.filter((_field, i) => i !== place)
      else if (kind === 'pollute') fields.push(['__proto__', { a: 1 }])
      else if (kind === 'add') fields.push([added[at % added.length] as string, value])
      else fields = fields.map((field, i) => (i === place ? [field[0], value] : field))
    }
    const turned = [...fields.slice(order), ...fields.slice(0, order)]
    // The delivery is a text, as in a request: then `__proto__` is an ordinary field.
    const text = turned.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
    return { ...pair, data: JSON.parse(`{${text.join()}}`) as unknown }
  })

describe('the shortcut for documented shapes', () => {
  it('B24 gives the same result as the schemas, even in the order of the fields, for any field values', () => {
    taken = 0
    let runs = 0
    fc.assert(
      fc.property(envelope, (each) => {
        runs++
        const [short, long] = [classify(each), bySchemas(each)]
        expect(short).toEqual(long)
        expect(JSON.stringify(short)).toBe(JSON.stringify(long))
        if (short.recognised) expect(Object.getPrototypeOf(short.data)).toBe(Object.prototype)
      }),
      { numRuns: 3_000 },
    )
    // Otherwise hardly anything was compared.
    expect(taken).toBeGreaterThan(runs / 20)
    expect(taken).toBeLessThan(runs)
  })

  it('B24 gives the same result for objects that JSON cannot produce', () => {
    const notice = { business_id: 'b', purchasable_uid: 'p', subscription_uid: 's' }
    const inherited = Object.create({ uid: 'r', business_uid: 'b' })
    for (const each of [
      Object.assign(Object.create(null), notice),
      Object.assign(Object.create({ uid: 'r', business_uid: 'b' }), notice),
      Object.assign(inherited, notice),
      Object.defineProperty({ ...notice }, 'uid', { value: 'hidden' }),
      Object.defineProperty({ ...notice }, 'business_uid', { get: () => 'got', enumerable: true }),
      Object.defineProperty({ ...notice, uid: 'r' }, 'business_uid', {
        get() {
          throw new Error('trap')
        },
      }),
      Object.assign([], notice),
      Object.assign(() => {}, notice),
    ]) {
      for (const event_type of ['created', 'update']) {
        const odd = { entity_name: 'purchasable_subscription', event_type, data: each }
        expect(classify(odd)).toEqual(bySchemas(odd))
      }
    }
  })

  it('is used for the samples of all events that have their documented shape', () => {
    for (const name of Object.keys(EVENTS) as EventName[]) {
      taken = 0
      expect(classify(sampleDelivery(name))).toMatchObject({ recognised: true, name })
      expect([name, taken]).toEqual([name, 1])
    }
  })

  it('is not used if a registry has other rows under the names of built-in events', () => {
    const row = { ...EVENTS['application/installed'], subject: () => ({}) }
    const own = createClassifier({ ...EVENTS, 'application/installed': row })
    expect(own(sampleDelivery('application/installed'))).toMatchObject({ subject: { kind: 'other' } })
  })
})
