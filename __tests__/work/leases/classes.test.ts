import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import type { ReadClaim, Urgency } from '../../../lib/store/port/store.js'
import { createClasses } from '../../../lib/work/leases/classes.js'
import { createReadClasses } from '../../../lib/work/reading/refresher.js'
import { createReads, readOf } from '../../support/scenes/refresher.js'

const [EVENT, UNREAD, TRACK, VERIFICATION, RECONCILE] = [0, 1, 2, 3, 4] as const
const ALL: Urgency[] = [EVENT, UNREAD, TRACK, VERIFICATION, RECONCILE]

describe('the classes of reads', () => {
  it('have one lease each, the most urgent first, then the most urgent has the rest', () => {
    const { leases } = scene()
    expect(leases(8)).toEqual([EVENT, UNREAD, TRACK, VERIFICATION, RECONCILE, EVENT, EVENT, EVENT])
  })

  it('take turns where there are fewer seats than classes, so that none starves', () => {
    const { leases } = scene()
    expect(Array.from({ length: 7 }, () => leases(1)[0])).toEqual([...ALL, EVENT, UNREAD])
  })

  it('lose their precedence while one of theirs is leased', () => {
    const { leases } = scene()
    const others = [EVENT, UNREAD, VERIFICATION].map((urgency) => readOf(urgency))
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
  ])('of subscriptions that were never read have half of the seats: of %d %d', (seats, most) => {
    const { leases, classes } = scene()
    expect(leases(seats, [UNREAD])).toHaveLength(most)
    const others = Array.from({ length: most }, () => readOf(UNREAD))
    expect(classes.hasSeat(readOf(UNREAD), others, seats)).toBe(false)
    expect(classes.hasSeat(readOf(UNREAD), others.slice(1), seats)).toBe(true)
    expect(classes.hasSeat(readOf(TRACK), others, seats + 1)).toBe(true)
    // Reads of events take none of that half.
    expect(classes.chooser([readOf(EVENT)], seats).choose([UNREAD], [EVENT])).toBe(UNREAD)
  })

  it.each([
    [1, 1],
    [2, 1],
    [4, 3],
  ])('of the reconcile leave one place to events: of %d seats they have %d', (seats, most) => {
    const { leases, classes } = scene()
    expect(leases(seats, [RECONCILE])).toHaveLength(most)
    const others = Array.from({ length: most }, () => readOf(RECONCILE))
    expect(classes.hasSeat(readOf(TRACK), others, seats)).toBe(false)
    expect(classes.hasSeat(readOf(EVENT), others, seats)).toBe(true)
  })

  it('that may have all seats are events, imports and verifications', () => {
    for (const urgency of [EVENT, TRACK, VERIFICATION] as const)
      expect(scene().leases(4, [urgency])).toEqual([urgency, urgency, urgency, urgency])
  })

  it('leave one place to events beside reads that wait for a token, unless those are of events', () => {
    const { classes, leases } = scene((businessUid) => businessUid === 'slow')
    const slow = [TRACK, VERIFICATION, UNREAD].map((urgency) => readOf(urgency, 'slow'))
    for (const urgency of [UNREAD, TRACK, VERIFICATION, RECONCILE] as const)
      expect(classes.hasSeat(readOf(urgency), slow, 4)).toBe(false)
    expect(classes.hasSeat(readOf(EVENT), slow, 4)).toBe(true)
    expect(leases(4, ALL, slow)).toEqual([EVENT])
    expect(
      classes.hasSeat(
        readOf(TRACK),
        [readOf(EVENT, 'slow'), readOf(EVENT, 'slow'), readOf(EVENT, 'slow')],
        4,
      ),
    ).toBe(true)
  })

  it('of subscriptions that were never read may have all leases ahead of a slot', () => {
    expect(scene().leases(4, [UNREAD], [], 2)).toHaveLength(3)
  })

  it('leave no place free if no work may take long', () => {
    const { hasSeat } = createClasses({ classes: ALL, unread: UNREAD })
    expect(
      hasSeat(
        readOf(TRACK),
        [TRACK, TRACK, TRACK].map((each) => readOf(each)),
        4,
      ),
    ).toBe(true)
  })

  it('are chosen if no work may take long', () => {
    const { choose } = createClasses({ classes: ALL, unread: UNREAD }).chooser([readOf(TRACK)], 4)
    expect(choose([TRACK], [TRACK, UNREAD])).toBe(TRACK)
  })

  it('are held back while work is due that may have no seat', () => {
    const { choose, isWithoutSeat } = scene().classes.chooser([readOf(UNREAD)], 2)
    const afterDue = (...due: Urgency[]) => [choose(due, []), isWithoutSeat()]
    expect(isWithoutSeat()).toBe(false)
    expect(afterDue(UNREAD)).toEqual([undefined, true])
    expect(afterDue(UNREAD, EVENT)).toEqual([EVENT, false])
    expect(afterDue()).toEqual([undefined, false])
  })

  it('choose the same when the store tries a claim again', () => {
    const { classes } = scene()
    const { choose } = classes.chooser([], 8)
    const first = [choose(ALL, []), choose(ALL, [EVENT]), choose(ALL, [EVENT, UNREAD])]
    expect([choose(ALL, []), choose(ALL, [EVENT]), choose(ALL, [EVENT, UNREAD])]).toEqual(first)
    expect(choose([], [])).toBeUndefined()
  })
})

describe('the claims of reads', () => {
  it('leave out the businesses that are being read, until those reads have ended', async () => {
    const { refresher, clock, asked, due, answer } = createReads(2)
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

  it('begin before the next claim looks behind rows that were in the way of others', async () => {
    const { refresher, clock, asked, due, begun } = createReads(4, { isInTheWay: true })
    due('a', 'b')
    refresher.start()
    await clock.rest()
    expect(asked.map(({ except }) => except)).toEqual([[], ['a'], ['a', 'b']])
    expect(begun).toEqual(['a', 'b'])
  })

  it('lease nothing while reads are paused, and what was leased ahead does not begin', async () => {
    const { refresher, clock, asked, due, answer, begun, given } = createReads(1)
    due('quick')
    refresher.start()
    await clock.rest()
    answer('quick')
    await clock.advance(SECOND)
    due('a', 'b', 'c')
    // They wait for a slot for half a second at most, and this is sooner.
    while (begun.length < 2) await clock.advance(10)
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
  const classes = createReadClasses(isWaitingForToken)
  return {
    classes,
    /** The classes of the leases of one claim, which fills these seats beside the others. */
    leases(seats: number, due: readonly Urgency[] = ALL, others: readonly ReadClaim[] = [], ahead = 0) {
      const { choose } = classes.chooser(others, seats, ahead)
      const taken: Urgency[] = []
      while (taken.length < seats - others.length) {
        const next = choose(due, taken)
        if (next === undefined) break
        taken.push(next)
      }
      for (const urgency of taken) classes.leased(readOf(urgency))
      return taken
    },
  }
}
