import { describe, expect, it } from '@jest/globals'
import { EVENTS } from '../../lib/events/registry.js'
import { classify, purchase, RECORD } from '../support/scenes/classify.js'

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
})

describe('hostile data', () => {
  it('that throws when it is read is unrecognised', () => {
    const trap = () => {
      throw new Error('canary')
    }
    const issues = ['envelope: it cannot be examined']
    expect(classify(new Proxy({}, { get: trap }))).toEqual({ recognised: false, isKnownEvent: false, issues })
    const data = Object.defineProperty({}, 'business_id', { get: trap, enumerable: true })
    expect(classify(purchase('update', data)).recognised).toBe(false)
  })
})

function issuesOf(envelope: unknown) {
  const result = classify(envelope)
  if (result.recognised) throw new Error(`recognised as ${result.name}`)
  return result.issues
}
