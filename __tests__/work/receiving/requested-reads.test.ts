import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../../lib/base/clock.js'
import type { Subject } from '../../../lib/events/subject.js'
import { createRequestedReads } from '../../../lib/work/receiving/requested-reads.js'

const NAMED = { subscriptionUid: 's', businessUid: 'b' }
const AT = '2026-03-01T10:00:00+02:00'

describe('the read that a notice requests', () => {
  const notice = { kind: 'notice', subscription_uid: 's', business_uid: 'b' } as const

  it('concerns its subscription, with the item that it names', () => {
    const expected = { kind: 'subscription', ...NAMED, purchasableUid: 'p' }
    expect(requestedBy({ ...notice, purchasable_uid: 'p' })).toEqual(expected)
    expect(requestedBy({ ...notice, purchasable_uid: 'p' }, { purchasableUids: [] })).toEqual(expected)
  })

  it('concerns its subscription if it names no item', () => {
    for (const purchasableUids of [[], ['p']])
      expect(requestedBy(notice, { purchasableUids })).toEqual({
        kind: 'subscription',
        ...NAMED,
        purchasableUid: null,
      })
  })

  it("concerns its subscription also if its item is not one of the app's, so that it counts once the setting is right", () => {
    expect(requestedBy({ ...notice, purchasable_uid: 'q' })).toEqual({
      kind: 'subscription',
      ...NAMED,
      purchasableUid: 'q',
    })
  })
})

describe('the read that a full record requests', () => {
  const record = { kind: 'record', subscription_uid: 's', business_uid: 'b' } as const

  it.each([
    ['of an item of the app', 'p', ['o', 'p'], 'subscription'],
    ['without an item', null, ['p'], 'subscription'],
    ['of another item', 'q', ['p'], 'stored'],
    ['without an item, when the items of the app are not known', null, [], 'stored'],
    ['of any item, when the items of the app are not known', 'q', [], 'stored'],
  ])('%s', (_what, purchasable_uid, purchasableUids, kind) => {
    expect(requestedBy({ ...record, purchasable_uid }, { purchasableUids })).toEqual(
      kind === 'stored' ? { kind, ...NAMED } : { kind, ...NAMED, purchasableUid: purchasable_uid },
    )
  })
})

describe('what an event announces', () => {
  it.each(['update', 'end', 'access'] as const)('is part of the request: %s', (announces) => {
    const { requestedBy: request } = createRequestedReads({ purchasableUids: ['p'], codeNames: [] })
    const subject = { subscription_uid: 's', business_uid: 'b', app: null, event_time: null }
    const named = (kind: 'notice' | 'record', purchasable_uid: string) =>
      request({ ...subject, kind, purchasable_uid }, announces)
    for (const given of [named('notice', 'p'), named('record', 'p'), named('record', 'q')])
      expect(given).toMatchObject({ ...NAMED, announces })
  })
})

describe('the read that an install or uninstall requests', () => {
  it.each(['installed', 'uninstalled'] as const)(
    'concerns the business, and notes that the app was %s',
    (kind) => {
      expect(requestedBy({ kind, business_uid: 'b', app: 'us', event_time: AT })).toEqual({
        kind: 'business',
        businessUid: 'b',
        install: { installed: kind === 'installed', at: Date.parse(AT) },
      })
    },
  )

  it.each([
    ['installed', true, true],
    ['installed', false, undefined],
    ['uninstalled', true, undefined],
  ] as const)(
    'searches for subscriptions of the business: %s, with searches %s: %s',
    (kind, searches, search) => {
      const { requestedBy: request } = createRequestedReads({ purchasableUids: [], codeNames: [], searches })
      const subject = { subscription_uid: null, purchasable_uid: null, app: null, event_time: null }
      expect(request({ ...subject, kind, business_uid: 'b' })).toHaveProperty(
        'install.installed',
        kind === 'installed',
      )
      expect((request({ ...subject, kind, business_uid: 'b' }) as { search?: boolean }).search).toBe(search)
    },
  )

  it.each([
    ['the app', 'us', ['them', 'us'], true],
    ['another app', 'other', ['us'], false],
    ['no app', null, ['us'], true],
    ['any app, when the code names are not known', 'other', [], true],
  ])('concerns this app if it names %s', (_what, app, codeNames, isOurs) => {
    expect(requestedBy({ kind: 'installed', business_uid: 'b', app }, { codeNames }) !== null).toBe(isOurs)
  })

  it.each([
    ['2026-03-01T10:00:00Z', Date.UTC(2026, 2, 1, 10)],
    ['2026-03-01T10:00:00.123456+0200', Date.UTC(2026, 2, 1, 8, 0, 0, 123)],
    ['2026-03-01T10:00:00-05:30', Date.UTC(2026, 2, 1, 15, 30)],
    ['1970-01-02T00:00:00.001Z', DAY + 1],
    ['1970-01-02T00:00:00.000Z', null],
    ['0001-01-01T00:00:00Z', null],
    ['2026-03-01T10:00:00', null],
    ['2026-03-01', null],
    ['2026-99-01T10:00:00Z', null],
    ['on 2026-03-01T10:00:00Z', null],
    ['2026-03-01T10:00:00Z or so', null],
    ['12026-03-01T10:00:00Z', null],
    ['soon', null],
    [null, null],
  ])('has the time of %p only if that has an offset and is after 1970 began: %p', (event_time, at) => {
    const request = requestedBy({ kind: 'installed', business_uid: 'b', event_time })
    expect(request).toMatchObject({ install: { at } })
  })
})

describe('no read', () => {
  it.each<[string, Partial<Subject>]>([
    ['any other event', { kind: 'other', subscription_uid: 's', business_uid: 'b', purchasable_uid: 'p' }],
    ['an install without a business', { kind: 'installed' }],
    ['a notice without a business', { kind: 'notice', subscription_uid: 's' }],
    ['a notice without a subscription', { kind: 'notice', business_uid: 'b' }],
    ['a record without a subscription', { kind: 'record', business_uid: 'b' }],
  ])('is requested by %s', (_what, subject) => {
    expect(requestedBy(subject)).toBeNull()
  })
})

describe('the item of a notice', () => {
  it('is own, another, or none', () => {
    const { itemOf } = createRequestedReads({ purchasableUids: ['o', 'p'], codeNames: [] })
    expect(['p', 'q', null].map(itemOf)).toEqual(['own', 'other', 'none'])
  })
})

function requestedBy(
  subject: Partial<Subject>,
  { purchasableUids = ['p'], codeNames = ['us'] }: { purchasableUids?: string[]; codeNames?: string[] } = {},
) {
  return createRequestedReads({ purchasableUids, codeNames }).requestedBy({
    subscription_uid: null,
    business_uid: null,
    purchasable_uid: null,
    app: null,
    event_time: null,
    kind: 'other',
    ...subject,
  })
}
