import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ClaimReads, ReadClaim, Urgency } from '../../../lib/store/port/store.js'
import { createReadClasses } from '../../../lib/work/reading/read-classes.js'
import { createRefresher } from '../../../lib/work/reading/refresher.js'
import { createVirtualClock } from '../../support/machine/virtual-clock.js'
import { createReader } from '../../support/scenes/reader.js'

const [EVENT, UNREAD, TRACK, VERIFICATION, RECONCILE] = [0, 1, 2, 3, 4] as const
const ALL: Urgency[] = [EVENT, UNREAD, TRACK, VERIFICATION, RECONCILE]

describe('the classes of reads', () => {
  it('have one lease each, the most urgent first, then the most urgent has the rest', () => {
    const { leases } = scene()
    expect(leases(8)).toEqual([EVENT, UNREAD, TRACK, VERIFICATION, RECONCILE, EVENT, EVENT, EVENT])
  })

  it('take turns where there are fewer places than classes, so that none starves', () => {
    const { leases } = scene()
    expect(Array.from({ length: 7 }, () => leases(1)[0])).toEqual([...ALL, EVENT, UNREAD])
  })

  it('lose their precedence while one of theirs is leased', () => {
    const { leases } = scene()
    const others = [EVENT, UNREAD, VERIFICATION].map((urgency) => read(urgency))
    expect(leases(8, ALL, others)).toEqual([TRACK, RECONCILE, EVENT, EVENT, EVENT])
  })

  it('go first after a time without due reads', () => {
    const { leases } = scene()
    for (let i = 0; i < 10; i++) leases(1, [TRACK, RECONCILE])
    expect(leases(1)).toEqual([EVENT])
  })

  it.each([
    [1, 1],
    [2, 1],
    [3, 1],
    [4, 2],
    [9, 4],
  ])('of subscriptions that were never read have half of the places: of %d %d', (places, most) => {
    const { leases, classes } = scene()
    expect(leases(places, [UNREAD])).toHaveLength(most)
    const others = Array.from({ length: most }, () => read(UNREAD))
    expect(classes.hasPlace(read(UNREAD), others, places)).toBe(false)
    expect(classes.hasPlace(read(UNREAD), others.slice(1), places)).toBe(true)
    expect(classes.hasPlace(read(TRACK), others, places + 1)).toBe(true)
  })

  it.each([
    [1, 1],
    [2, 1],
    [4, 3],
  ])('of the reconcile leave one place to events: of %d places they have %d', (places, most) => {
    const { leases, classes } = scene()
    expect(leases(places, [RECONCILE])).toHaveLength(most)
    const others = Array.from({ length: most }, () => read(RECONCILE))
    expect(classes.hasPlace(read(TRACK), others, places)).toBe(false)
    expect(classes.hasPlace(read(EVENT), others, places)).toBe(true)
  })

  it('that may have all places are events, imports and verifications', () => {
    for (const urgency of [EVENT, TRACK, VERIFICATION] as const)
      expect(scene().leases(4, [urgency])).toEqual([urgency, urgency, urgency, urgency])
  })

  it('leave one place to events beside reads that wait for a token, unless those are of events', () => {
    const { classes, leases } = scene((businessUid) => businessUid === 'slow')
    const slow = [TRACK, VERIFICATION, UNREAD].map((urgency) => read(urgency, 'slow'))
    for (const urgency of [UNREAD, TRACK, VERIFICATION, RECONCILE] as const)
      expect(classes.hasPlace(read(urgency), slow, 4)).toBe(false)
    expect(classes.hasPlace(read(EVENT), slow, 4)).toBe(true)
    expect(leases(4, ALL, slow)).toEqual([EVENT])
    expect(
      classes.hasPlace(read(TRACK), [read(EVENT, 'slow'), read(EVENT, 'slow'), read(EVENT, 'slow')], 4),
    ).toBe(true)
  })

  it('choose the same when the store tries a claim again', () => {
    const { classes } = scene()
    const choose = classes.chooser([], 8)
    const first = [choose(ALL, []), choose(ALL, [EVENT]), choose(ALL, [EVENT, UNREAD])]
    expect([choose(ALL, []), choose(ALL, [EVENT]), choose(ALL, [EVENT, UNREAD])]).toEqual(first)
    expect(choose([], [])).toBeUndefined()
  })
})

