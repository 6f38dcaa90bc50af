import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { DOCUMENTED_FIELDS } from '../../lib/events/fields.js'
import { EVENTS, type EventName } from '../../lib/events/registry.js'
import { fixtureOf, sampleDelivery } from '../../lib/testing/index.js'
import { createScene } from '../support/scene.js'
import { anyDelivery } from '../support/scenes/any-delivery.js'
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
    const times = ['2026-11-26T10:00:00+02:00', '2026-11-26', '2026-11-26T07:00:00.123Z', '2026-11-28 12:00']
    const numbers = [99.99, 10, '99.99', -5, 1e300, 10]
    expect(fixtureOf({ times, numbers })).toEqual({
      times: ['2024-01-03T00:00:00+00:00', '2024-01-01', '2024-01-02T00:00:00.000Z', '2024-01-04 00:00'],
      numbers: [1.5, 2, '1.00', -3, 2 ** 53 + 8, 2],
    })
  })

  it.each(['48213', 48213, 0.25, '0.25', 1e300, '2026-11-26', '2026-11-26T10:00:00Z', 'b-1', 'ada'])(
    'replaces a name by what replaces the same value: %j',
    (value) => {
      const { before, same, after } = fixtureOf({
        before: { [value]: true },
        same: ['1999-01-01', value],
        after: { list: [{ [value]: true }] },
      }) as { before: object; same: unknown[]; after: object }
      const replaced = String(same[1])
      expect(replaced).not.toBe(String(value))
      expect(before).toEqual({ [replaced]: true })
      expect(after).toEqual({ list: [{ [replaced]: true }] })
    },
  )

  it('keeps each field of an object, also of two names that one text would replace', () => {
    const times = ['2026-11-26T10:00:00+01:00', '2026-11-26T11:00:00+02:00']
    const [first, second] = times as [string, string]
    expect(fixtureOf({ times, by_time: { [first]: 'a', [second]: 'b' } })).toEqual({
      times: ['2024-01-01T00:00:00+00:00', '2024-01-01T00:00:00+00:00'],
      by_time: { '2024-01-01T00:00:00+00:00': 'text-1', 'field-1': 'text-2' },
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

  it('keeps no name and no word that has an identifier in it', () => {
    const ada = {
      entity_name: 'ada',
      event_type: 'paid',
      data: { business_id: 'Ada', ada_settings: 1, myAda: 2, other: 3 },
    }
    expect(fixtureOf(ada)).toEqual({
      ...{ entity_name: 'text-1', event_type: 'paid' },
      data: { business_id: 'business-1', 'field-1': 1, 'field-2': 2, other: 3 },
    })
  })

  it.each<[EventName, data: Record<string, unknown>]>([
    ['application/installed', { app_code_name: 'application' }],
    ['app_subscription/installed', { app_id: 'installed', business_id: 'app_subscription' }],
    ['purchasable_subscription/update', { purchasable_uid: 'update' }],
  ])('of %s is recognised if an identifier is a name of the event: %j', (name, data) => {
    const fixture = fixtureOf(sampleDelivery(name, data))
    expect(outcomeOf(fixture)).toEqual({ recognised: true, name })
    expect(fixture).not.toMatchObject({ data })
  })

  it.each(['ACMESettings', 'acmesettings', 'myacme', 'my_acme', 'acme2'])(
    'replaces a name with an identifier: %s',
    (name) => {
      expect(fixtureOf({ data: { business_id: 'acme', [name]: true } })).toEqual({
        data: { business_id: 'business-1', 'field-1': true },
      })
    },
  )

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
