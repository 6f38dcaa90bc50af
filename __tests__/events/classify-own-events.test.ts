import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { ConfigError, MarketplaceError } from '../../lib/base/errors.js'
import { createClassifier } from '../../lib/events/classify.js'
import { defineEvent } from '../../lib/events/define-event.js'
import { createRegistry, EVENTS } from '../../lib/events/registry.js'
import { classify, purchase } from '../support/scenes/classify.js'

const NOTICE = { business_id: 'b-1', purchasable_uid: 'p-1', subscription_uid: 's-1' }

describe('an event that the app defines', () => {
  const renewal = defineEvent({
    entity_name: 'purchasable_subscription',
    event_type: 'renewed',
    data: z.object({ subscription: z.string() }),
    tokens: ['app'],
    subject: (data) => ({ subscription_uid: data.subscription, kind: 'notice' }),
  })

  it('is recognised with its own data and subject', () => {
    const own = createClassifier(createRegistry({ renewal }))
    expect(own(purchase('renewed', { subscription: 's-9' }))).toEqual({
      recognised: true,
      name: 'renewal',
      data: { subscription: 's-9' },
      subject: {
        subscription_uid: 's-9',
        business_uid: null,
        purchasable_uid: null,
        app: null,
        event_time: null,
        kind: 'notice',
      },
    })
    expect(own(purchase('update', NOTICE))).toEqual(classify(purchase('update', NOTICE)))
  })

  it('requests no read unless its definition has a subject', () => {
    const { subject, ...plain } = renewal
    const own = createClassifier(createRegistry({ plain }))
    expect(typeof subject).toBe('function')
    expect(own(purchase('renewed', { subscription: 's-9' }))).toMatchObject({
      subject: {
        subscription_uid: null,
        business_uid: null,
        purchasable_uid: null,
        app: null,
        kind: 'other',
      },
    })
  })

  it('passes on no malformed identifier from its subject', () => {
    const own = createClassifier(createRegistry({ renewal }))
    expect(own(purchase('renewed', { subscription: 'a\u0000' }))).toMatchObject({
      subject: { subscription_uid: null },
    })
  })

  it.each(['greedy', '7'])('cannot replace a built-in event of the same pair: %s', (name) => {
    const greedy = defineEvent({ ...EVENTS['purchasable_subscription/create'], data: z.any() })
    const own = createClassifier(createRegistry({ [name]: greedy }))
    expect(own(purchase('created', NOTICE))).toMatchObject({ name: 'purchasable_subscription/create' })
    expect(own(purchase('created', 'anything'))).toMatchObject({ name })
  })

  it('whose definition throws, or answers later, leaves the delivery unrecognised', () => {
    const boom = () => {
      throw new Error('canary')
    }
    for (const definition of [
      { ...renewal, data: z.unknown().transform(boom) },
      { ...renewal, subject: boom },
      { ...renewal, data: z.unknown().refine(async () => true) },
    ]) {
      const own = createClassifier(createRegistry({ definition }))
      expect(own(purchase('renewed', { subscription: 's' }))).toEqual({
        recognised: false,
        isKnownEvent: true,
        issues: ['data: the schema of this event failed'],
      })
    }
  })

  it('has at most ten issues, of the closest option of a union, and none of them repeats a value', () => {
    const many = defineEvent({
      entity_name: 'many',
      event_type: 'many',
      data: z.union([
        z.object(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, z.string()]))),
        z.object(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`g${i}`, z.literal('x')]))),
      ]),
      tokens: ['app'],
    })
    const own = createClassifier(createRegistry({ many }))
    const result = own({ entity_name: 'many', event_type: 'many', data: { f0: 'canary', g0: 'canary' } })
    expect(result).toMatchObject({ recognised: false })
    const issues = result.recognised ? [] : result.issues
    expect(issues).toHaveLength(10)
    expect(issues[0]).toBe('data.f1: expected string, received undefined')
    expect(issues.join()).not.toContain('canary')
  })

  it('cannot use a built-in name, and every fault is listed at once', () => {
    const broken = {
      entity_name: 'a\nb',
      event_type: '',
      data: {},
      tokens: ['admin'],
    } as unknown as typeof renewal
    const faulty = { 'application/installed': renewal, broken, nothing: null as unknown as typeof renewal }
    const error = thrownBy(() => createRegistry(faulty))
    expect(error).toBeInstanceOf(MarketplaceError)
    expect(error).toBeInstanceOf(ConfigError)
    expect(error).toMatchObject({ code: 'config_invalid' })
    expect((error as ConfigError).faults).toEqual([
      'event "application/installed" is built in and cannot be defined again',
      'event "broken" has no usable entity_name',
      'event "broken" has no usable event_type',
      'event "broken" needs a schema as data',
      'event "broken" needs tokens, each of them one of app, business, directory',
      'event "nothing" is not an object: make it with defineEvent({ … })',
    ])
  })
})

function thrownBy(action: () => unknown): unknown {
  try {
    action()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
