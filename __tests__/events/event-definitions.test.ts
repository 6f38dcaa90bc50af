import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { createClassifier } from '../../lib/events/classify.js'
import {
  defineEvent,
  definitionFaults,
  type EventDefinition,
  type SchemaIssue,
} from '../../lib/events/define-event.js'
import { completeSubject } from '../../lib/events/subject.js'

const OWN = defineEvent({
  entity_name: 'invoice',
  event_type: 'paid',
  data: z.looseObject({}),
  tokens: ['app', 'business', 'directory'],
  subject: () => ({}),
})

describe('a definition of an event', () => {
  it('is returned unchanged, and has no faults', () => {
    expect(defineEvent(OWN)).toBe(OWN)
    const { subject: _none, ...bare } = OWN
    expect(definitionFaults('own', OWN)).toEqual([])
    expect(definitionFaults('own', bare)).toEqual([])
  })

  it.each([
    [{ entity_name: '' }, 'event "own" has no usable entity_name'],
    [{ entity_name: 5 }, 'event "own" has no usable entity_name'],
    [{ event_type: 'a\nb' }, 'event "own" has no usable event_type'],
    [{ event_type: '\u0000ab' }, 'event "own" has no usable event_type'],
    [{ event_type: 'ab\u0000' }, 'event "own" has no usable event_type'],
    [{ data: undefined }, 'event "own" needs a schema as data'],
    [{ data: {} }, 'event "own" needs a schema as data'],
    [{ tokens: 'app' }, 'event "own" needs tokens, each of them one of app, business, directory'],
    [{ tokens: [] }, 'event "own" needs tokens, each of them one of app, business, directory'],
    [{ tokens: ['app', 'x'] }, 'event "own" needs tokens, each of them one of app, business, directory'],
    [{ subject: {} }, 'event "own" has a subject that is not a function'],
  ])('with %j is refused with an explanation', (part, fault) => {
    expect(definitionFaults('own', { ...OWN, ...part } as unknown as EventDefinition)).toEqual([fault])
  })

  it('cannot have the name that stands for all events', () => {
    expect(definitionFaults('*', OWN)).toEqual(['an event cannot be named "*", which stands for all events'])
    expect(definitionFaults('own*', OWN)).toEqual([])
  })

  it('lists each of its faults', () => {
    expect(definitionFaults('', { ...OWN, entity_name: '', event_type: '' })).toHaveLength(3)
    for (const none of [null, 5, undefined]) {
      expect(definitionFaults('', none as unknown as EventDefinition)).toEqual([
        'an event needs a name',
        'event "" is not an object: make it with defineEvent({ … })',
      ])
    }
  })
})

describe('a subject', () => {
  const NOTHING = {
    subscription_uid: null,
    business_uid: null,
    purchasable_uid: null,
    app: null,
    event_time: null,
    kind: 'other',
  }

  it("is complete for any result of the app's own definition", () => {
    for (const nothing of [undefined, {}, { kind: 'made-up', app: 'a\n', event_time: 5 } as never]) {
      expect(completeSubject(nothing)).toEqual(NOTHING)
    }
    const full = {
      subscription_uid: 's',
      business_uid: 'b',
      purchasable_uid: 'p',
      app: 'a',
      event_time: 'yesterday',
    }
    for (const kind of ['notice', 'record', 'installed', 'uninstalled', 'other'] as const) {
      expect(completeSubject({ ...full, kind })).toEqual({ ...full, kind })
    }
  })
})

describe('the description of data that no schema accepts', () => {
  const issuesOf = (...refusals: SchemaIssue[][]) => {
    const rows = refusals.map((issues, i): [string, EventDefinition] => [
      `own ${i}`,
      { ...OWN, data: { safeParse: () => ({ success: false, error: { issues } }) } },
    ])
    const found = createClassifier(Object.fromEntries(rows))({
      entity_name: 'invoice',
      event_type: 'paid',
      data: {},
    })
    return found.recognised ? [] : found.issues
  }
  const issue = (message: string): SchemaIssue => ({ path: ['a', 0], message })

  it('is a path and a sentence, of limited length and without control characters', () => {
    expect(issuesOf([issue('Invalid input: wrong')])).toEqual(['data.a.0: wrong'])
    expect(issuesOf([issue('not an Invalid input: x')])).toEqual(['data.a.0: not an Invalid input: x'])
    expect(issuesOf([issue('a\nb\ud800')])).toEqual(['data.a.0: a?b?'])
    expect(issuesOf([issue('x'.repeat(300))])[0]).toHaveLength(200)
  })

  it('belongs to the first of the closest shapes', () => {
    expect(issuesOf([issue('a'), issue('b')], [issue('c')], [issue('d')])).toEqual(['data.a.0: c'])
  })
})