describe('the claims of reads', () => {
  it('leave out the businesses that are being read, until those reads have ended', async () => {
    const { refresher, clock, asked, due, answer } = reading(2)
    due('a', 'b', 'c')
    refresher.start()
    await clock.rest()
    await clock.advance(SECOND)
    answer('a')
    await clock.advance(SECOND)
    answer('b')
    await clock.advance(SECOND)
    // The read of a is still being written when its slot is free.
    expect(asked.slice(0, 3).map(({ except }) => except)).toEqual([[], ['a', 'b'], ['b', 'c']])
    for (const { except } of asked.slice(2)) expect(except).not.toContain('a')
    expect(asked[0]).toMatchObject({ limit: 2, urgencies: ALL, leaseMs: 10 * MINUTE })
  })

  it('lease nothing while reads are paused, and what was leased ahead does not begin', async () => {
    const { refresher, clock, asked, due, answer, begun, given } = reading(1)
    due('quick')
    refresher.start()
    await clock.rest()
    answer('quick')
    await clock.advance(SECOND)
    due('a', 'b', 'c')
    await clock.advance(2 * SECOND)
    expect(begun).toEqual(['quick', 'a'])
    const before = asked.length
    answer('a', { kind: 'throttled', retryAfterMs: MINUTE })
    await clock.advance(30 * SECOND)
    expect([begun, asked.length - before]).toEqual([['quick', 'a'], 0])
    expect(given).toEqual(['b', 'c'])
  })
})

/** Classes over a store in which every class has due reads. */
function scene(isWaitingForToken: (businessUid: string) => boolean = () => false) {
  const classes = createReadClasses({ isWaitingForToken })
  return {
    classes,
    /** The classes of the leases of one claim, which fills these places beside the others. */
    leases(places: number, due: readonly Urgency[] = ALL, others: readonly ReadClaim[] = []) {
      const choose = classes.chooser(others, places)
      const taken: Urgency[] = []
      while (taken.length < places - others.length) {
        const next = choose(due, taken)
        if (next === undefined) break
        taken.push(next)
      }
      for (const urgency of taken) classes.leased(read(urgency))
      return taken
    },
  }
}

function read(urgency: Urgency, businessUid = 'b'): ReadClaim {
  const { claim } = createReader()
  return { ...claim, urgency, subscription: { ...claim.subscription, businessUid } }
}

/** A refresher over a store in which a test makes reads due, one for each business. */
function reading(concurrency: number) {
  const clock = createVirtualClock({ isBusy: () => false })
  const waiting: string[] = []
  const asked: ClaimReads[] = []
  const begun: string[] = []
  const given: string[] = []
  const answers = new Map<
    string,
    (result: { kind: 'missing' } | { kind: 'throttled'; retryAfterMs: number }) => void
  >()
  const refresher = createRefresher({
    store: {
      async claimReads(options) {
        asked.push(options)
        return waiting
          .splice(0, options.limit)
          .map((business) => ({ ...read(EVENT, business), id: business }))
      },
      async finishRead({ id }, { nextInMs }) {
        if (nextInMs === 0) given.push(id)
        return true
      },
      renewRead: async () => true,
      otherBusinesses: async () => ({
        ...{ failing: 1, served: 0, recovered: 0, isSteady: false, exist: false },
        ...{ unread: 0, lately: { failing: 0, served: 0 } },
      }),
      readOthers: async () => 0,
    },
    read({ businessUid }) {
      begun.push(businessUid)
      return new Promise((resolve) => answers.set(businessUid, resolve))
    },
    isWaitingForToken: () => false,
    stateOf: ({ purchase_state }) => purchase_state,
    concurrency,
    leaseMs: 10 * MINUTE,
    renewEveryMs: 5 * MINUTE,
    pollMs: SECOND,
    reconcileEveryMs: MINUTE,
    maxStaleMs: 4_320 * MINUTE,
    waitMs: 0,
    clock: clock.forProcess(),
    onError(error) {
      throw error
    },
  })
  return {
    refresher,
    clock,
    asked,
    begun,
    given,
    due: (...businesses: string[]) => void waiting.push(...businesses),
    answer(
      business: string,
      result: { kind: 'missing' } | { kind: 'throttled'; retryAfterMs: number } = { kind: 'missing' },
    ) {
      answers.get(business)?.(result)
    },
  }
}
