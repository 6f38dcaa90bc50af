import { describe, expect, it } from '@jest/globals'
import { RECORD_FIELDS, UPDATED_EVENT_FIELDS } from '../../lib/base/record.js'
import {
  canonicalState,
  grants,
  PURCHASE_STATES,
  stateForMetrics,
} from '../../lib/entitlement/purchase-state.js'
import { EVENTS } from '../../lib/events/registry.js'
import { TRANSITIONS, transition } from '../../lib/testing/transitions.js'

// The tables of the interface document, copied from the document, not from the code.

const NOTICE = ['business_id', 'purchasable_uid', 'subscription_uid']
const RECORD = [
  'uid',
  'purchasable_uid',
  'buyer_uid',
  'business_uid',
  'purchase_currency',
  'purchase_price',
  'purchase_state',
  'cancellation_date',
  'expiration_date',
  'updated_at',
  'created_at',
  'payment_type',
]
const UPDATED = [
  'uid',
  'display_name',
  'purchasable_uid',
  'buyer_uid',
  'business_uid',
  'purchase_currency',
  'purchase_price',
  'purchase_state',
  'cancellation_date',
  'expiration_date',
  'updated_at',
  'created_at',
  'payment_type',
  'bundled_from_subscription_uid',
  'is_active',
]
const APPLICATION = ['business_id', 'app_code_name', 'event_time']

const EVENT_ROWS: [name: string, entity: string, type: string, fields: string[]][] = [
  ['purchasable_subscription/create', 'purchasable_subscription', 'created', NOTICE],
  ['purchasable_subscription/update', 'purchasable_subscription', 'update', NOTICE],
  ['purchasable_subscription/updated', 'purchasable_subscription', 'update', UPDATED],
  ['app_subscription/installed', 'app_subscription', 'installed', ['business_id', 'app_id']],
  ['app_subscription/uninstalled', 'app_subscription', 'uninstalled', ['business_id', 'app_id']],
  ['application/installed', 'application', 'installed', APPLICATION],
  ['application/uninstalled', 'application', 'uninstalled', APPLICATION],
]

const TOKEN_ROWS: [name: string, tokens: string[]][] = [
  ['purchasable_subscription/create', ['app']],
  ['purchasable_subscription/update', ['app']],
  ['purchasable_subscription/updated', ['app', 'business', 'directory']],
  ['app_subscription/installed', ['business', 'directory']],
  ['app_subscription/uninstalled', ['business', 'directory']],
  ['application/installed', ['app']],
  ['application/uninstalled', ['app']],
]

const CREATE = 'purchasable_subscription/create'
const UPDATE = 'purchasable_subscription/update'
const TRANSITION_ROWS: [
  current: string,
  trigger: string,
  condition: string,
  next: string,
  emits: string | null,
][] = [
  ['none', 'User purchases an app', 'Payment succeeded', 'purchased', CREATE],
  ['none', 'User purchases an app', 'Payment failed', 'suspended', CREATE],
  ['suspended', 'Payment confirmation received', 'none stated', 'purchased', UPDATE],
  ['purchased', 'Payment confirmation received', 'none stated', 'purchased', null],
  ['purchased', 'Payment issue received', 'none stated', 'suspended', UPDATE],
  ['suspended', 'Payment issue received', 'none stated', 'suspended', null],
  ['suspended or purchased', 'User cancels the app subscription', 'none stated', 'canceled', UPDATE],
]

describe('the table of events', () => {
  const table = new Map(Object.entries(EVENTS))

  it('contains the seven events of the document and no other', () => {
    expect([...table.keys()].sort()).toEqual(EVENT_ROWS.map(([name]) => name).sort())
  })

  it.each(EVENT_ROWS)(
    'delivers %s as %s + %s with the fields of the document',
    (name, entity, type, fields) => {
      const row = table.get(name)
      expect([row?.entity_name, row?.event_type]).toEqual([entity, type])
      const data = Object.fromEntries(fields.map((field) => [field, `a-${field}`]))
      expect(row?.data.safeParse(data)).toMatchObject({ success: true, data })
    },
  )

  it.each(TOKEN_ROWS)('registers %s with %j only', (name, tokens) => {
    expect(table.get(name)?.tokens).toEqual(tokens)
  })
})

describe('the fields of a subscription', () => {
  it('are those of the document', () => {
    expect(Object.keys(RECORD_FIELDS)).toEqual(RECORD)
  })

  it('are extended by three in the updated event', () => {
    expect(Object.keys({ ...RECORD_FIELDS, ...UPDATED_EVENT_FIELDS }).sort()).toEqual([...UPDATED].sort())
  })
})

describe('the purchase states', () => {
  it('are the three of the document', () => {
    expect(Object.keys(PURCHASE_STATES)).toEqual(['purchased', 'suspended', 'canceled'])
  })

  it('change as the transition table defines, row by row', () => {
    const rows = TRANSITIONS.map(({ current, trigger, condition, next, emits }) => [
      current.join(' or '),
      trigger,
      condition ?? 'none stated',
      next,
      emits,
    ])
    expect(rows).toEqual(TRANSITION_ROWS)
  })

  it('emit only events that exist', () => {
    for (const { emits } of TRANSITIONS) if (emits) expect(EVENTS).toHaveProperty([emits])
  })

  it('emit an event exactly when the state changes', () => {
    for (const { current, next, emits } of TRANSITIONS) {
      expect(emits !== null).toBe(!current.some((state: string) => state === next))
    }
  })

  it('have no transition out of canceled', () => {
    for (const { trigger } of TRANSITIONS) expect(transition('canceled', trigger)).toBeUndefined()
  })

  it('are found by the current state and the cause', () => {
    expect(transition('purchased', 'Payment issue received')?.next).toBe('suspended')
    expect(transition('none', 'User purchases an app', 'Payment failed')?.next).toBe('suspended')
    expect(transition('none', 'User purchases an app')).toBeUndefined()
    expect(transition('suspended', 'User cancels the app subscription')?.emits).toBe(UPDATE)
  })

  it('write canceled in one way, and keep every other value unchanged', () => {
    expect(canonicalState('cancelled')).toBe('canceled')
    expect(canonicalState('canceled')).toBe('canceled')
    for (const value of [
      'purchased',
      'suspended',
      'expired',
      'pending',
      'Cancelled',
      ' cancelled',
      'cancled',
      '',
    ]) {
      expect(canonicalState(value)).toBe(value)
    }
  })

  it('grant access for purchased only', () => {
    expect(grants('purchased')).toBe(true)
    const others = [
      'suspended',
      'canceled',
      'cancelled',
      'expired',
      'pending',
      'Purchased',
      'purchased ',
      'purchase',
      '',
    ]
    for (const value of [...others, null, undefined]) expect(grants(value)).toBe(false)
  })

  it('are the only values in a metric, except one for missing or revoked and one for all other texts', () => {
    for (const state of Object.keys(PURCHASE_STATES)) expect(stateForMetrics(state)).toBe(state)
    expect(stateForMetrics(null)).toBe('gone')
    for (const word of ['expired', 'toString', '']) expect(stateForMetrics(word)).toBe('other')
  })
})
