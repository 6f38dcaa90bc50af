import { describe, expect, it } from '@jest/globals'
import { parseRecord } from '../../lib/base/record.js'
import { classify, purchase, RECORD, subjectOf } from '../support/scenes/classify.js'

const NOTICE = { business_id: 'b-1', purchasable_uid: 'p-1', subscription_uid: 's-1' }

const ESSENTIALS = ['uid', 'business_uid'] as const

const READ_ESSENTIALS = [...ESSENTIALS, 'purchasable_uid', 'purchase_state'] as const

/** Values that an optional field may have instead of the documented ones. */
const ODD = [null, '', undefined, true, 7, 1.5, [], ['p-1'], {}, { odd: [true] }, 'a\u0000', 'x'.repeat(256)]

describe('classify', () => {
  it('distinguishes the two update events by the shape of data', () => {
    expect(nameOf(purchase('update', NOTICE))).toBe('purchasable_subscription/update')
    expect(nameOf(purchase('update', RECORD))).toBe('purchasable_subscription/updated')
  })

  it('treats data that have both shapes as a record', () => {
    const both = { ...NOTICE, ...RECORD, subscription_uid: 's-other' }
    expect(classify(purchase('update', both))).toMatchObject({
      name: 'purchasable_subscription/updated',
      subject: { kind: 'record', subscription_uid: 's-1' },
    })
    expect(classify(purchase('created', both))).toMatchObject({
      name: 'purchasable_subscription/create',
      data: { subscription_uid: 's-1' },
      subject: { kind: 'notice', subscription_uid: 's-1' },
    })
  })

  it('treats a notice that contains part of a record as a notice', () => {
    for (const type of ['created', 'update']) {
      expect(classify(purchase(type, { ...NOTICE, uid: 's-2', purchase_state: 'purchased' }))).toMatchObject({
        recognised: true,
        subject: { kind: 'notice', subscription_uid: 's-1', business_uid: 'b-1', purchasable_uid: 'p-1' },
      })
    }
  })

  it('treats created with a full record as create, with identifiers from the record and all its fields', () => {
    expect(classify(purchase('created', RECORD))).toEqual({
      recognised: true,
      name: 'purchasable_subscription/create',
      data: { ...RECORD, business_id: 'b-1', subscription_uid: 's-1' },
      subject: {
        subscription_uid: 's-1',
        business_uid: 'b-1',
        purchasable_uid: 'p-1',
        app: null,
        event_time: null,
        kind: 'notice',
      },
    })
  })

  it('finds the subject of every event', () => {
    const install = { subscription_uid: null, business_uid: 'b-1', purchasable_uid: null, event_time: null }
    const ids = { subscription_uid: 's-1', business_uid: 'b-1', purchasable_uid: 'p-1' }
    const notice = { ...ids, app: null, event_time: null }
    const event_time = '2024-05-01T10:00:00.000+02:00'
    expect(subjectOf(purchase('created', NOTICE))).toEqual({ ...notice, kind: 'notice' })
    expect(subjectOf(purchase('update', NOTICE))).toEqual({ ...notice, kind: 'notice' })
    expect(subjectOf(purchase('update', RECORD))).toEqual({ ...notice, app: 'the-app', kind: 'record' })
    for (const kind of ['installed', 'uninstalled']) {
      const own = {
        entity_name: 'application',
        event_type: kind,
        data: { business_id: 'b-1', app_code_name: 'x' },
      }
      const other = {
        entity_name: 'app_subscription',
        event_type: kind,
        data: { business_id: 'b-1', app_id: 'x' },
      }
      expect(nameOf(own)).toBe(`application/${kind}`)
      expect(nameOf(other)).toBe(`app_subscription/${kind}`)
      for (const envelope of [own, other]) expect(subjectOf(envelope)).toEqual({ ...install, app: 'x', kind })
      const timed = { ...own, data: { ...own.data, event_time } }
      expect(subjectOf(timed)).toEqual({ ...install, app: 'x', event_time, kind })
      expect(subjectOf({ ...own, data: { ...own.data, event_time: 7 } })).toMatchObject({ event_time: null })
    }
  })

  it('converts identifiers that are numbers to strings', () => {
    const data = { business_id: 0, app_id: 72 }
    expect(classify({ entity_name: 'app_subscription', event_type: 'installed', data })).toMatchObject({
      data: { business_id: '0', app_id: '72' },
      subject: { business_uid: '0', app: '72' },
    })
    const record = { ...RECORD, uid: 1, business_uid: 2, purchasable_uid: 3 }
    expect(subjectOf(purchase('update', record))).toMatchObject({
      subscription_uid: '1',
      business_uid: '2',
      purchasable_uid: '3',
    })
  })

  it.each([[null], [''], [undefined]])('treats %j in an optional field as absent', (none) => {
    expect(classify(purchase('created', { ...NOTICE, purchasable_uid: none }))).toMatchObject({
      name: 'purchasable_subscription/create',
      data: { purchasable_uid: null },
    })
    const data = { business_id: 'b', app_code_name: 'a', event_time: none }
    expect(classify({ entity_name: 'application', event_type: 'installed', data })).toMatchObject({
      data: { event_time: null },
    })
  })

  it('recognises a notice without purchasable_uid and an install without event_time', () => {
    for (const type of ['created', 'update']) {
      expect(classify(purchase(type, { business_id: 'b', subscription_uid: 's' }))).toMatchObject({
        recognised: true,
        data: { purchasable_uid: null },
        subject: { kind: 'notice', purchasable_uid: null },
      })
    }
    const data = { business_id: 'b', app_code_name: 'a' }
    expect(classify({ entity_name: 'application', event_type: 'uninstalled', data })).toMatchObject({
      data: { event_time: null },
    })
  })

  it('accepts event_time in any form, unchanged', () => {
    for (const event_time of [
      '2024-05-01T12:00:00.123+02:00',
      '2024-05-01T10:00:00Z',
      'yesterday',
      1714557600,
    ]) {
      const data = { business_id: 'b', app_code_name: 'a', event_time }
      expect(classify({ entity_name: 'application', event_type: 'installed', data })).toMatchObject({ data })
    }
  })

  it('returns prices, states and unknown fields unchanged', () => {
    const forms = {
      purchase_price: [99.99, 10, '5.00', null],
      purchase_state: ['expired', 'pending', 'cancelled', ''],
    }
    for (const [field, values] of Object.entries(forms)) {
      for (const value of values) {
        expect(classify(purchase('update', { ...RECORD, [field]: value }))).toMatchObject({
          data: { [field]: value },
        })
      }
    }
    const extra = { a: [{ b: 1 }], c: null }
    expect(classify(purchase('update', { ...NOTICE, extra }))).toMatchObject({ data: { ...NOTICE, extra } })
  })

  it('B22 needs only the identifiers of the subscription and the business in a record', () => {
    const bare = Object.fromEntries(ESSENTIALS.map((field) => [field, RECORD[field]]))
    const none = { purchasable_uid: null, purchase_state: null }
    for (const [type, name, kind] of [
      ['update', 'purchasable_subscription/updated', 'record'],
      ['created', 'purchasable_subscription/create', 'notice'],
    ] as const) {
      expect(classify(purchase(type, bare))).toMatchObject({
        name,
        data: { ...bare, ...none },
        subject: { kind, subscription_uid: 's-1', business_uid: 'b-1', purchasable_uid: null },
      })
      for (const odd of ODD) {
        const record = Object.fromEntries(Object.keys(RECORD).map((field) => [field, odd]))
        const found = classify(purchase(type, { ...record, ...bare }))
        const { purchasable_uid, purchase_state, ...others } = record
        expect(found).toMatchObject({ name, data: { ...others, ...bare }, subject: { kind } })
        if (!found.recognised) throw new Error('unreachable')
        const fit = typeof odd === 'number' && Number.isSafeInteger(odd) ? String(odd) : null
        expect([purchasable_uid, found.data.purchasable_uid]).toEqual([odd, fit])
        expect([purchase_state, found.data.purchase_state]).toEqual([
          odd,
          typeof odd === 'string' ? odd : null,
        ])
      }
    }
  })

  it('B22 needs only the identifiers in a notice or an install', () => {
    for (const odd of ODD) {
      const fit = typeof odd === 'number' && Number.isSafeInteger(odd) ? String(odd) : null
      for (const type of ['created', 'update']) {
        expect(classify(purchase(type, { ...NOTICE, purchasable_uid: odd }))).toMatchObject({
          data: { ...NOTICE, purchasable_uid: fit },
          subject: { kind: 'notice', purchasable_uid: fit },
        })
      }
      for (const event_type of ['installed', 'uninstalled']) {
        for (const [entity_name, field] of [
          ['application', 'app_code_name'],
          ['app_subscription', 'app_id'],
        ] as const) {
          expect(
            classify({ entity_name, event_type, data: { business_id: 'b-1', [field]: odd } }),
          ).toMatchObject({
            data: { business_id: 'b-1', [field]: fit ?? '' },
            subject: { kind: event_type, business_uid: 'b-1', app: fit },
          })
        }
      }
    }
  })

  it('is stricter with a record from a read, because a decision needs its item and state', () => {
    const bare = Object.fromEntries(READ_ESSENTIALS.map((field) => [field, RECORD[field]]))
    expect(parseRecord(bare)).toEqual(bare)
    for (const field of READ_ESSENTIALS) expect(parseRecord({ ...bare, [field]: null })).toBeUndefined()
  })

  it('returns equal results for two deliveries with the same content, and leaves the envelope unchanged', () => {
    const envelope = purchase('update', { ...NOTICE, business_id: 5 })
    const before = JSON.stringify(envelope)
    expect(classify(envelope)).toEqual(classify(JSON.parse(before)))
    expect(JSON.stringify(envelope)).toBe(before)
  })
})

function nameOf(envelope: unknown) {
  const result = classify(envelope)
  return result.recognised ? result.name : result.issues
}
