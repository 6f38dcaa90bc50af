import { describe, expect, it } from '@jest/globals'
import { DAY } from '../../../lib/base/clock.js'
import { type Announcement, CAUSES, type RefreshRequest } from '../../../lib/store/port/store.js'
import { mergeRequests, type Requested } from '../../../lib/store/subscriptions/merge-requests.js'

const NOW = 1_790_000_000_000

describe('the rows of a batch of refresh requests', () => {
  it.each<[string, [boolean, number | null][], object]>([
    [
      'the newest date',
      [install(-3, true), install(-1, false), install(-2, true)],
      { installed: 0, at: NOW - 1 },
    ],
    ['the last of equal dates', [install(-1, false), install(-1, true)], { installed: 1, at: NOW - 1 }],
    ['a date a day ahead', [install(DAY, false)], { installed: 0, at: NOW + DAY, arrived: null }],
    ['the arrival, for a later date', [install(DAY + 1, true)], { installed: 1, at: null, arrived: NOW }],
    ['the arrival, without a date', [[false, null]], { installed: 0, at: null, arrived: NOW }],
  ])('have of the installs of a business %s', (_, installs, expected) => {
    const requests = installs.map(([installed, at]) => event(ofBusiness({ installed, at })))
    expect(merged(requests).rounds.map(({ businesses }) => businesses)).toMatchObject([
      [{ business: 'A', wall: NOW, times: installs.length, cause: CAUSES.indexOf('event'), ...expected }],
    ])
  })

  it('have no install of a business that is only refreshed, and the strongest cause of each row', () => {
    const requests = [stored('s1'), ofBusiness(null)].flatMap((request): Requested[] =>
      (['import', 'request', 'reconcile'] as const).map((cause) => ({ request, cause })),
    )
    const [round] = merged(requests).rounds
    const cause = CAUSES.indexOf('request')
    expect(round?.stored).toEqual([{ uid: 's1', times: 3, cause }])
    expect(round?.businesses).toMatchObject([{ installed: null, at: null, arrived: null, times: 3, cause }])
  })

  it.each<[Announcement[], { ends: 0 | 1 | null; updates: 0 | 1 } | undefined]>([
    [[], undefined],
    [['access'], { ends: 0, updates: 0 }],
    [['access', 'access'], { ends: 0, updates: 0 }],
    [['end'], { ends: 1, updates: 1 }],
    [['update'], { ends: null, updates: 1 }],
    [['end', 'update'], { ends: 1, updates: 1 }],
    [['update', 'access'], { ends: 0, updates: 1 }],
  ])(
    'have what the last record of a subscription shows, and whether any was an update: %j',
    (announced, expected) => {
      const requests = announced.map((announces) => event(stored('s1', announces)))
      expect(merged([event(stored('s1')), ...requests]).records).toEqual(
        expected ? [{ uid: 's1', business: 'A', ...expected }] : [],
      )
    },
  )

  it.each([
    [[true], 1],
    [[undefined], 0],
    [[true, true], 1],
    [[true, undefined], 0],
    [[undefined, true], 0],
  ])('are quiet if every request of the subscription is: %j', (quiet, expected) => {
    const [round] = merged(
      quiet.map((each) => event(named('s1', 'A', { ...(each && { quiet: each }) }))),
    ).rounds
    expect(round?.named).toMatchObject([{ uid: 's1', business: 'A', times: quiet.length, quiet: expected }])
  })

  it.each<[(Announcement | undefined)[], 0 | 1]>([
    [[undefined], 0],
    [['access'], 0],
    [['end', 'access'], 0],
    [['update'], 1],
    [['update', undefined], 1],
    [['access', 'update'], 1],
  ])('have an update if one request announces it: %j', (announced, updates) => {
    const requests = announced.map((announces) =>
      event(named('s1', 'A', { ...(announces && { announces }) })),
    )
    expect(merged(requests).rounds[0]?.named).toMatchObject([{ updates, times: announced.length }])
  })

  it('have a record that shows access or an end also if the request names the subscription, but no update', () => {
    const shown = (announces: Announcement) => merged([event(named('s1', 'A', { announces }))]).records
    expect(shown('update')).toEqual([])
    expect(shown('access')).toEqual([{ uid: 's1', business: 'A', ends: 0, updates: 0 }])
    expect(shown('end')).toEqual([{ uid: 's1', business: 'A', ends: 1, updates: 1 }])
  })

  it.each<[string, Requested[], number]>([
    ['events of two subscriptions', [event(named('s1', 'A')), event(named('s2', 'A'))], 1],
    ['events of one subscription', [event(named('s1', 'A')), event(named('s1', 'A'))], 1],
    ['events of one subscription for two businesses', [event(named('s1', 'A')), event(named('s1', 'B'))], 2],
    ['an event and a track of a subscription', [event(named('s1', 'A')), call(named('s1', 'A'))], 2],
    [
      'events of a subscription and then of its business',
      [event(named('s1', 'A')), event(ofBusiness(null))],
      1,
    ],
    [
      'events of a business and then of its subscription',
      [event(ofBusiness(null)), event(named('s1', 'A'))],
      2,
    ],
    [
      'events of a business and of a subscription of another',
      [event(ofBusiness(null)), event(named('s1', 'B'))],
      1,
    ],
    [
      'a refresh of a business and an event of any subscription',
      [call(ofBusiness(null)), event(named('s1', 'B'))],
      2,
    ],
    [
      'a refresh of a business and a track of any subscription',
      [call(ofBusiness(null)), call(named('s1', 'B'))],
      2,
    ],
    [
      'events of a business with and without a date',
      [event(ofBusiness({ installed: true, at: NOW })), event(ofBusiness({ installed: true, at: null }))],
      2,
    ],
    ['an event and a refresh of a business', [event(ofBusiness(null)), call(ofBusiness(null))], 2],
  ])('are in as many rounds as keep their order: %s', (_, requests, rounds) => {
    expect(merged(requests).rounds).toHaveLength(rounds)
  })

  it('D259 are in one order of bytes, in which all transactions lock them', () => {
    const uids = ['😀', '\uff21', 's2', 's1']
    const [round] = merged(uids.map((uid) => event(stored(uid)))).rounds
    expect(round?.stored.map(({ uid }) => uid)).toEqual([...uids].reverse())
  })
})

const merged = (requests: Requested[]) => mergeRequests(requests, NOW)

function event(request: RefreshRequest): Requested {
  return { request, cause: 'event' }
}

function call(request: RefreshRequest): Requested {
  return { request, cause: 'request' }
}

function named(
  subscriptionUid: string,
  businessUid: string,
  more: { quiet?: boolean; announces?: Announcement } = {},
): RefreshRequest {
  return { kind: 'subscription', subscriptionUid, businessUid, purchasableUid: null, ...more }
}

/** A date, this long after now. */
function install(afterMs: number, installed: boolean): [boolean, number] {
  return [installed, NOW + afterMs]
}

function ofBusiness(install: { installed: boolean; at: number | null } | null): RefreshRequest {
  return { kind: 'business', businessUid: 'A', install }
}

function stored(subscriptionUid: string, announces?: Announcement): RefreshRequest {
  return { kind: 'stored', subscriptionUid, businessUid: 'A', ...(announces && { announces }) }
}
