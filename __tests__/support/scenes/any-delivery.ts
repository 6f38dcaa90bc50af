import fc from 'fast-check'
import { DOCUMENTED_FIELDS } from '../../../lib/events/fields.js'
import { EVENTS } from '../../../lib/events/registry.js'

/** A delivery with known and unknown fields of any type, and the values in it that nobody may see. */
export function anyDelivery() {
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
