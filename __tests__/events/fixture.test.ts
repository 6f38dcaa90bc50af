import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { DOCUMENTED_FIELDS } from '../../lib/events/fields.js'
import { EVENTS, type EventName } from '../../lib/events/registry.js'
import { fixtureOf, sampleDelivery } from '../../lib/testing/index.js'
import { createScene } from '../support/scene.js'
import { classify, purchase, RECORD } from '../support/scenes/classify.js'

const NAMES = Object.keys(EVENTS) as EventName[]

describe('the documented fields of an event', () => {
  it.each(NAMES)('%s are those of its sample', (name) => {
    expect([...DOCUMENTED_FIELDS[name]].sort()).toEqual(Object.keys(sampleDelivery(name).data).sort())
  })
})

describe('fixtureOf', () => {
  it('replaces identifiers by names that say what they are, the same everywhere', () => {
    const data = {
      customer: { id: 'b-1', mail: 'ada@example.com', 'b-1': 1, seats: [72, '72', 'b-1'] },
      ...RECORD,
      bundled_from_subscription_uid: 's-0',
    }
    expect(fixtureOf(purchase('update', data))).toEqual(
      purchase('update', {
        customer: { id: 'business-1', mail: 'text-1', 'business-1': 1, seats: [2, '2', 'business-1'] },
        ...RECORD,
        ...{ uid: 'subscription-1', display_name: 'app-1', purchasable_uid: 'purchasable-1' },
        ...{ buyer_uid: 'buyer-1', business_uid: 'business-1', purchase_currency: 'text-2' },
        ...{ purchase_price: '3.00', updated_at: '2024-01-01T00:00:00.000Z' },
        ...{ created_at: '2024-01-01T00:00:00.000Z', payment_type: 'text-3' },
        bundled_from_subscription_uid: 'subscription-2',
      }),
    )
  })

  it('keeps the type of a number, and the format and the order of times', () => {
    const times = ['2026-11-26T10:00:00+02:00', '2026-11-26', '2026-11-26T07:00:00.123Z', '2026-11-26 12:00']
    const numbers = [99.99, 10, '99.99', -5, 1e300, 10]
    expect(fixtureOf({ times, numbers })).toEqual({
      times: ['2024-01-03T00:00:00+00:00', '2024-01-01', '2024-01-02T00:00:00.000Z', '2024-01-04 00:00'],
      numbers: [1.5, 2, '1.00', -3, 2 ** 53 + 8, 2],
    })
  })

  it('keeps the states and the pair of the wire, and no sentence in their place', () => {
    const state = (purchase_state: string) => purchase('update', { ...RECORD, purchase_state })
    for (const word of ['purchased', 'on_hold', 'Expired'])
      expect(fixtureOf(state(word))).toMatchObject({ event_type: 'update', data: { purchase_state: word } })
    for (const text of ['held for Ada', 'b-1', 'x'.repeat(41)])
      expect(fixtureOf(state(text))).not.toMatchObject({ data: { purchase_state: text } })
  })

  it.each(NAMES)('of %s is recognised by a receiver as the delivery was', async (name) => {
    const { marketplace, deliver } = await createScene()
    const { id } = await deliver(sampleDelivery(name, { note: 'Ada Lovelace' }))
    const entry = await marketplace.journal.get(id)
    const fixture = fixtureOf(entry?.payload)
    expect(JSON.stringify(fixture)).not.toMatch(/Ada|Lovelace/)
    const again = await deliver(fixture)
    expect(await marketplace.journal.get(again.id)).toMatchObject({ kind: 'event', name })
  })

  it('is recognised as any delivery was, and has none of its values', () => {
    fc.assert(
      fc.property(anyDelivery(), ({ delivery, values }) => {
        const fixture = fixtureOf(delivery)
        expect(outcomeOf(fixture)).toEqual(outcomeOf(delivery))
        const text = JSON.stringify(fixture)
        expect(values.filter((value) => text.includes(value))).toEqual([])
      }),
      { numRuns: 1_000 },
    )
  })
})

function outcomeOf(delivery: unknown) {
  const { recognised, ...found } = classify(delivery)
  return { recognised, ...('name' in found ? { name: found.name } : { issues: found.issues }) }
}

/** A delivery with known and unknown fields of any type, and the values in it that nobody may see. */
function anyDelivery() {
  const secret = fc.oneof(
    fc.uuid(),
    fc.emailAddress(),
    fc.integer({ min: 100_000, max: 2 ** 52 }),
    fc.integer({ min: 100_000, max: 2 ** 52 }).map(String),
    fc
      .tuple(fc.stringMatching(/^[A-Z][a-z]{5,9}$/), fc.constantFrom(' ', '\n', '\u0007'))
      .map((parts) => parts.join('Qz')),
    fc.stringMatching(/^[a-z0-9]{12,16}-\d$/).map((text) => text.padEnd(300, 'k')),
  )
  const odd = fc.constantFrom(null, '', true, 1e300, 0.25)
  const value = fc.oneof({ weight: 4, arbitrary: secret }, { weight: 1, arbitrary: odd })
  const nested = fc.oneof(
    value,
    fc.array(value, { maxLength: 3 }),
    fc.dictionary(fc.uuid(), value, { maxKeys: 2 }),
    fc.record({ plan: value, list: fc.array(fc.record({ uid: value })) }),
  )
  const fields = Object.fromEntries(
    [...new Set(Object.values(DOCUMENTED_FIELDS).flat()), 'extra', 'more'].map((name) => [name, nested]),
  )
  const envelope = fc
    .record({
      pair: fc.constantFrom(...Object.values(EVENTS)),
      data: fc.record(fields, { requiredKeys: [] }),
      top: nested,
    })
    .map(({ pair: { entity_name, event_type }, data, top }) => ({ entity_name, event_type, data, top }))
  return fc
    .oneof({ weight: 4, arbitrary: envelope }, fc.array(envelope, { maxLength: 2 }), nested)
    .map((delivery) => ({
      delivery: delivery as unknown,
      values: valuesIn(delivery),
    }))
}

/** The values and names that are long enough to be found by no chance. */
function valuesIn(value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') {
    const text = JSON.stringify(value).replaceAll('"', '')
    return text.length < 6 ||
      Object.values(EVENTS).some(({ entity_name, event_type }) =>
        [entity_name, event_type].includes(text as never),
      )
      ? []
      : [text]
  }
  if (typeof value !== 'object' || value === null) return []
  const keys = Array.isArray(value) ? [] : Object.keys(value).filter((key) => /\d.*-/.test(key))
  return [...keys, ...Object.values(value).flatMap(valuesIn)]
}
